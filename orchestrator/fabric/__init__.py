"""A running fabric: its processes, time and faults. Scripts begin with `from orchestrator.fabric import Fabric`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.api.fabric import Fabric

__all__ = ["Fabric"]


def __getattr__(name: str) -> Any:
    """`Fabric`, loaded when it is asked for: its class stands above this package (`orchestrator.api.fabric`)."""
    if name != "Fabric":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from orchestrator.api.fabric import Fabric

    return Fabric
