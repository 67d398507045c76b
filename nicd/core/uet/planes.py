"""By which plane and entropy the packets of one QP leave, and what the answers say about both.

Owns one choice of entropies per plane, the turn of planes, and planes that are left for a while: one that was silent
while others delivered, as after the loss of a port at the peer, of which UET has no word. UEC 1.0 3.6.16.
"""

from collections.abc import Callable
from typing import Final

from mrcfabric.rng import Rng
from mrcfabric.units import Instant
from nicd.core.board import Board
from nicd.core.timers import Timer
from nicd.core.uet.entropy import PathChoice, Reps, choice_of
from nicd.core.uet.outstanding import Sent
from nicd.core.uet.peer import UetPeer
from nicd.core.uet.uet_stats import UetStats

_DOUBLINGS_MAX: Final = 8
"""A plane is left for a time, and for twice as long each time that it is silent again, so often."""


class Planes:
    """The planes of one QP. Every mask has a bit per plane."""

    __slots__ = (
        "_again_ns", "_choices", "_last", "_leave_ns", "_leaves", "_one", "_peer", "_silences", "_timer", "_turn",
        "_uet", "_wake", "left",
    )  # fmt: skip

    def __init__(self, board: Board, uet: UetStats, peer: UetPeer, rng: Rng, wake: Callable[[], None]) -> None:
        settings = board.settings
        count = len(peer.ports.port)
        self._peer = peer
        self._uet = uet
        self._wake = wake
        self._choices: list[PathChoice] = [choice_of(settings, rng, count) for _ in range(count)]
        self._turn = rng.below(count)
        self._one = settings.uet_mode == "rod"
        """All packets go by one plane, as long as that has carrier."""
        self._last = -1
        self._leaves = settings.uet_leave_planes
        self._leave_ns = settings.uet_plane_leave_ns
        self._silences = [0] * count
        self._again_ns: list[Instant] = [0] * count
        self.left = 0
        """Planes that are left for now."""
        self._timer = Timer(board.timers, self._return)

    def usable(self, carrier: int) -> int:
        """Planes by which packets may leave, of those with carrier here."""
        alive = self._peer.ports.planes_of[carrier]
        if self._one and alive:
            return self._ordered(alive)
        return alive & ~self.left or alive

    def _ordered(self, alive: int) -> int:
        if self._last < 0 or not alive >> self._last & 1:
            planes = [plane for plane in range(alive.bit_length()) if alive >> plane & 1]
            self._last = planes[self._turn % len(planes)]
        return 1 << self._last

    def take(self, mask: int) -> int:
        """The plane whose turn it is, among these."""
        ahead = mask >> self._turn
        plane = self._turn + (ahead & -ahead).bit_length() - 1 if ahead else (mask & -mask).bit_length() - 1
        if not self._one:
            self._turn = (plane + 1) % len(self._choices)
        return plane

    def choose(self, now: Instant, plane: int, avoid: int) -> int:
        """The entropy of the next packet on a plane."""
        return self._choices[plane].choose(now, avoid)

    def any_entropy(self, now: Instant, plane: int) -> int:
        """An entropy for a control packet."""
        return self._choices[plane].choose(now)

    @property
    def choices(self) -> list[PathChoice]:
        """The policy of each plane."""
        return self._choices

    # -- what the network says

    def acked(self, now: Instant, sent: Sent, marked: bool) -> None:
        """A packet has arrived."""
        self._choices[sent.plane].acked(now, sent.entropy, marked)
        self._silences[sent.plane] = 0

    def trimmed(self, now: Instant, sent: Sent, last_hop: bool) -> None:
        """A packet was trimmed; on the last hop no entropy is to blame."""
        if last_hop:
            self._choices[sent.plane].acked(now, sent.entropy, False)
        else:
            self._choices[sent.plane].trimmed(now, sent.entropy)

    def lost(self, now: Instant, sent: Sent) -> None:
        """A packet is gone without a word, and no full queue explains it."""
        plane = sent.plane
        choice = self._choices[plane]
        before = choice.freezes if isinstance(choice, Reps) else 0
        choice.lost(now, sent.entropy)
        if isinstance(choice, Reps):
            self._uet.freezes += choice.freezes - before
        delivered = self._peer.windows.delivered_ns
        others = any(at_ns > sent.sent_ns for other, at_ns in enumerate(delivered) if other != plane)
        if self._one or not self._leaves or not others or delivered[plane] > sent.sent_ns or self.left >> plane & 1:
            return
        self.left |= 1 << plane
        self._uet.planes_left += 1
        self._again_ns[plane] = now + (self._leave_ns << min(self._silences[plane], _DOUBLINGS_MAX))
        self._silences[plane] += 1
        self._timer.set_by(self._again_ns[plane])

    def _return(self, now: Instant) -> None:
        left = 0
        for plane, at_ns in enumerate(self._again_ns):
            if self.left >> plane & 1 and at_ns > now:
                left |= 1 << plane
                self._timer.set_by(at_ns)
        self.left = left
        self._wake()

    def stop(self) -> None:
        """The QP is at its end."""
        self._timer.cancel()
