"""Another NIC, as this one knows it: the ways to it, its ports, the window towards it, and the reverse set.

Owns the paths of acknowledgements (one EV per plane, kept fresh by endpoint EV probes while the peer's data arrive,
or by the SACKs of our own data) and Port Status Updates in both directions. Shared by all QPs to this peer: a
deliberate difference from one reverse set per QP, with the same paths behind it.

MRC 1.0 section 2.6 of the endpoint operations; arXiv 2605.04333 section 2 (reverse paths, port state).
"""

from collections import deque
from collections.abc import Callable

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.layout import OP_EV_PROBE, OP_PORT_STATUS, timestamp_of
from mrcfabric.wire.srh import SrhControlTemplate
from nicd.core.board import Board
from nicd.core.events import PeerPortChange
from nicd.core.path_policy import POLICIES, Reverse
from nicd.core.plane_windows import PlaneWindows
from nicd.core.scheduler import Sender
from nicd.core.stamps import since_ns
from nicd.core.timers import Timer

_ID_MASK = 0xFFFF
_EV_PROBES_MAX = 64
"""EV probes of one peer waiting for an answer; the oldest is forgotten beyond it."""
_OVERTAKEN_RTOS = 4
"""No packet is under way for longer than this many RTOs."""


class Peer:
    """One NIC that QPs of ours are connected to."""

    __slots__ = (
        "_asked",
        "_board",
        "_candidates",
        "_confirmed_ns",
        "_control",
        "_denies",
        "_drawn",
        "_ev_probes",
        "_fresh",
        "_last_update",
        "_last_update_ns",
        "_on_ports",
        "_own_planes",
        "_plane",
        "_planes",
        "_refresh",
        "_replying",
        "_request_id",
        "_reverse_path",
        "_rng",
        "_silence",
        "_sprayed",
        "_stale_ns",
        "_update_id",
        "_update_number",
        "_update_tries",
        "_update_wait_ns",
        "_updates",
        "address",
        "data_ns",
        "destination",
        "index",
        "reverse",
        "sharing",
        "up",
        "windows",
    )  # fmt: skip

    def __init__(self, board: Board, index: int, on_ports: Callable[[Instant, "Peer", int], None]) -> None:
        """`on_ports` is told of planes that changed at the peer: (now, peer, bits that changed)."""
        config = board.config
        settings = board.settings
        planes = len(config.ports)
        self._board = board
        self._on_ports = on_ports
        self._rng = Rng(config.seed, config.name, "peer", index)
        self.index = index
        self.destination = config.paths.towards(index)
        self.address = self.destination.address
        self.up = (1 << planes) - 1
        """Bit p: the peer's port p is reachable, as far as it has told us."""
        self.windows = PlaneWindows(settings, self.destination.rates_bps, board.stats)
        self.sharing: deque[Sender] = deque()
        """The living QPs that share these windows."""
        self._control = SrhControlTemplate(config.address, self.address, 2, dscp=config.dscp, options=config.options)
        reverse = POLICIES[settings.path_policy].reverse
        self._fresh = reverse is Reverse.FRESH
        self._sprayed = reverse is Reverse.SPRAYED
        fixed = reverse is Reverse.FIXED
        self._drawn = 1 if fixed else settings.reverse_candidates
        evs, _ = self.destination.draw_evs(self._rng, self._drawn, 0)
        self._candidates: list[list[int]] = [[] for _ in range(planes)]
        for ev in evs:
            self._candidates[self.destination.plane(ev)].append(ev)
        self.reverse = [(ev, self.destination.outer(ev)) for ev in (candidates[0] for candidates in self._candidates)]
        """Plane -> (EV, outer address) of acknowledgements."""
        self._reverse_path = [self.destination.path(ev) for ev, _ in self.reverse]
        self._plane = self._rng.below(planes)
        self._own_planes = self._planes = 1 << self._plane if fixed else (1 << planes) - 1
        """Bit p: plane p may carry acknowledgements; of these, the ones with a path that is not denied."""
        self._denies = bool(board.denied)
        """The NIC's list of denied paths has entries: spares a look into an empty one per SACK."""
        if self._denies:
            for plane in range(planes):
                self.follow_denied(plane)
        self.data_ns: Instant = -1
        """When the peer's data last arrived."""
        self._confirmed_ns: list[Instant] = [-1] * planes
        """When our own data were last acknowledged, by plane."""
        self._silence = [0] * planes
        """Probes of each plane in a row without an answer."""
        self._replying = (1 << planes) - 1
        """Bit p: plane p is not left out for its silence."""
        # So long probing alone would leave a plane, at one random plane per refresh time.
        self._stale_ns = settings.reverse_refresh_ns * planes
        self._refresh = Timer(board.timers, self._refresh_one)
        self._request_id = 0
        self._ev_probes: dict[int, int] = {}
        self._asked: dict[int, Callable[[Instant, int], None]] = {}
        """Request id -> who wants to know, of the controller's own probes."""
        self._last_update = -1
        self._last_update_ns: Instant = 0
        self._update_number = 0
        self._update_id = -1
        self._update_tries = 0
        self._update_wait_ns = 0
        self._updates = Timer(board.timers, self._send_update)

    # -- paths of acknowledgements

    def reply_plane(self) -> int:
        """The plane for the next control packet, in turn; -1 when no plane is up at both ends."""
        mask = self._usable()
        if not mask:
            return -1
        plane = self._plane + 1
        mask |= mask << len(self.reverse)
        mask >>= plane
        plane += (mask & -mask).bit_length() - 1
        if plane >= len(self.reverse):
            plane -= len(self.reverse)
        self._plane = plane
        if self._sprayed:
            self._take(self._candidate(plane))
        return plane

    def _usable(self) -> int:
        """Bit p: acknowledgements may take plane p now."""
        mask = self._board.ports.carrier & self.up & self._planes
        # Were all silent, one of them may be so for the sake of the others: answers go round, too.
        return mask & self._replying or mask

    def probed(self, now: Instant) -> None:
        """The peer asks what has arrived: what we told it may have been lost, on planes that take turns for ever."""
        # An answer of two packets, taking two planes in turn, would lose the same one each time.
        self._plane = self._rng.below(len(self.reverse))
        self.data_arrived(now)

    def confirm(self, now: Instant, plane: int, path: int, ev: int, outer: bytes) -> None:
        """A packet on this EV was answered: acknowledgements of its plane take it too."""
        if self._fresh and not (self._denies and self._is_denied(plane, path)):
            self.reverse[plane] = (ev, outer)
            self._reverse_path[plane] = path
        self._confirmed_ns[plane] = now
        if self._silence[plane]:
            self._answers(plane)

    def _answers(self, plane: int) -> None:
        """Something came through on this plane."""
        self._silence[plane] = 0
        self._replying |= 1 << plane

    def data_arrived(self, now: Instant) -> None:
        """The peer sends data, or probes for want of answers: keep the reverse set fresh."""
        self.data_ns = now
        if self._refresh.at_ns == NEVER:
            self._refresh.set(now + self._board.settings.reverse_refresh_ns)

    def _refresh_one(self, now: Instant) -> None:
        """Probe one EV per refresh time, of a plane where our own data's SACKs do not do the work, while data come."""
        settings = self._board.settings
        if not self._fresh or now - self.data_ns > settings.reverse_idle_ns:
            return
        self._refresh.set(now + settings.reverse_refresh_ns)
        mask = self._board.ports.carrier & self.up & self._planes
        stale = [
            plane
            for plane, confirmed_ns in enumerate(self._confirmed_ns)
            if mask >> plane & 1 and (confirmed_ns < 0 or now - confirmed_ns > self._stale_ns)
        ]
        if not stale:
            return
        plane = stale[self._rng.below(len(stale))]
        if self._silence[plane] < settings.reverse_silent_probes:
            self._silence[plane] += 1
        elif settings.reverse_silent_probes:
            self._replying &= ~(1 << plane)
        ev = self._candidate(plane)
        request = self._next_id()
        if len(self._ev_probes) >= _EV_PROBES_MAX:
            del self._ev_probes[next(iter(self._ev_probes))]
        self._ev_probes[request] = ev
        self._board.stats.reverse_probes += 1
        outer = self.destination.outer(ev)
        packet = self._control.endpoint_request(ev, outer, request, OP_EV_PROBE, 0, timestamp_of(now), data_class=True)
        self._board.ports.offer(now, plane, packet, False)

    def follow_denied(self, plane: int) -> None:
        """The NIC's list of denied paths has changed in `plane`: no acknowledgement over one of them."""
        self._denies = bool(self._board.denied)
        if not self._own_planes >> plane & 1:
            return
        to = self.destination
        candidates = self._candidates[plane]
        if len(candidates) == self._drawn and not any(self._is_denied(plane, to.path(ev)) for ev in candidates):
            # Of the paths in use it may still be one that own data have brought in.
            if self._is_denied(plane, self._reverse_path[plane]):
                self._take(candidates[0])
            return
        # So many that every path of the plane is among them.
        evs, _ = to.draw_evs(self._rng, max(self._drawn, to.paths_per_plane), 0)
        allowed = [ev for ev in evs if to.plane(ev) == plane and not self._is_denied(plane, to.path(ev))]
        self._candidates[plane] = allowed = allowed[: self._drawn]
        if not allowed:
            self._planes &= ~(1 << plane)
            return
        self._planes |= 1 << plane
        if self._is_denied(plane, self._reverse_path[plane]):
            self._take(allowed[0])

    def _is_denied(self, plane: int, path: int) -> bool:
        denied = self._board.denied
        return bool(denied) and denied.covers(plane, path, self.index, not self.destination.same_t0)

    def _take(self, ev: int) -> None:
        """Acknowledgements of the plane of `ev` go by it from now on."""
        plane = self.destination.plane(ev)
        self.reverse[plane] = (ev, self.destination.outer(ev))
        self._reverse_path[plane] = self.destination.path(ev)

    def _candidate(self, plane: int) -> int:
        candidates = self._candidates[plane]
        return candidates[self._rng.below(len(candidates))]

    # -- ports

    def announce_ports(self, now: Instant) -> None:
        """Tell the peer which of our ports have carrier, again and again until it answers."""
        # Numbers of their own: the peer tells newer from older by them, however many EV probes lie between.
        self._update_number = self._update_id = (self._update_number + 1) & _ID_MASK
        self._update_tries = 0
        self._update_wait_ns = self._board.settings.port_update_retry_ns
        self._updates.cancel()
        self._send_update(now)

    def _send_update(self, now: Instant) -> None:
        settings = self._board.settings
        if self._update_id < 0 or self._update_tries >= settings.port_update_tries:
            self._update_id = -1
            return
        self._update_tries += 1
        ports = self._board.ports
        plane = self.reply_plane()
        if plane >= 0:
            ev, outer = self.reverse[plane]
            self._board.stats.port_updates_sent += 1
            packet = self._control.endpoint_request(
                ev, outer, self._update_id, OP_PORT_STATUS, ports.carrier, timestamp_of(now)
            )
            ports.offer(now, plane, packet, True)
        self._updates.set(now + self._update_wait_ns)
        self._update_wait_ns *= 2

    def forget_ports(self) -> None:
        """A new connection to a NIC that may have started again: its ports are up until it says otherwise."""
        self.up = (1 << len(self.reverse)) - 1
        self._last_update = -1

    def on_request(self, now: Instant, request: int, op: int, mask: int, timestamp: int) -> None:
        """An endpoint request of the peer: answer it."""
        if op == OP_PORT_STATUS:
            self._board.stats.port_updates_received += 1
            if self._is_news(now, request):
                self._last_update = request
                self._last_update_ns = now
                self._ports_are(now, mask & (1 << len(self.reverse)) - 1)
        plane = self.reply_plane()
        if plane < 0:
            self._board.stats.drops["no_port"] += 1
            return
        # On any path: were both ends' reverse paths dead, neither could hear that it has found a better one.
        ev = self._candidate(plane)
        packet = self._control.endpoint_response(ev, self.destination.outer(ev), request, op, timestamp)
        self._board.ports.offer(now, plane, packet, True)

    def _is_news(self, now: Instant, request: int) -> bool:
        """Whether a Port Status Update says how things are now."""
        if self._last_update < 0 or 0 < (request - self._last_update & _ID_MASK) <= _ID_MASK >> 1:
            return True
        # Overtaken by a newer one, unless that is so long ago that nothing of then can be under way any more: the peer
        # has started again while a QP to it lives on, and counts from the beginning.
        return now - self._last_update_ns > _OVERTAKEN_RTOS * self._board.settings.rto_ns

    def ask_ev(
        self, now: Instant, plane: int, ev: int, outer: bytes, answered: Callable[[Instant, int], None]
    ) -> int | None:
        """Probe one EV for the controller; `answered` is told (now, port) if the peer answers.

        Returns the request id, None when the plane is down at one end.
        """
        ports = self._board.ports
        if not ports.carrier & self.up & 1 << plane:
            return None
        request = self._next_id()
        if len(self._asked) >= self._board.settings.ev_probe_evs_max:
            del self._asked[next(iter(self._asked))]
        self._asked[request] = answered
        packet = self._control.endpoint_request(ev, outer, request, OP_EV_PROBE, data_class=True)
        ports.offer(now, plane, packet, False)
        return request

    def on_response(self, now: Instant, request: int, op: int, stamp: int = 0, port: int = 0) -> None:
        """The peer answered an endpoint request and sent its time stamp back; it came in by `port`."""
        if op == OP_PORT_STATUS:
            if request == self._update_id:
                self._update_id = -1
                self._updates.cancel()
            return
        answered = self._asked.pop(request, None)
        if answered is not None:
            answered(now, port)
            return
        ev = self._ev_probes.pop(request, None)
        if ev is None:
            return
        self._board.stats.probe_rtt.add(since_ns(now, stamp))
        plane = self.destination.plane(ev)
        self._answers(plane)
        if not self._is_denied(plane, self.destination.path(ev)):
            self._take(ev)

    @property
    def questions(self) -> int:
        """Endpoint EV probes waiting for an answer."""
        return len(self._ev_probes)

    def reverse_rows(self) -> list[dict[str, int | bool]]:
        """One row per plane: the EV and path that acknowledgements to this peer take, and whether the plane is used."""
        usable = self._usable()
        return [
            {"peer_index": self.index, "plane": plane, "ev": ev, "path": path, "usable": bool(usable >> plane & 1)}
            for plane, ((ev, _), path) in enumerate(zip(self.reverse, self._reverse_path, strict=True))
        ]

    def stop(self) -> None:
        """No QP uses this peer any more."""
        self._refresh.cancel()
        self._updates.cancel()

    def _ports_are(self, now: Instant, mask: int) -> None:
        changed = self.up ^ mask
        self.up = mask
        for plane in range(len(self.reverse)):
            if changed >> plane & 1:
                self._board.tell(PeerPortChange(now, self.index, plane, bool(mask >> plane & 1)))
        if changed:
            self._on_ports(now, self, changed)

    def _next_id(self) -> int:
        self._request_id = (self._request_id + 1) & _ID_MASK
        return self._request_id
