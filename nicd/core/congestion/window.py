"""How much may be in flight towards one destination, or on one plane to it: the interface of congestion policies.

Owns the interface of a policy, and the fixed window. Policies have names in `congestion`, `plane_windows` has one per
plane. The receiver's tracking window (MPR) is another window and belongs to the requestor.

MRC 1.0 4: a congestion context is shared by the QPs to its destination. A policy has no clock of its own: it is
told what happens, at instants that never go back, and answers by moving `cwnd_bytes`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from mypy_extensions import mypyc_attr

from mrcfabric.units import Instant

if TYPE_CHECKING:
    from nicd.core.settings import NicSettings
    from nicd.core.stats import NicStats

RESTORE: Final = 0x80
"""Bit of a SACK's penalty byte: restore_cwnd. The other seven are the penalty, 0..127."""


@mypyc_attr(allow_interpreted_subclasses=True)
class CongestionWindow:
    """A congestion policy: one context. Policies inherit from it."""

    __slots__ = ("base_rtt_ns", "crowded_ns", "cwnd_bytes", "inflight_bytes", "rtt_ns")

    cwnd_bytes: int
    """Payload bytes that may be in flight, above 0; below one MTU a packet leaves now and then."""
    inflight_bytes: int
    """Payload bytes that are in flight. The requestors' in-flight tables keep it exactly; a policy never changes it."""
    rtt_ns: int
    """Round trip as measured: a window below one packet lets one leave every `rtt_ns` times MTU / `cwnd_bytes`."""
    crowded_ns: Instant
    """When the network last told of a queue that is nearly full: it explains losses of packets that were out then."""
    base_rtt_ns: int
    """Round trips of full packets below this are told to `on_base_rtt`; 0: none is of interest."""

    @property
    def binds(self) -> bool:
        """Whether `cwnd_bytes` is a bound. If not, it is no number to show to anybody, or to add up."""
        return True

    def on_sack(self, now: Instant, acked_bytes: int, marked: bool, rtt_ns: int | None, penalty: int) -> None:
        """An acknowledgement freed `acked_bytes` of payload, possibly none.

        `marked`: the packet that caused it met congestion; `rtt_ns`: its round trip without service time, None without
        a valid sample; `penalty`: the byte of the SACK that holds restore_cwnd and rcv_cwnd_pen.
        """
        raise NotImplementedError

    def on_base_rtt(self, now: Instant, rtt_ns: int) -> None:
        """A full packet's round trip was shorter than `base_rtt_ns`."""
        raise NotImplementedError

    def on_longer(self, extra_ns: int) -> int:
        """Without any queue a round trip of this context takes so much longer than one of another plane.

        Returns by how many bytes the window is to grow: `paced_growth` calls `grow`.
        """
        raise NotImplementedError

    def on_uneven(self, mean_ns: int) -> int:
        """On average paths are longer by `mean_ns` than the shortest one, against which delays are measured.

        Returns what `on_longer` does.
        """
        raise NotImplementedError

    def grow(self, size: int) -> None:
        """Grow by so many bytes, a part of what `on_longer` or `on_uneven` has asked for."""
        raise NotImplementedError

    def on_trim(self, now: Instant, size: int, last_hop: bool = True) -> None:
        """A packet of `size` payload bytes was trimmed, on the last hop or inside the fabric."""
        raise NotImplementedError

    def on_loss(self, now: Instant, size: int, gives_way: bool = False) -> None:
        """A packet of `size` payload bytes was lost without a trim.

        `gives_way`: the window answers for it, because its plane went down at one end or a full receiver explains it.
        """
        raise NotImplementedError

    def record(self) -> dict[str, int]:
        """What a row of the table of QPs shows beside `cwnd_bytes` and `inflight_bytes`."""
        raise NotImplementedError


class WindowSetup(NamedTuple):
    """What a policy is made from."""

    settings: "NicSettings"
    rate_bps: int
    """What the links of the context's planes carry together: of each plane the slower end's port."""
    stats: "NicStats"
    total_bps: int = 0
    """What all planes to the destination carry: knobs that say bytes per destination are shared out by it.
    0: the context serves them all."""
    near: bool = False
    """The destination hangs on our own T0s."""
    leaves: bool = True
    """Whoever chooses paths leaves one that has lost a packet."""

    def bdp_bytes(self, rtt_ns: int) -> int:
        """What is in flight at this rate during `rtt_ns`."""
        return self.rate_bps * rtt_ns // 8_000_000_000

    def time_ns(self, size: int) -> int:
        """How long so many bytes take at this rate."""
        return size * 8_000_000_000 // self.rate_bps

    def published_bytes(self, rtt_ns: int) -> int:
        """The largest window where a round trip without any queue takes `rtt_ns`, as published."""
        # MRC 1.0 4: 1.5 BDP.
        return self.bdp_bytes(rtt_ns) * 3 // 2

    def most_bytes(self, rtt_ns: int) -> int:
        """The same with room for what waits besides, see `cwnd_spare_packets`."""
        knobs = self.settings
        published = self.published_bytes(rtt_ns)
        if not knobs.cwnd_spare_packets:
            return published
        # The base RTT knows one packet and its SACK. A window is full of packets: those that arrived and wait until a
        # SACK is due, the sender's own port's, and those on whose last bit a SACK waits at a port.
        unsacked = min(knobs.sack_bytes, self.bdp_bytes(knobs.sack_delay_ns) + knobs.mtu_bytes)
        return max(published, self.bdp_bytes(rtt_ns) + unsacked + knobs.cwnd_spare_packets * knobs.mtu_bytes)

    def share(self, size: int) -> int:
        """This context's part of what a knob grants the destination; rounded up."""
        return -(-size * self.rate_bps // self.total_bps) if self.total_bps else size


Policy: TypeAlias = Callable[[WindowSetup], CongestionWindow]
"""What makes a window."""


@mypyc_attr(allow_interpreted_subclasses=True)
class FixedWindow(CongestionWindow):
    """A window that stays where it is; trims alone push it down for a while when `trim_response` is set.

    Without any response an incast of fixed windows would trim the same packets until their retries run out.
    """

    __slots__ = ("_mtu_bytes", "_trim_response", "cwnd_bytes_max")

    def __init__(self, cwnd_bytes: int, mtu_bytes: int, trim_response: bool) -> None:
        self.cwnd_bytes_max = max(cwnd_bytes, mtu_bytes)
        self.cwnd_bytes = self.cwnd_bytes_max
        self.inflight_bytes = 0
        self.base_rtt_ns = self.rtt_ns = 0
        self.crowded_ns: Instant = -1
        self._mtu_bytes = mtu_bytes
        self._trim_response = trim_response

    @classmethod
    def made_for(cls, setup: WindowSetup) -> "FixedWindow":
        """As the settings say: `cwnd_bytes`, or 1.5 times the bandwidth-delay product."""
        settings = setup.settings
        size = setup.share(settings.cwnd_bytes) or setup.published_bytes(settings.base_rtt_ns)
        return cls(size, settings.mtu_bytes, settings.cwnd_trim_response)

    def on_sack(self, now: Instant, acked_bytes: int, marked: bool, rtt_ns: int | None, penalty: int) -> None:
        """One MTU more per window acknowledged, up to the fixed size."""
        if self.cwnd_bytes < self.cwnd_bytes_max:
            grown = self.cwnd_bytes + max(1, acked_bytes * self._mtu_bytes // self.cwnd_bytes)
            self.cwnd_bytes = min(grown, self.cwnd_bytes_max)

    def on_base_rtt(self, now: Instant, rtt_ns: int) -> None:
        """A fixed window does not ask how long a round trip is."""

    def on_longer(self, extra_ns: int) -> int:
        """A fixed window does not ask how much longer a plane is, either."""
        return 0

    def on_uneven(self, mean_ns: int) -> int:
        """Nor how much longer some of its paths are."""
        return 0

    def grow(self, size: int) -> None:
        """It has not asked."""

    def on_trim(self, now: Instant, size: int, last_hop: bool = True) -> None:
        # MRC 1.0 4: a trim takes the packet's size off the window, one MTU stays.
        if self._trim_response:
            self.cwnd_bytes = max(self.cwnd_bytes - size, self._mtu_bytes)

    def on_loss(self, now: Instant, size: int, gives_way: bool = False) -> None:
        """A broken path says nothing about congestion."""

    def record(self) -> dict[str, int]:
        return {"cwnd_bytes_max": self.cwnd_bytes_max}
