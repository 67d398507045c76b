"""One daemon from look to look: what it has done since the look before, whatever became of it in between.

Pure. Owns the differences of counters: a daemon that began anew has done all that it counts, one that is silent has
done nothing that anybody knows of, and nobody knows what was done before the first look. What is counted is
`mrcfabric.glance`'s.
"""

from typing import Final, Generic, TypeVar

from mrcfabric.glance import Glance, Head, NicRest, PortGlance, SwitchRest, head_of, ports_of
from mrcfabric.units import NS_PER_S

R = TypeVar("R", NicRest, SwitchRest)

_NO_HEAD: Final = Head(0, 0, 0, 0, 0, 0)
_NO_PORT: Final = PortGlance(0, 0, 0, 0, 0)


class Track(Generic[R]):
    """One daemon. `enter` every look."""

    def __init__(self, ports: int, nothing: R) -> None:
        """`nothing`: the rest of the glance of a daemon that has just begun."""
        self._nothing: R = nothing
        self.head = _NO_HEAD
        self.ports = [_NO_PORT] * ports
        """What they have done since the look before; `queue_bytes` as it stands."""
        self.rest: R = nothing
        """As it stands, counters since its life began."""
        self.rest_before: R = nothing
        """What to take off its counters for what they have grown by since the look before."""
        self.span_ns = 0
        """Fabric time that it has gone through since the look before."""
        self.frames = self.late_frames = self.host_drops = 0
        """Over all its lives."""
        self._counts = self.ports
        self._ended = _NO_HEAD
        self._seen = False

    def enter(self, glance: Glance | None, *, late: bool = False) -> None:
        """The newest glance; None when there is none. `late`: it may be that of the look before once more."""
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
            self.span_ns, self.rest_before, counts_before = 0, rest, counts
        else:
            self.span_ns, self.rest_before = head.now_ns - self.head.now_ns, self.rest
            if head.incarnation != self.head.incarnation:
                self._ended = Head(0, 0, 0, self.frames, self.late_frames, self.host_drops)
                self.rest_before, counts_before = self._nothing, [_NO_PORT] * len(counts)
        self.ports = [_step(now, was) for now, was in zip(counts, counts_before, strict=True)]
        self.head, self._counts, self.rest, self._seen = head, counts, rest, True
        self.frames = self._ended.frames + head.frames
        self.late_frames = self._ended.late_frames + head.late_frames
        self.host_drops = self._ended.host_drops + head.host_drops

    def _stay(self) -> None:
        """Nothing new is known: rates are as in the look before, and nothing is counted twice."""
        self.ports = [port._replace(marks=0, trims=0, drops=0) for port in self.ports]
        rest, before = self.rest, self.rest_before
        if isinstance(rest, NicRest) and isinstance(before, NicRest):
            rest = rest._replace(placed=before.placed)
        self.rest_before = rest

    def rate(self, amount: float) -> float:
        """An amount since the look before, per second of fabric time; 0 when none has passed."""
        return amount * NS_PER_S / self.span_ns if self.span_ns > 0 else 0.0


def _step(now: PortGlance, was: PortGlance) -> PortGlance:
    return PortGlance(
        now.wire_bytes - was.wire_bytes,
        now.queue_bytes,
        now.marks - was.marks,
        now.trims - was.trims,
        now.drops - was.drops,
    )
