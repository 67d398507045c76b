"""The messages of relays about their clocks: a question with a stamp, an answer with two more.

Owns the bytes, the stamps, and which answer belongs to which question. `orchestrator.hosts.clock.clock_offset` computes
offsets from stamps, and the relay decides when to ask. A caller may pass other clocks than the machine's.
"""

import struct
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from orchestrator.hosts.clock.clock_offset import ClockOffset, Exchange

ASKS_MAX: Final = 8
"""Open questions to one host at most; older ones are forgotten."""
LOOKS: Final = 3
"""How often both clocks are read for their difference. The quickest read counts."""

_MAGIC: Final = b"mrcclock"  # no page news begins like this: the upper half of its first word is a small number
_ASK: Final = struct.Struct("!8sq")
_ANSWER: Final = struct.Struct("!8sqqqqI")


class StrangeStampsError(ValueError):
    """A message about clocks that cannot be read."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """The two clocks of a host, in nanoseconds: the monotonic one, which nobody sets, and the wall clock."""

    mono_ns: Callable[[], int] = time.monotonic_ns
    wall_ns: Callable[[], int] = time.time_ns

    def wall_ahead(self) -> tuple[int, int]:
        """(how much more the wall clock shows, the error of that)."""
        looks = []
        for _ in range(LOOKS):
            before, wall, after = self.mono_ns(), self.wall_ns(), self.mono_ns()
            looks.append((after - before, wall - (before + after) // 2))
        span, ahead = min(looks)
        return ahead, span // 2 + 1


@dataclass(slots=True)
class _Peer:
    """What is known of one other host's clock."""

    history: ClockOffset = field(default_factory=ClockOffset)
    asked: deque[int] = field(default_factory=lambda: deque(maxlen=ASKS_MAX))
    wall_ahead: tuple[int, int] = (0, 0)


class ClockTalk:
    """The questions and answers of one relay to all others."""

    def __init__(self, clocks: Clocks | None = None) -> None:
        self._clocks = Clocks() if clocks is None else clocks
        self._peers: dict[int, _Peer] = {}

    @staticmethod
    def is_talk(message: bytes) -> bool:
        """Whether a message is about clocks."""
        return message.startswith(_MAGIC)

    def ask(self, peer: int) -> bytes:
        """Make a question to another host, to be sent at once."""
        one = self._peers.setdefault(peer, _Peer())
        one.asked.append(self._clocks.mono_ns())
        return _ASK.pack(_MAGIC, one.asked[-1])

    def take(self, peer: int, message: bytes) -> bytes | None:
        """Take a message as soon as it came. Returns the answer to send at once, if any. Raises StrangeStampsError."""
        now_ns = self._clocks.mono_ns()
        if len(message) == _ASK.size:
            _, asked_ns = _ASK.unpack(message)
            ahead_ns, error_ns = self._clocks.wall_ahead()
            return _ANSWER.pack(_MAGIC, asked_ns, now_ns, self._clocks.mono_ns(), ahead_ns, min(error_ns, 0xFFFF_FFFF))
        if len(message) != _ANSWER.size:
            raise StrangeStampsError(f"{len(message)} bytes are neither a question nor an answer")
        _, asked_ns, heard_ns, answered_ns, ahead_ns, error_ns = _ANSWER.unpack(message)
        one = self._peers.setdefault(peer, _Peer())
        if asked_ns in one.asked:
            one.asked.remove(asked_ns)
            try:
                one.history.take(Exchange(asked_ns, heard_ns, answered_ns, now_ns))
            except ValueError as error:
                raise StrangeStampsError(str(error)) from None
            one.wall_ahead = ahead_ns, error_ns
        return None

    def lost(self, peer: int) -> None:
        """The connection has ended: forget the open questions, but keep the clock's history."""
        if peer in self._peers:
            self._peers[peer].asked.clear()

    def report(self, peer: int) -> dict[str, Any] | None:
        """What their clock shows now, as plain data: a `Reading`, and of wall clocks `wall_offset_ns`, `wall_error_ns`.

        None before the first answer.
        """
        one = self._peers.get(peer)
        reading = None if one is None else one.history.at(self._clocks.mono_ns())
        if one is None or reading is None:
            return None
        theirs, ours = one.wall_ahead, self._clocks.wall_ahead()
        return {
            **asdict(reading),
            "wall_offset_ns": reading.offset_ns + theirs[0] - ours[0],
            "wall_error_ns": reading.error_ns + theirs[1] + ours[1],
        }
