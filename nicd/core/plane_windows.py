"""The congestion contexts towards one destination, and on which planes they let a packet leave.

Owns which context answers for which plane, the bytes in flight of each, and the bitmap of planes with room. How a window
moves is its policy's (`window`); who sends next on which port is the scheduler's.

MRC 1.0 4 has one context per destination, and knows one network. The planes of an MRC fabric are networks of their own:
what one of them delays, marks or trims says nothing about the others, and a window that they share goes to the slowest,
because its packets stay longest. So by default each plane has a context (`congestion_scope`: plane); with `destination`
one context serves all planes.

An acknowledgement frees packets of several planes. Each context is told of its own bytes; the mark and the round trip
go to the context of the plane that the packet which caused it had taken.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from mrcfabric.units import Instant
from nicd.core.congestion import window_towards
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats
from nicd.core.window import CongestionWindow, WindowSetup

NO_PLANE: Final = -1
"""An acknowledgement that no single packet has caused."""


class Sums(NamedTuple):
    """Of all contexts towards a destination."""

    contexts: int
    cwnd_bytes: int
    cwnd_bytes_min: int
    inflight_bytes: int


class PlaneWindows:
    """The contexts towards one destination. `open` is exact after every call."""

    __slots__ = ("_acked", "_alone", "_covers", "_mtu", "_number", "contexts", "of", "open")

    def __init__(self, settings: NicSettings, rates: Sequence[int], stats: NicStats) -> None:
        """`rates`: what both ends' ports carry, plane by plane, in bits per second."""
        total = sum(rates)
        self._alone = settings.congestion_scope == "plane"
        """Each context serves one plane."""
        if self._alone:
            self.contexts = [window_towards(WindowSetup(settings, rate, stats, total)) for rate in rates]
            self._number = list(range(len(rates)))
            self._covers = [1 << plane for plane in range(len(rates))]
        else:
            self.contexts = [window_towards(WindowSetup(settings, total, stats, total))]
            self._number = [0] * len(rates)
            self._covers = [(1 << len(rates)) - 1]
        self.of: list[CongestionWindow] = [self.contexts[number] for number in self._number]
        """Plane -> its context."""
        self._mtu = settings.mtu_bytes
        self._acked = [0] * len(self.contexts)
        """Acknowledged, and not yet told to the context."""
        self.open = (1 << len(rates)) - 1
        """Bit p: a packet may leave on plane p as far as windows say."""

    # -- what is in flight

    def left(self, plane: int, size: int) -> None:
        """A packet with `size` payload bytes leaves on `plane`."""
        window = self.of[plane]
        window.inflight_bytes = inflight = window.inflight_bytes + size
        if inflight + self._mtu > window.cwnd_bytes:
            self.open &= ~self._covers[self._number[plane]]

    def acked(self, plane: int, size: int) -> None:
        """One that left on `plane` was acknowledged: `on_sack` follows."""
        number = self._number[plane]
        self.contexts[number].inflight_bytes -= size
        self._acked[number] += size

    def gone(self, plane: int, size: int) -> None:
        """One that left on `plane` is no longer in flight, and did not arrive as far as anybody knows."""
        self.of[plane].inflight_bytes -= size
        self._check(self._number[plane])

    # -- what the network says

    def on_sack(self, now: Instant, plane: int, marked: bool, rtt_ns: int | None, penalty: int) -> None:
        """An acknowledgement: those that `acked` named arrived.

        It was caused by a packet that left on `plane`, or by none (NO_PLANE); the others as `CongestionWindow.on_sack`.
        """
        acked = self._acked
        cause = -1 if plane < 0 else self._number[plane]
        for number, window in enumerate(self.contexts):
            size = acked[number]
            if number == cause:
                window.on_sack(now, size, marked, rtt_ns, penalty)
            elif size:
                window.on_sack(now, size, False, None, penalty)
            else:
                continue
            acked[number] = 0
            self._check(number)

    def on_trim(self, now: Instant, plane: int, size: int) -> None:
        """A packet of `size` payload bytes was trimmed on `plane`."""
        self.of[plane].on_trim(now, size)
        self._check(self._number[plane])

    def on_loss(self, now: Instant, plane: int, size: int, port_down: bool = False) -> None:
        """A packet was lost on `plane` without a trim; `port_down`: the plane went down at one end."""
        # A context of this plane alone has nothing to send by until the plane is back, and then what it had.
        if not (port_down and self._alone):
            self.of[plane].on_loss(now, size, port_down)
            self._check(self._number[plane])

    def _check(self, number: int) -> None:
        """Whether the next packet fits this context now."""
        window = self.contexts[number]
        inflight = window.inflight_bytes
        # UEC CMS: send while inflight + MTU <= cwnd; one packet may always be out.
        if inflight + self._mtu <= window.cwnd_bytes or not inflight:
            self.open |= self._covers[number]
        else:
            self.open &= ~self._covers[number]

    # -- to be told

    @property
    def cwnd_bytes(self) -> int:
        """What may be in flight on all planes together."""
        return sum([window.cwnd_bytes for window in self.contexts])

    @property
    def inflight_bytes(self) -> int:
        """What is."""
        return sum([window.inflight_bytes for window in self.contexts])

    def sums(self) -> Sums:
        """Number, sums and the smallest window."""
        sizes = [window.cwnd_bytes for window in self.contexts]
        return Sums(len(sizes), sum(sizes), min(sizes), self.inflight_bytes)

    def record(self) -> dict[str, int]:
        """For a row of the table of QPs: sums over the contexts; of times and delays the longest."""
        rows = [window.record() for window in self.contexts]
        record = {"inflight_bytes": self.inflight_bytes, "cwnd_bytes": self.cwnd_bytes}
        for name in rows[0]:
            values = [row[name] for row in rows]
            record[name] = max(values) if name.endswith("_ns") else sum(values)
        return record
