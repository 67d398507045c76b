"""Fixtures: a small fabric that runs, with its agent, as those of the orchestrator's tests."""

from tests.orchestrator.conftest import agent, fabric, pack, served

__all__ = ["agent", "fabric", "pack", "served"]
