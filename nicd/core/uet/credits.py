"""RCCC: what a receiver grants to its senders in turn, and what a sender may send of it.

Owns both sides' counts. They run on the bytes that a packet takes on the wire, so that grants at the rate of the
receiver's ports fill them and no more. Counts travel in units of 256 bytes, 24 bits, and only go up: a lost grant is
made good by the next one.

A sender that was idle begins with speculative credit and loses what is left of it at its first grant or NACK. It tells
the receiver how far it wants to be granted; the receiver serves those that want more one after the other, some packets
each. While nobody wants more, it serves those that want nothing, until each has some credit to begin with. UEC 1.0
3.6.14 (RCCC).
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from mrcfabric.units import Instant
from mrcfabric.wire.uet_layout import COUNT_MASK, CREDIT_UNIT
from nicd.core.timers import Timer, Timers
from nicd.core.uet.oversubscribed import WHOLE, Oversubscribed

MOST_PRODUCTS: Final = 4
"""A sender never wants more credit at a time than so many bandwidth-delay products."""
_HALF: Final = (COUNT_MASK + 1) >> 1
_NS: Final = 8_000_000_000


class CreditSource:
    """What one sender may send towards one destination."""

    __slots__ = ("_first_bytes", "_idle", "_most_bytes", "granted", "left_bytes", "spare_bytes")

    def __init__(self, first_bytes: int, most_bytes: int) -> None:
        """`first_bytes`: what a sender that was idle may send at once; `most_bytes`: the most it ever asks for."""
        # One packet may always leave: it tells the receiver what is wanted.
        self._first_bytes = max(1, first_bytes)
        self._most_bytes = most_bytes
        self._idle = True
        self.granted = 0
        """All that was ever granted, in units."""
        self.left_bytes = 0
        """What is left of it; the last packet may bring it below zero."""
        self.spare_bytes = 0
        """What may be sent besides, by speculation."""

    @property
    def open(self) -> bool:
        """Whether a packet may leave."""
        return self.left_bytes > 0 or self.spare_bytes > 0 or self._idle

    def spend(self, size: int) -> None:
        """A packet of `size` bytes on the wire leaves."""
        if self._idle:
            self._idle = False
            self.spare_bytes = max(0, self._first_bytes - max(0, self.left_bytes))
        if self.left_bytes > 0:
            self.left_bytes -= size
            return
        self.spare_bytes -= size
        if self.spare_bytes < 0:
            self.left_bytes += self.spare_bytes
            self.spare_bytes = 0

    def stop(self) -> bool:
        """A NACK or a grant has come: what is left of the speculation is void. Returns whether anything was."""
        spare, self.spare_bytes = self.spare_bytes, 0
        return spare > 0

    def grant(self, count24: int) -> bool:
        """All that was ever granted, as it came. Returns whether that is more than was known."""
        more = (count24 - self.granted) & COUNT_MASK
        if not 0 < more < _HALF:
            return False
        self.granted += more
        self.left_bytes += more * CREDIT_UNIT
        return True

    def rest(self) -> None:
        """Nothing is in flight and nothing waits: the next packet may speculate again."""
        self._idle = True
        self.spare_bytes = 0

    def target(self, backlog_bytes: int) -> int:
        """Up to where credit is wanted for so many bytes that wait, in units, 24 bits: what is left counts."""
        wanted = min(backlog_bytes, self._most_bytes) - self.left_bytes - self.spare_bytes
        return self.granted - -wanted // CREDIT_UNIT & COUNT_MASK


class _Claim:
    """One sender, as its receiver knows it."""

    __slots__ = ("granted", "resting", "send", "target", "waiting")

    def __init__(self, send: Callable[[Instant, int], bool]) -> None:
        self.send = send
        """Sends a grant: all that was ever granted, 24 bits. False: it could not."""
        self.granted = 0
        self.target = 0
        """In units, counting on from 0."""
        self.waiting = False
        """Whether it stands in the ring of those that want more."""
        self.resting = False
        """Whether it stands in that of those that want nothing."""


class Grantor:
    """What one NIC grants to all its senders, at the rate of its ports."""

    __slots__ = (
        "_at_rest",
        "_claims",
        "_idle",
        "_most",
        "_next_ns",
        "_oversubscribed",
        "_paid_bps",
        "_quantum",
        "_rate_bps",
        "_ring",
        "_timer",
        "grants",
    )

    def __init__(
        self, timers: Timers, rate_bps: int, quantum_bytes: int, most_bytes: int, idle_bytes: int,
        oversubscribed: Oversubscribed | None = None,
    ) -> None:  # fmt: skip
        """`quantum_bytes`: what a sender is granted at once; `most_bytes`: what any may want at a time; `idle_bytes`:
        what one that wants nothing may have left; `oversubscribed`: slows grants down, None: nothing does."""
        self._oversubscribed = oversubscribed
        self._rate_bps = rate_bps
        self._quantum = max(1, quantum_bytes // CREDIT_UNIT)
        self._most = max(1, most_bytes // CREDIT_UNIT)
        self._idle = idle_bytes // CREDIT_UNIT
        self._at_rest: deque[_Claim] = deque()
        self._claims: dict[int, _Claim] = {}
        self._ring: deque[_Claim] = deque()
        self._next_ns: Instant = 0
        """When the next grant may be made, if grants go on at `_paid_bps`."""
        self._paid_bps = rate_bps
        self._timer = Timer(timers, self._grant)
        self.grants = 0

    def saw(self, now: Instant, marked: bool, trimmed: bool, in_fabric: bool) -> None:
        """A data packet has come: marked or not, whole or `trimmed`, and if so `in_fabric` or on its last hop."""
        if self._oversubscribed is not None:
            self._oversubscribed.saw(now, marked, trimmed, in_fabric)

    def _granting_bps(self, now: Instant) -> int:
        if self._oversubscribed is None:
            return self._rate_bps
        self._oversubscribed.look(now)
        return max(1, self._rate_bps * self._oversubscribed.share // WHOLE)

    @property
    def waiting(self) -> int:
        """Senders that want more than they were granted."""
        return len(self._ring)

    @property
    def resting(self) -> int:
        """Senders that want nothing, and are given some credit to begin with."""
        return len(self._at_rest)

    def granted(self, sender: int) -> int:
        """All that a sender was ever granted, 24 bits."""
        claim = self._claims.get(sender)
        return 0 if claim is None else claim.granted & COUNT_MASK

    def wants(self, now: Instant, sender: int, target24: int, send: Callable[[Instant, int], bool]) -> None:
        """A sender says up to where it wants credit; `send` carries a grant to it."""
        claim = self._claims.get(sender)
        if claim is None:
            claim = self._claims[sender] = _Claim(send)
        claim.send = send
        ahead = (target24 - claim.target) & COUNT_MASK
        if ahead < _HALF:
            # Whatever a peer says: no more than it can have use for.
            claim.target = max(claim.target, min(claim.target + ahead, claim.granted + self._most))
        self._queue(claim)
        if claim.waiting or claim.resting:
            self._timer.set_by(self._soon(now))

    def _queue(self, claim: _Claim) -> None:
        """Put a sender where it belongs, if it is not there."""
        if claim.target > claim.granted:
            if not claim.waiting:
                claim.waiting = True
                self._ring.append(claim)
        elif claim.granted - claim.target < self._idle and not claim.resting:
            claim.resting = True
            self._at_rest.append(claim)

    def repeat(self, now: Instant, sender: int) -> None:
        """A sender asks how much it was granted."""
        claim = self._claims.get(sender)
        if claim is not None:
            claim.send(now, claim.granted & COUNT_MASK)

    def forget(self, sender: int) -> None:
        """A sender is gone."""
        claim = self._claims.pop(sender, None)
        if claim is not None and claim.waiting:
            self._ring.remove(claim)
        if claim is not None and claim.resting:
            self._at_rest.remove(claim)

    def _soon(self, now: Instant) -> Instant:
        """When to grant next, or to look again how fast."""
        if self._oversubscribed is None:
            return max(now, self._next_ns)
        return max(now, min(self._next_ns, now + self._oversubscribed.period_ns))

    def _due(self, now: Instant) -> bool:
        """Whether the last grant is paid for by now, at the rate of today. If not, the timer is set."""
        slowed = self._oversubscribed
        if now < self._next_ns and slowed is not None:
            # The rate may have risen since: what is still to be paid for takes less time then.
            rate = self._granting_bps(now)
            self._next_ns = now + (self._next_ns - now) * self._paid_bps // rate
            self._paid_bps = rate
            if self._next_ns > now:
                self._timer.set(self._soon(now))
        return now >= self._next_ns

    def _grant(self, now: Instant) -> None:
        if not self._due(now):
            return
        if self._ring:
            claim = self._ring.popleft()
            claim.waiting = False
            units = min(self._quantum, claim.target - claim.granted)
        elif self._at_rest:
            claim = self._at_rest.popleft()
            claim.resting = False
            units = min(self._quantum, self._idle - (claim.granted - claim.target))
        else:
            return
        # One that rested may want more by now, and one that wanted more may have been served meanwhile.
        if units > 0:
            if claim.send(now, claim.granted + units & COUNT_MASK):
                claim.granted += units
                self.grants += 1
                self._queue(claim)
            # Otherwise its context is gone: it comes back with the next one.
            self._paid_bps = self._granting_bps(now)
            self._next_ns = now + max(1, units * CREDIT_UNIT * _NS // self._paid_bps)
        else:
            self._queue(claim)
        if self._ring or self._at_rest:
            self._timer.set(self._soon(now))
