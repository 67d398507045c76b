"""How large the window of a context may become: the largest one as published, and more while that stays full.

Owns the bound, and when the window was last full; `nscc` says when the window grows, and cuts it.

MRC 1.0 4 bounds a window by one and a half bandwidth-delay products, by a round trip without any queue. That is enough
where all links are alike. A full packet takes longer over slow links, lost packets stay in flight until they are known
to be lost, and what waits on a slow path is missing on the others. Such a plane then carries less than it could without
any queue on most of its paths, and nothing tells its window to stop but this bound.

So a window that stays full may become larger (`cwnd_full_ppt`). One that does not falls back to the published bound: it
has grown only because nothing held it, as that of a flow alone does, and would be a burst when others come. RFC 7661
(congestion window validation) says the same of TCP.
"""

from typing import TYPE_CHECKING, Final

from mrcfabric.units import NEVER, Instant

if TYPE_CHECKING:
    from nicd.core.settings import NicSettings

_HOLD_RTTS: Final = 4
"""A window that was not full for so many round trips is not needed so large: idle moments are shorter."""
_THOUSAND: Final = 1000


class GrowthBound:
    """The bound of one window."""

    __slots__ = ("_full_ns", "_mtu", "_published_bytes", "_room_ppt", "_round_ns", "most_bytes")

    def __init__(self, settings: "NicSettings") -> None:
        self._mtu = settings.mtu_bytes
        # Who names a largest window means it.
        self._room_ppt = _THOUSAND if settings.max_cwnd_bytes else settings.cwnd_full_ppt
        self._published_bytes = self.most_bytes = 0
        """The largest window, and the largest one that stays full."""
        self._round_ns = 0
        """A round trip without any queue."""
        self._full_ns: Instant = NEVER
        """When the window was last full; NEVER: it never was."""

    def measured(self, published_bytes: int, round_ns: int) -> None:
        """The largest window as published and a round trip without any queue are known anew."""
        self._published_bytes = published_bytes
        self.most_bytes = published_bytes * self._room_ppt // _THOUSAND
        self._round_ns = round_ns

    def kept(self, now: Instant, held_bytes: int, cwnd_bytes: int) -> int:
        """What stays of a window of which `held_bytes` were in flight when an acknowledgement came."""
        if held_bytes + self._mtu > cwnd_bytes:
            self._full_ns = now
        elif cwnd_bytes > self._published_bytes and now - self._full_ns > _HOLD_RTTS * self._round_ns:
            return self._published_bytes
        return cwnd_bytes

    def grown(self, now: Instant, cwnd_bytes: int, wanted_bytes: int) -> int:
        """What becomes of a window of `cwnd_bytes` that is to grow to `wanted_bytes`."""
        if 0 <= now - self._full_ns <= self._round_ns:
            return min(wanted_bytes, self.most_bytes)
        return min(wanted_bytes, max(cwnd_bytes, self._published_bytes))
