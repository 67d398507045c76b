"""How much may be in flight towards one destination: the congestion policy's place.

Owns the interface that the requestor calls, and the fixed window. A policy is per destination NIC and shared by all
QPs to it (MRC 1.0: one congestion context per destination). The requestor reads `cwnd_bytes` and `inflight_bytes` as
plain integers for every packet, and reports once per acknowledgement, so that a policy may be as elaborate as it likes.
The receiver's tracking window (MPR) is another window and belongs to the requestor.
"""

from typing import Protocol

from mrcfabric.units import Instant


class CongestionWindow(Protocol):
    """A congestion policy towards one destination."""

    cwnd_bytes: int
    """Payload bytes that may be in flight."""
    inflight_bytes: int
    """Payload bytes that are; kept by the requestors."""

    def on_sack(self, now: Instant, acked_bytes: int, marked: bool, rtt_ns: int | None) -> None:
        """A SACK freed `acked_bytes`; `marked`: its packet met congestion; `rtt_ns`: a valid sample, or None."""
        ...

    def on_trim(self, now: Instant, size: int) -> None:
        """A packet of `size` payload bytes was trimmed."""
        ...

    def on_loss(self, now: Instant, size: int) -> None:
        """A packet of `size` payload bytes was lost without a trim."""
        ...


class FixedWindow:
    """A window that stays where it is; trims alone push it down for a while when `trim_response` is set.

    Without any response an incast of fixed windows would trim the same packets until their retries run out.
    """

    __slots__ = ("_mtu_bytes", "_trim_response", "cwnd_bytes", "cwnd_bytes_max", "inflight_bytes")

    def __init__(self, cwnd_bytes: int, mtu_bytes: int, trim_response: bool) -> None:
        self.cwnd_bytes_max = max(cwnd_bytes, mtu_bytes)
        self.cwnd_bytes = self.cwnd_bytes_max
        self.inflight_bytes = 0
        self._mtu_bytes = mtu_bytes
        self._trim_response = trim_response

    def on_sack(self, now: Instant, acked_bytes: int, marked: bool, rtt_ns: int | None) -> None:
        """One MTU more per window acknowledged, up to the fixed size."""
        if self.cwnd_bytes < self.cwnd_bytes_max:
            grown = self.cwnd_bytes + max(1, acked_bytes * self._mtu_bytes // self.cwnd_bytes)
            self.cwnd_bytes = min(grown, self.cwnd_bytes_max)

    def on_trim(self, now: Instant, size: int) -> None:
        # MRC 1.0 / UEC CMS: a trim takes the packet's size off the window, one MTU stays.
        if self._trim_response:
            self.cwnd_bytes = max(self.cwnd_bytes - size, self._mtu_bytes)

    def on_loss(self, now: Instant, size: int) -> None:
        """A broken path says nothing about congestion."""
