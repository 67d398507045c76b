"""A queue pair: its state, its peer, and the parts that do the work.

Owns the wiring of requestor, responder, EV profile and prober. Each of these has its own module; `queue_pair` has the
life of a QP, which is the same for all transports.
MRC 1.0 section 3: RESET -> INIT -> RTR -> RTS -> ERROR; RTR receives, RTS sends too.
"""

from collections.abc import Callable
from functools import partial

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.fastpath import SackFields
from mrcfabric.wire.layout import (
    M_ALWAYS_SKIP,
    M_SKIP_ONCE,
    NACK_TRIMMED,
    NACK_TRIMMED_LASTHOP,
    NACK_UNEXP_EVENT,
    timestamp_of,
)
from mrcfabric.wire.srh import SrhControlTemplate, SrhDataTemplate
from mrcfabric.wire.templates import ControlTemplate, DataTemplate
from mrcfabric.wire.usid import CONTAINER_SIZE
from nicd.core.commands import ConnectQp, ModifyQp, PostWrite
from nicd.core.ev_state import EvTrigger
from nicd.core.events import STATUS_FLUSHED
from nicd.core.memory import Region
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.ev_profile import EvProfile
from nicd.core.mrc.ev_profiles import EvReporter, Profile
from nicd.core.mrc.limits import Hints, Limits, Offer, retry_timers
from nicd.core.mrc.path_policy import POLICIES
from nicd.core.mrc.path_search import PathSearch
from nicd.core.mrc.peer import Peer
from nicd.core.mrc.probe import Prober
from nicd.core.mrc.recovery import QpLink
from nicd.core.mrc.requestor import Requestor
from nicd.core.mrc.responder import Responder
from nicd.core.mrc.sack import RCVD_MASK, RCVD_SHIFT
from nicd.core.qp_state import QpState
from nicd.core.queue_pair import QueuePair
from nicd.core.stamps import since_ns


def _no_word(now: Instant, plane: int, path: int, ev: int, outer: bytes) -> None:
    """Ignore a path that was seen to work: acknowledgements do not take it."""


class Link(QpLink):
    """A connected QP: both halves and its EVs, and the calls between them."""

    __slots__ = (
        "_board", "_confirm", "_control", "_peer_ooo", "_peer_qpn", "_peer_received", "_planes_of",
        "_port", "_ports_of", "_qp", "limits", "peer", "prober", "profile",
        "requestor", "responder", "search", "windows",
    )  # fmt: skip

    def __init__(self, qp: "Qp", board: MrcBoard, request: ConnectQp, limits: Limits, peer: Peer) -> None:
        config = board.config
        settings = board.settings
        self._board = board
        self._qp = qp
        self.qpn = qp.qpn
        self.peer = peer
        self.peer_index = peer.index
        self.windows = peer.windows
        self._port, self._ports_of, self._planes_of = peer.ports.port, peer.ports.ports_of, peer.ports.planes_of
        self._peer_qpn = request.peer_qpn
        self.limits = limits
        rng = Rng(config.seed, config.name, "qp", qp.qpn, "evs")
        self.profile = EvProfile(
            qp.qpn, qp.profile.universe.draw(peer.destination, rng), peer.destination.planes,
            POLICIES[settings.path_policy], rng, board.stats,
            EvReporter(board.tell, board.ev_events, qp.profile, self._port), self._ev_failed,
            settings.skip_ns, board.ev_tally,
            settings.path_late_ns if settings.path_shares else 0, settings.base_rtt_ns, settings.path_forget_ns,
            settings.plane_keep_ppt, settings.path_dead_losses, settings.skip_turn_ppt,
        )  # fmt: skip
        for plane, deck in enumerate(self.profile.decks):
            if deck.shares is not None:
                deck.shares.on_uneven = partial(peer.windows.on_uneven, plane)
                if settings.base_rtt_compared:
                    deck.shares.probed_ns = partial(self._probed_ns, plane)
                if not settings.trim_nack:
                    deck.shares.untrimmed()
        srh = any(len(outer) > CONTAINER_SIZE for outer in self.profile.outer)
        control_template = SrhControlTemplate if srh else ControlTemplate
        data_template = SrhDataTemplate if srh else DataTemplate
        # An SRH belongs to an EV of this profile, so such paths are no use for acknowledgements.
        self._confirm = _no_word if srh else peer.confirm
        self._control = control_template(
            config.address, peer.address, request.peer_qpn, qp.qpn, dscp=config.dscp, options=config.options
        )
        data = data_template(
            config.address, peer.address, request.peer_qpn, dscp=config.dscp, ts=settings.timestamps,
            options=config.options,
        )  # fmt: skip
        self.prober = Prober(self.profile, settings, board.stats, board.timers, self._send_probe)
        self.search = PathSearch(
            self.profile,
            settings.base_rtt_ns,
            board.timers,
            self._open_planes,
            self.prober.ask,
            self.ask_path,
            peer.windows.are_crowded,
        )
        self.requestor = Requestor(self, board, self.profile, data, peer.windows, peer.ports, request.psn_send, limits)
        self.responder = Responder(self, board, peer, self._control, request.psn_receive, limits)
        self.waiting = False
        self._peer_ooo = 0
        """Packets that the peer held out of order at the last SACK."""
        self._peer_received = 0
        """Units of 256 bytes that the peer has counted; unbounded, 24 bits travel."""
        peer.sharing.append(self)
        self.planes = 0
        """Bit p: plane p is up at both ends and has an active EV."""
        self.update_planes()

    def _probed_ns(self, plane: int, now: Instant, card: int, seems_ns: int) -> int:
        """By how much the path of this EV is longer than its plane, as probes say; NEVER: they have not said it yet."""
        profile, extra_ns = self.profile, self.windows.extra_ns(plane)
        longer_ns = self.peer.path_lengths.longer(
            now, plane, profile.path[card], profile.evs[card], profile.outer[card], seems_ns + extra_ns
        )
        return longer_ns if longer_ns == NEVER else max(0, longer_ns - extra_ns)

    # -- for the scheduler

    def open_ports(self) -> int:
        """Bit p: a plane with room in its window leaves by port p and is up at both ends."""
        return self._ports_of[self.planes & self.windows.open]

    def has_packet(self) -> bool:
        return self.requestor.has_packet()

    def emit(self, now: Instant, ports: int) -> tuple[int, bytearray]:
        """The next packet, on a plane that leaves by one of `ports`, and that port."""
        plane = self.profile.pick_plane(self._planes_of[ports] & self.planes & self.windows.open)
        return self._port[plane], self.requestor.emit(now, plane)

    # -- for the two halves

    def window_moved(self) -> None:
        """A packet may leave now that could not before, of this QP or of one that shares the windows."""
        sharing = self.peer.sharing
        # Room for one packet at a time must not always go to the same QP.
        sharing.rotate(-1)
        wake = self._board.scheduler.wake
        for link in sharing:
            wake(link)

    def ask(self, now: Instant) -> None:
        """Send a probe on any good EV, to learn what has arrived."""
        mask = self.planes
        if mask:
            self._board.stats.tail_probes += 1
            self.prober.ask(now, self.profile.decks[self.profile.pick_plane(mask)].pick(now))
        self.search.begin(now)

    def heard(self, now: Instant) -> None:
        """The peer lives, and so do a path to it and a path back."""
        self.search.heard(now)

    def fragile(self, now: Instant) -> bool:
        """Whether no path is known to live, or the first was found only a moment ago."""
        return self.search.urgent(now)

    def ask_path(self, now: Instant, index: int, answered: Callable[[Instant, int], None]) -> bool:
        """Probe the path of an EV, past the queues of data."""
        profile = self.profile
        return self.peer.ask_path(now, profile.plane[index], profile.evs[index], profile.outer[index], answered)

    def path_dead(self, now: Instant, index: int) -> None:
        """Probes say that the path of this EV is dead."""
        self.profile.leave_path(now, index, EvTrigger.PATH, True)
        self._board.scheduler.wake(self)

    def fail(self, now: Instant, status: str, reason: str) -> None:
        """The QP goes to ERROR."""
        self._qp.fail(now, status, reason)

    # -- work

    @property
    def unfinished(self) -> int:
        return self.requestor.unfinished

    @property
    def untouched(self) -> bool:
        return self.responder.untouched

    def take(self, now: Instant, work: PostWrite, region: Region, view: memoryview) -> None:
        self.requestor.post(now, work, region, view)
        self._board.scheduler.wake(self)

    def on_sack(self, now: Instant, sack: SackFields, rtx: bool = False, port: int = -1) -> bool:
        """Take a SACK as `read_sack` returns it; `rtx`: a retransmission caused it. False: nonsense, dropped."""
        m, pr, ack_offset, entropy, cack, mpr, sack_offset, bitmap, stamp, ooo_count, restore, penalty, received = sack
        marked = m == M_SKIP_ONCE
        profile = self.profile
        index = profile.index_of.get(entropy)
        urgent = pr and (self.search.urgent(now) or self.requestor.starved(now))
        # A probe's mark concerns only the probe's path, on which perhaps no data is sent.
        good = self.requestor.on_sack(
            now, cack, None if pr else ack_offset, sack_offset, bitmap, marked and not pr, stamp, rtx,
            restore << 7 | penalty, None if pr else index, ooo_count,
            self._planes_of[1 << port].bit_length() - 1 if port >= 0 else -1, received,
        )  # fmt: skip
        if not good:
            return False
        if mpr and self.limits.dynamic_mpr:
            self.requestor.obey(cack, mpr)
        self._peer_ooo = ooo_count
        # UEC PDS: modulo 2**24 in units of 256 bytes; an older SACK that was overtaken is ignored.
        newly = (received - self._peer_received) & RCVD_MASK
        if newly <= RCVD_MASK >> 1:
            self._peer_received += newly
        if pr:
            asked_ns = self.prober.asked_ns(ack_offset & 0xFFFF)
            answered = self.prober.on_answer(now, ack_offset & 0xFFFF, m, bool(urgent))
            self.update_planes()
            if urgent and asked_ns >= 0:
                self.requestor.on_probed(now, asked_ns, cack, sack_offset, bitmap)
            self._board.scheduler.wake(self)
            # Several SACKs may answer one probe; the first counts for its EV.
            if not answered:
                return True
            self._board.stats.probe_rtt.add(since_ns(now, stamp))
        if index is None:
            return True
        if not pr and (late := self.requestor.came_late(now, cack + ack_offset, index, rtx, received)):
            for sent in late:
                self.prober.excuse(now, sent.ev, sent.sent_ns)
            self.update_planes()
        if marked:
            self._board.stats.ecn_echoed += 1
            profile.feedback(now, index, EvTrigger.ECN)
        elif m == M_ALWAYS_SKIP:
            profile.feedback(now, index, EvTrigger.ALWAYS_SKIP)
        elif not profile.is_late(index):
            # On a longer or slower path acknowledgements would come late: they would seem to tell of a queue.
            self._confirm(now, profile.plane[index], profile.path[index], entropy, profile.outer[index])
        return True

    def on_nack(self, now: Instant, reason: int, entropy: int, psn24: int) -> bool:
        """A NACK. False: nonsense. MRC 1.0 section 3: only a trim inside the fabric says anything about the EV."""
        if reason == NACK_UNEXP_EVENT:
            if not self.requestor.was_sent(psn24):
                return False
            self.fail(now, STATUS_FLUSHED, "unexpected_event")
        elif reason == NACK_TRIMMED:
            self.requestor.recovery.on_nack(now, psn24, "trim", EvTrigger.TRIM, entropy)
        elif reason == NACK_TRIMMED_LASTHOP:
            self.requestor.recovery.on_nack(now, psn24, "trim", EvTrigger.TRIM_LASTHOP, entropy)
        else:
            self.requestor.recovery.on_nack(now, psn24, "nack", None, entropy)
        return True

    # -- planes

    def paths_changed(self) -> None:
        """The controller has barred, freed or replaced EVs of the profile."""
        self.update_planes()
        self._board.scheduler.wake(self)

    def update_planes(self) -> None:
        """Ports, the peer's ports or the profile have changed."""
        self.planes = self._open_planes() & self.profile.filled

    def plane_down(self, now: Instant, plane: int) -> None:
        """A plane went down at one end: losses of packets sent on it until now accuse no EV."""
        self.profile.down_ns[plane] = now
        self.requestor.recovery.plane_down(now)
        self.update_planes()

    def plane_up(self, now: Instant) -> None:
        """A plane is back at both ends."""
        self.update_planes()
        self.prober.wake(now)
        self._board.scheduler.wake(self)

    def stop(self, now: Instant, status: str) -> None:
        """The QP has failed or is destroyed."""
        self._board.scheduler.forget(self)
        self.profile.leave()
        self.prober.stop()
        self.search.stop()
        self.requestor.recovery.doubt_probes.stop()
        self.responder.stop()
        self.requestor.flush(now, status, STATUS_FLUSHED)
        if self in self.peer.sharing:
            self.peer.sharing.remove(self)
            self.window_moved()

    def record(self) -> dict[str, int | str]:
        """The connected part of a row of the table of QPs."""
        requestor = self.requestor
        return {
            "peer_index": self.peer.index,
            "peer_qpn": self._peer_qpn,
            "unfinished": requestor.unfinished,
            "inflight_packets": requestor.inflight_packets,
            **requestor.windows.record(),
            "peer_out_of_order": self._peer_ooo,
            "peer_received_bytes": self._peer_received << RCVD_SHIFT,
            "psn_next": requestor.psn_next,
            "cack": requestor.cack,
            "expected": self.responder.window.expected,
            "out_of_order": self.responder.window.ooo_count,
            "bytes_placed": self.responder.bytes_placed,
            "duplicates": self.responder.duplicates,
            "planes": self.planes,
            **self.limits.record(),
        }

    def _ev_failed(self, now: Instant, index: int) -> None:
        self.prober.watch(now, index)
        self.update_planes()

    def _open_planes(self) -> int:
        """Bit p: plane p is up at both ends."""
        return self.peer.ports.alive(self._board.ports.carrier, self.peer.up)

    def _send_probe(self, now: Instant, index: int, probe_id: int) -> bool:
        profile = self.profile
        plane = profile.plane[index]
        if not self._open_planes() >> plane & 1:
            return False
        packet = self._control.probe(profile.evs[index], profile.outer[index], probe_id, timestamp_of(now))
        self._board.ports.offer_probe(now, self._port[plane], packet)
        return True


class Qp(QueuePair[Link]):
    """One QP, with its profile and its limits."""

    __slots__ = ("_mrc", "hints", "offer", "profile")

    def __init__(self, board: MrcBoard, qpn: int, now: Instant, profile: Profile, offer: Offer, hints: Hints) -> None:
        super().__init__(board, qpn, now)
        self._mrc = board
        self.offer = offer
        """The limits that we grant the peer."""
        self.hints = hints
        # MRC 1.0 6: tied to exactly one profile, from INIT on.
        self.profile = profile

    def connect(self, now: Instant, request: ConnectQp, limits: Limits, peer: Peer) -> None:
        """Learn the peer, move to RTR: from now on this QP receives."""
        self.enter(now, QpState.RTR, "connected")
        self.link = Link(self, self._mrc, request, limits, peer)

    def start(self, now: Instant, request: ModifyQp) -> None:
        """Move to RTS: from now on this QP sends too. RefusedError when it cannot, or for a timer out of bounds."""
        timers = retry_timers(self._board.settings, request)
        self.enter(now, QpState.RTS, "modified")
        assert self.link is not None
        self.link.requestor.set_timers(*timers)

    def record(self) -> dict[str, int | str]:
        row = super().record()
        return row | {"offered_mpr": self.offer.mpr, "offered_wimm": self.offer.max_wimm, **self.hints._asdict()}
