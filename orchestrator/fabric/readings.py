"""What a fabric says of its time and of its dead: plain records, the same from an object and over the agent's API.

Owns the records and their spelling as data. Who reads the clock page is `orchestrator.hosts.clock.timekeeper`, who
notes deaths `orchestrator.fabric.lifecycle`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mrcfabric.errors import ConfigError
from mrcfabric.units import NEVER, Instant
from orchestrator.fabric.journal import Journal
from orchestrator.hosts.clock.timekeeper import Timekeeper
from orchestrator.process.log_view import LogView

LOG_LINES = 5
"""Last words of a daemon that died."""


class ClockReading(NamedTuple):
    """A fabric's time at one moment."""

    now_ns: Instant
    """Every living node has got there."""
    front_ns: Instant
    """No node has got beyond it: what is told for a later instant is never late."""
    soon_ns: Instant
    """The earliest instant for which a command sent now is not late while time goes on."""
    limit_ns: Instant | None
    """Where time stands still; None: nowhere."""
    standing: bool
    """Every living node has come to the limit."""
    idle: bool
    """Nothing is pending anywhere: without a command nothing will ever happen again."""
    state: str
    """`run` or `sleep`."""
    pace: Mapping[str, Any]
    """Fabric and wall time so far and the dilation (`Timekeeper.record`)."""
    whole: bool = True
    """All hosts hear each other: while they do not, time stands still, and whoever does not answer may be back."""

    @classmethod
    def of(cls, time: Timekeeper, whole: bool) -> "ClockReading":
        """As the agent's clock page says now; `whole` as its hosts do."""
        limit_ns = time.limit_ns
        return cls(
            now_ns=time.now_ns(),
            front_ns=time.page.fabric_front(),
            soon_ns=time.soon_ns(),
            limit_ns=None if limit_ns == NEVER else limit_ns,
            standing=time.standing,
            idle=time.page.all_idle(),
            state=time.state,
            pace=time.record(),
            whole=whole,
        )


class Untold(NamedTuple):
    """A life that ended before it had told all that it counted: what came between the two instants is in no sum."""

    node: str
    from_ns: Instant
    to_ns: Instant


class Death(NamedTuple):
    """A daemon that ended, or did not come back, though nobody had asked for it."""

    node: str
    at_ns: Instant
    """The fabric time it had reached."""
    how: str
    """As `SIGKILL` or `exit code 1`."""
    log: tuple[str, ...]
    """The last lines it wrote."""


def deaths(journal: Journal, folder: Path) -> list[Death]:
    """Every death in a journal that was neither in the timetable nor asked for, oldest first."""
    notes = [
        note for note in journal.after(0) if note["kind"] == "lost" or (note["kind"] == "died" and not note["planned"])
    ]
    return [
        Death(note["node"], note["at_ns"], note.get("how") or note["why"], _last_words(folder, note["node"]))
        for note in notes
    ]


def _last_words(folder: Path, node: str) -> tuple[str, ...]:
    try:
        return tuple(LogView(folder, node).tail(LOG_LINES))
    except (ConfigError, OSError):
        return ()
