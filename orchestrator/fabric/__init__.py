"""A running fabric: its processes, time and faults. Scripts begin with `from orchestrator.fabric import Fabric`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.api.fabric import Fabric

__all__ = ["Fabric"]


def __getattr__(name: str) -> Any:
    """Import `Fabric` on first use: its class is in `orchestrator.api.fabric`, a layer above this package."""
    if name != "Fabric":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from orchestrator.api.fabric import Fabric

    return Fabric
