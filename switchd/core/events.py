"""Every event that a switch core reports.

A switch reports little: drops and marks are counters, and only the answers to commands are events. `record()` is flat,
can be hashed into a trace, and leaves out what differs between two drivers of the same run (tokens).
"""

from dataclasses import dataclass
from typing import Any

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
