"""Follows one daemon from look to look: what it has done since the look before, even if it died or was silent.

Pure. Owns the differences of counters. A daemon that has started again has done all that it counts. A silent one has
done nothing as far as is known. What was done before the first look is unknown. `mrcfabric.glance` says what is
counted.
"""

from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

from mrcfabric.glance import Glance, Head, NicRest, PortGlance, RcGlance, SwitchRest, head_of, ports_of
from mrcfabric.units import NS_PER_S

R = TypeVar("R", NicRest, SwitchRest)

_NO_HEAD: Final = Head(0, 0, 0, 0, 0, 0)
_NO_PORT: Final = PortGlance(0, 0, 0, 0, 0)


class Track(Generic[R]):
    """One daemon. Call `enter` at every look."""

    def __init__(self, ports: int, nothing: R) -> None:
        """`nothing`: the rest of the glance of a daemon that has just started."""
        self._nothing: R = nothing
        self.head = _NO_HEAD
        self.ports = [_NO_PORT] * ports
        """What its ports have done since the look before; `queue_bytes` is the present one."""
        self.rest: R = nothing
        """Its present rest; counters since its life began."""
        self.rest_before: R = nothing
        """The rest to subtract: `rest` minus this is what was counted since the look before."""
        self.span_ns = 0
        """How much fabric time it has gone through since the look before."""
        self.frames = self.late_frames = self.host_drops = 0
        """Counted over all its lives."""
        self._counts = self.ports
        self._ended = _NO_HEAD
        self._seen = False

    def enter(self, glance: Glance | None, *, late: bool = False) -> None:
        """Enter the newest glance; None when there is none. `late`: it may be that of the look before again."""
        if glance is not None and late and self._seen and head_of(glance) == self.head:
            self._stay()
            return
        if glance is None:
            self.span_ns = 0
            self.rest_before = self.rest
            self.ports = [_NO_PORT] * len(self.ports)
            return
        head, counts, rest = head_of(glance), ports_of(glance), type(self._nothing)(*glance[2])
        counts_before = self._counts
        if not self._seen:
            # At the first look nothing counts as done since the look before.
            self.span_ns, self.rest_before, counts_before = 0, rest, counts
        else:
            self.span_ns, self.rest_before = head.now_ns - self.head.now_ns, self.rest
            if head.incarnation != self.head.incarnation:
                # A new life counts from zero; add what the former lives had counted.
                self._ended = Head(0, 0, 0, self.frames, self.late_frames, self.host_drops)
                self.rest_before, counts_before = self._nothing, [_NO_PORT] * len(counts)
        self.ports = [_step(now, was) for now, was in zip(counts, counts_before, strict=True)]
        self.head, self._counts, self.rest, self._seen = head, counts, rest, True
        self.frames = self._ended.frames + head.frames
        self.late_frames = self._ended.late_frames + head.late_frames
        self.host_drops = self._ended.host_drops + head.host_drops

    def _stay(self) -> None:
        """Handle a repeated glance: rates stay those of the look before, and nothing is counted twice."""
        self.ports = [port._replace(marks=0, trims=0, drops=0) for port in self.ports]
        before = self.rest_before
        rest = self.rest._replace(pauses=before.pauses, asks=before.asks)
        if isinstance(rest, NicRest) and isinstance(before, NicRest):
            rest = rest._replace(placed=before.placed, rc=_stayed(rest.rc, before.rc))
        self.rest_before = rest

    def rate(self, amount: float) -> float:
        """An amount since the look before, per second of fabric time; 0 when no fabric time has passed."""
        return amount * NS_PER_S / self.span_ns if self.span_ns > 0 else 0.0


def _stayed(now: Sequence[Any], before: Sequence[Any]) -> Sequence[Any]:
    """What to subtract from an `RcGlance` that is repeated: rates stay, bytes do not count twice."""
    if not now or not before:
        return now
    return RcGlance(*before)._replace(retransmitted_bytes=RcGlance(*now).retransmitted_bytes)


def _step(now: PortGlance, was: PortGlance) -> PortGlance:
    return PortGlance(
        now.wire_bytes - was.wire_bytes,
        now.queue_bytes,
        now.marks - was.marks,
        now.trims - was.trims,
        now.drops - was.drops,
    )
