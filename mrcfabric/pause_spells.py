"""Spells of pauses: when a class of a port has been paused for so long that it is worth an event, and when it is over.

Pure arithmetic. Switches and NICs pause and let go every few microseconds; single frames would flood any log. Pauses of
one class with breaks shorter than `least_ns` between them are one spell. A spell is told of once its pauses add up to
`least_ns`, and once more when `least_ns` have passed without a pause. So of one class there are at most two events in
twice `least_ns`, however many frames come. The owner has the timers: it calls `come` at the instants that it is given.
"""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from mrcfabric.units import NEVER, Instant

PAUSE_EVENT_NS: Final = 50_000
"""The usual `least_ns`: a few round trips. A queue that works itself off within one is no event."""


@dataclass(slots=True)
class PauseBegun:
    """The pauses of a class at a port add up to so much that the spell is told of."""

    at_ns: Instant
    port: int
    cls: int
    since_ns: Instant
    """The first pause."""
    frames: int
    """Pause frames since then that said stop."""

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns,
            "kind": "pause_begun",
            "port": self.port,
            "cls": self.cls,
            "since_ns": self.since_ns,
            "frames": self.frames,
        }


@dataclass(slots=True)
class PauseEnded:
    """The spell is over: for as long as a pause must last to be told of, there was none."""

    at_ns: Instant
    port: int
    cls: int
    since_ns: Instant
    until_ns: Instant
    """The end of the last pause."""
    paused_ns: int
    """How long all pauses of the spell took."""
    frames: int

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns,
            "kind": "pause_ended",
            "port": self.port,
            "cls": self.cls,
            "since_ns": self.since_ns,
            "until_ns": self.until_ns,
            "paused_ns": self.paused_ns,
            "frames": self.frames,
        }


PauseEvent: TypeAlias = PauseBegun | PauseEnded


class _Spell:
    """The spell of one class of one port."""

    __slots__ = ("before_ns", "first_ns", "frames", "since_ns", "told", "until_ns")

    def __init__(self, at_ns: Instant) -> None:
        self.first_ns = at_ns
        self.since_ns = at_ns
        """The present pause, or the last one, began."""
        self.until_ns = at_ns
        """And ends, as far as is known."""
        self.before_ns = 0
        """What the pauses before it took."""
        self.frames = 0
        self.told = False

    def due(self, least_ns: int) -> Instant:
        """When it is worth an event, or over."""
        worth_ns = self.since_ns + least_ns - self.before_ns
        return worth_ns if not self.told and worth_ns <= self.until_ns else self.until_ns + least_ns


class PauseSpells:
    """The spells of all ports and classes of a node. Instants never go back."""

    __slots__ = ("_least_ns", "_spells")

    def __init__(self, least_ns: int) -> None:
        """`least_ns` 0: nothing is ever told."""
        self._least_ns = least_ns
        self._spells: dict[tuple[int, int], _Spell] = {}

    def heard(self, at_ns: Instant, port: int, cls: int, until_ns: Instant) -> Instant:
        """A class is paused until `until_ns`; not after `at_ns`: it may go on. Returns when to call `come` at last."""
        spell = self._spells.get((port, cls))
        if until_ns <= at_ns:
            if spell is None:
                return NEVER
            spell.until_ns = min(spell.until_ns, at_ns)
            return spell.due(self._least_ns)
        if not self._least_ns:
            return NEVER
        if spell is None:
            spell = self._spells[port, cls] = _Spell(at_ns)
        elif spell.until_ns < at_ns:
            spell.before_ns += spell.until_ns - spell.since_ns
            spell.since_ns = at_ns
        spell.until_ns = until_ns
        spell.frames += 1
        return spell.due(self._least_ns)

    def come(self, at_ns: Instant, port: int, cls: int) -> tuple[PauseEvent | None, Instant]:
        """The instant has come that was asked for, or an earlier one: what is to be told, and when to call again."""
        spell = self._spells.get((port, cls))
        if spell is None:
            return None, NEVER
        due_ns = spell.due(self._least_ns)
        if at_ns < due_ns:
            return None, due_ns
        if at_ns <= spell.until_ns:
            spell.told = True
            return PauseBegun(at_ns, port, cls, spell.first_ns, spell.frames), spell.due(self._least_ns)
        del self._spells[port, cls]
        if not spell.told:
            return None, NEVER
        paused_ns = spell.before_ns + spell.until_ns - spell.since_ns
        return PauseEnded(at_ns, port, cls, spell.first_ns, spell.until_ns, paused_ns, spell.frames), NEVER
