"""Records of a fabric's time and of its deaths, the same from an object and over the agent's API.

Owns the records and their form as data. `orchestrator.hosts.clock.timekeeper` reads the clock page;
`orchestrator.fabric.lifecycle` notes deaths.
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
"""How many of the last log lines of a dead daemon are shown."""


class ClockReading(NamedTuple):
    """A fabric's time at one moment."""

    now_ns: Instant
    """Every living node has reached this instant."""
    front_ns: Instant
    """No node is past this instant: a command for a later one is not late."""
    soon_ns: Instant
    """The earliest instant for which a command sent now is not late while time goes on."""
    next_ns: Instant
    """The earliest instant for a fault or for work: time waits until the daemons know of it."""
    limit_ns: Instant | None
    """Where time stands still; None: there is no limit."""
    standing: bool
    """Whether every living node has reached the limit."""
    idle: bool
    """Whether nothing is pending anywhere; then nothing will happen without a new command."""
    state: str
    """`run` or `sleep`."""
    pace: Mapping[str, Any]
    """Fabric time, wall time and dilation so far (`Timekeeper.record`)."""
    whole: bool = True
    """Whether all hosts can reach each other. While they cannot, time stands still, and silent daemons may return."""

    @classmethod
    def of(cls, time: Timekeeper, whole: bool) -> "ClockReading":
        """Read the agent's clock page; `whole` comes from the cluster."""
        limit_ns = time.limit_ns
        return cls(
            now_ns=time.now_ns(),
            front_ns=time.front_ns(),
            soon_ns=time.soon_ns(),
            next_ns=time.next_ns(),
            limit_ns=None if limit_ns == NEVER else limit_ns,
            standing=time.standing,
            idle=time.page.all_idle(),
            state=time.state,
            pace=time.record(),
            whole=whole,
        )


class Untold(NamedTuple):
    """A life that ended before it reported all its counts: no sum holds what it counted between the two instants."""

    node: str
    from_ns: Instant
    to_ns: Instant


class Death(NamedTuple):
    """A daemon that ended, or did not return, although nobody asked for it."""

    node: str
    at_ns: Instant
    """The fabric time that it had reached."""
    how: str
    """For example `SIGKILL` or `exit code 1`."""
    log: tuple[str, ...]
    """The last lines of its log."""


def deaths(journal: Journal, folder: Path) -> list[Death]:
    """Every death in a journal that neither the timetable nor a command asked for, oldest first."""
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
