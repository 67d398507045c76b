"""Every event that a switch core reports.

A switch reports little: drops and marks are counters, and only the answers to commands and flows that move to other
up-links are events. `record()` is flat, can be hashed into a trace, and leaves out what differs between two drivers of
the same run (tokens).
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from mrcfabric.units import Instant


@dataclass(slots=True)
class CommandDone:
    """The answer to the command with this token; `error` is None when it was carried out."""

    at_ns: Instant
    token: int
    error: str | None
    result: dict[str, int | str | bool | None]

    def record(self) -> dict[str, Any]:
        return {"at_ns": self.at_ns, "kind": "command_done", "error": self.error, **self.result}


@dataclass(slots=True)
class HashChange:
    """The switch hashes with another seed from now on."""

    at_ns: Instant
    common: bool
    """The seed that all switches have in common; False: the configured one again."""
    flows: int
    """Flows towards up-links that were remembered: those seen since the last change."""
    moved: int
    """Those of them that leave by another up-link now."""

    def record(self) -> dict[str, Any]:
        cause = "polarised" if self.common else "as configured"
        return {"at_ns": self.at_ns, "kind": "hash_change", "cause": cause, "flows": self.flows, "moved": self.moved}


SwitchEvent: TypeAlias = CommandDone | HashChange
