"""The paths by which acknowledgements go back to one peer: one EV per plane, chosen by what was seen to work.

Owns which EV each plane uses, which planes are in doubt, and the EV probes that settle it.

A path is proved by an answer to something that we sent on it: an EV probe, or our own data. While the peer's data
arrive, we probe the EVs in use plane by plane. If a probe has no answer, its plane is in doubt, and we probe all planes
at once. A plane in doubt carries acknowledgements only when all planes are in doubt. Acknowledgements and EV probes
then take another path each time, until a probe is answered. Two guesses come before others: the path on which the peer
was just heard, turned round, because a dead link is often dead both ways; and the path that was proved last.

MRC 1.0 section 2.6 of the endpoint operations; arXiv 2605.04333 section 2 (reverse paths). The paper probes a random EV
per round trip. Here the EV in use comes first, because the silence of another EV says nothing about it.
"""

from collections.abc import Callable
from typing import Final

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.layout import OP_EV_PROBE, timestamp_of
from mrcfabric.wire.templates import ControlTemplate
from nicd.core.congestion.plane_windows import PlaneWindows
from nicd.core.mrc.backlog import Backlog
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.path_policy import POLICIES, Reverse
from nicd.core.mrc.search_rounds import ROUND_MAX, Rounds
from nicd.core.settings import DestinationLike
from nicd.core.stamps import since_ns
from nicd.core.timers import Timer

Way = tuple[int, int, bytes]
"""The port of ours by which a packet leaves, its EV and its outer address."""

EV_PROBES_MAX: Final = 256
"""Most EV probes to one peer that wait for an answer; beyond it the oldest is forgotten."""
_CANDIDATES_MAX: Final = 256
"""EVs per plane that are tried; with more paths than this, chance decides which ones."""
_DOUBT_IDLE: Final = 8
"""With every plane in doubt, the search ends so many times `reverse_idle_ns` after the peer was last heard."""


class ReverseSet:
    """The reverse paths to one peer, shared by all QPs to it."""

    __slots__ = (
        "_arrived", "_asked_ns", "_backlog", "_before_ns", "_board", "_candidates", "_control", "_cursor", "_denies",
        "_doubted", "_drawn", "_fresh", "_index", "_longer", "_next_id", "_own_planes", "_path", "_plane", "_planes",
        "_ports", "_proved_ns", "_rng", "_round_ns", "_rounds", "_rtt_ns", "_silence", "_sprayed", "_spread_ns",
        "_stale_ns", "_timer", "_to", "_turn_ns", "_wait_ns", "_windows", "data_ns", "questions", "reverse", "up",
    )  # fmt: skip

    def __init__(
        self,
        board: MrcBoard,
        index: int,
        destination: DestinationLike,
        rng: Rng,
        control: ControlTemplate,
        next_id: Callable[[], int],
        windows: PlaneWindows,
    ) -> None:
        """`next_id` returns the id of the next endpoint request; `windows` know which planes our data found longer."""
        settings = board.settings
        planes = destination.planes
        self._board = board
        self._index = index
        self._to = destination
        self._ports = destination.ports
        self._rng = rng
        self._control = control
        self._next_id, self._windows = next_id, windows
        reverse = POLICIES[settings.path_policy].reverse
        self._fresh, self._sprayed, fixed = [reverse is one for one in (Reverse.FRESH, Reverse.SPRAYED, Reverse.FIXED)]
        # Draw as many EVs as there are paths if need be: the draw takes every path before it takes one twice.
        most = max(settings.reverse_candidates, min(destination.paths_per_plane, _CANDIDATES_MAX))
        self._drawn = 1 if fixed else most
        self._candidates = self._draw()
        self.reverse = [self._way(candidates[0]) for candidates in self._candidates]
        """Plane -> the way of acknowledgements."""
        self._path = [destination.path(ev).number for _, ev, _ in self.reverse]
        self._plane = rng.below(planes)
        self._own_planes = self._planes = 1 << self._plane if fixed else (1 << planes) - 1
        """Bit p: plane p may carry acknowledgements. `_planes`: only those with a path that is not denied."""
        self.up = destination.ports.in_ports
        """Bit p: the peer's port p is reachable, as far as it has told us."""
        self._denies = bool(board.denied)  # spares each SACK the look into an empty list of denied paths
        self.data_ns: Instant = -1
        """When the peer's data last arrived."""
        self._proved_ns: list[Instant] = [-1] * planes  # when a packet on the EV in use was last answered, by plane
        self._asked_ns: list[Instant] = [NEVER] * planes  # when its probe left that has no answer; NEVER: none waits
        self._silence = [0] * planes  # unanswered probes in a row of the EV in use, by plane
        self._doubted = 0  # bit p: plane p is in doubt
        self._arrived = [-1] * planes  # EV on which the peer's latest question came, by plane; -1: none
        self._cursor = [0] * planes
        """By plane, index among its candidates of the EV that it tries next when it is in doubt."""
        self._before_ns, self._rtt_ns = [0] * planes, [0] * planes  # of the last two probes answered, by plane
        self._longer = 0  # bit p: by both probes acknowledgements on plane p would arrive too late
        self._rounds, self._round_ns, self._spread_ns = Rounds(), 0, 0
        self._wait_ns, self._backlog = settings.reverse_wait_ns, Backlog(board, self._ports)
        # Probing one plane per refresh time comes back to the same plane after this time.
        self._stale_ns = settings.reverse_refresh_ns * planes
        self._turn_ns: Instant = 0
        self._timer = Timer(board.timers, self._tick)
        self.questions: dict[int, tuple[int, Instant]] = {}
        """Request id -> (EV, when sent) of the EV probes that wait for an answer."""
        if self._denies:
            for plane in range(planes):
                self.follow_denied(plane)

    # -- the way of the next packet

    def reply(self) -> Way | None:
        """The way of the next control packet, planes in turn; None when no plane is up at both ends."""
        mask = self._usable()
        if not mask:
            return None
        plane = self._plane + 1
        mask |= mask << len(self.reverse)
        mask >>= plane
        plane += (mask & -mask).bit_length() - 1
        if plane >= len(self.reverse):
            plane -= len(self.reverse)
        self._plane = plane
        if self._sprayed:
            self._take(self._drawn_from(plane))
        elif self._doubted >> plane & 1:
            self._take(self._next(plane))
        return self.reverse[plane]

    def ways(self, now: Instant, port: int, ev: int) -> list[Way]:
        """The ways by which to answer a packet that came in by `port` on the peer's EV `ev`; empty: no plane is up.

        As a rule two, because either may be dead: the same way turned round, and one that was proved lately.
        """
        mask = self._open()
        found: list[Way] = []
        if not self._fresh:
            return [] if self.reply() is None else [self._way(self._drawn_from(self._plane))]
        # The same EV turned round leaves by the port where it came, unless the peer numbers its planes otherwise.
        turned = self._to.path(ev)
        behind = self._backlog.planes()
        if mask >> turned.plane & 1 and turned.port == port and not self._is_denied(turned.plane, turned.number):
            self._arrived[turned.plane] = ev
            found.append(self._way(ev))
            if behind >> turned.plane & 1:
                return found
        way = self.reply()
        if way is None:
            return found
        short = mask & ~(self._longer | self._windows.late_back) or mask
        proved = max((at_ns, other) for other, at_ns in enumerate(self._proved_ns) if short >> other & 1)[1]
        if self._proved_ns[proved] >= 0 and not self._doubted >> proved & 1:
            way = self.reverse[proved]
        # Different EVs may name one path: compare ports and addresses.
        if not found or way[::2] != found[0][::2]:
            found.append(way)
        if not mask & ~self._doubted:
            found += self._spread(now, mask & ~behind)
        return found

    def _spread(self, now: Instant, mask: int) -> list[Way]:
        """All planes are in doubt: send the same answer on more paths, so that a few answers try every path."""
        if now < self._spread_ns or not mask:
            return []
        self._spread_ns = now + self._board.settings.reverse_refresh_ns // 2
        planes = [plane for plane in range(len(self.reverse)) if mask >> plane & 1]
        most = min(ROUND_MAX, self._to.paths_per_plane * len(planes))
        return [self._way(self._next(plane)) for plane in (planes * (most // len(planes) + 1))[:most]]

    def _open(self) -> int:
        return self._ports.alive(self._board.ports.carrier, self.up) & self._planes

    def _usable(self) -> int:
        """Bit p: acknowledgements may take plane p now."""
        mask = self._open()
        # With all planes in doubt use all: one may only seem silent, because answers to its probes took the others.
        late = self._longer | self._windows.late_back
        return mask & ~self._doubted & ~late or mask & ~self._doubted or mask

    def _way(self, ev: int) -> Way:
        path = self._to.path(ev)
        return path.port, ev, path.outer

    # -- what is known

    def probed(self, now: Instant) -> None:
        """The peer asks what has arrived, perhaps because our answers were lost: change the turn of the planes."""
        # If an answer of two packets took two planes in turn, a dead plane would lose the same packet each time.
        self._plane = self._rng.below(len(self.reverse))
        if self._fresh:
            self._verify_relied(now, self._open())
        self.data_arrived(now)

    def confirm(self, now: Instant, plane: int, path: int, ev: int, outer: bytes) -> None:
        """A packet on this EV was answered: acknowledgements of its plane use this EV, too."""
        if self._fresh and not (self._denies and self._is_denied(plane, path)):
            self.reverse[plane] = (self._ports.port[plane], ev, outer)
            self._path[plane] = path
        self._prove(now, plane)

    def _prove(self, now: Instant, plane: int) -> None:
        self._proved_ns[plane] = now
        if self._silence[plane]:
            self._silence[plane] = 0
            self._asked_ns[plane] = NEVER
            self._doubted &= ~(1 << plane)

    def data_arrived(self, now: Instant) -> None:
        """The peer sends data, or probes because it lacks answers: keep the reverse set fresh."""
        self.data_ns = now
        if self._timer.at_ns == NEVER and self._fresh:
            self._turn_ns = max(self._turn_ns, now + self._board.settings.reverse_refresh_ns)
            self._timer.set(self._turn_ns)

    def answered(self, now: Instant, request: int, stamp: int) -> None:
        """The peer answered the endpoint request `request`; ignored unless it is an EV probe of ours."""
        ev, asked_ns = self.questions.pop(request, (None, 0))
        if ev is None:
            return
        self._board.stats.probe_rtt.add(since_ns(now, stamp))
        plane = self._to.path(ev).plane
        self._before_ns[plane], self._rtt_ns[plane] = self._rtt_ns[plane], now - asked_ns
        limit_ns = min([ns for ns in self._rtt_ns if ns], default=0) + self._board.settings.reverse_lag_ns
        pairs = enumerate(zip(self._before_ns, self._rtt_ns, strict=True))
        self._longer = sum(1 << number for number, pair in pairs if min(pair) > limit_ns)
        if not self._is_denied(plane, self._to.path(ev).number):
            self._take(ev)
        self._prove(now, plane)

    # -- probing

    def _tick(self, now: Instant) -> None:
        """While data come: probe EVs that were not proved for long, and search for paths where there is doubt."""
        settings = self._board.settings
        mask = self._open()
        lost = bool(mask) and not mask & ~self._doubted
        if now - self.data_ns > settings.reverse_idle_ns * (_DOUBT_IDLE if lost else 1):
            return
        free = mask & ~self._backlog.wait(now, self._asked_ns)
        if mask:
            self._judge(now, mask)
            if not mask & ~self._doubted:
                self._search(now, free)
            elif now >= self._turn_ns:
                self._verify_one(now, free)
                if mask & self._doubted:
                    # The other planes carry what the doubted ones do not.
                    self._verify_relied(now, mask)
        if now >= self._turn_ns:
            self._turn_ns = self._board.probe_turns.next(now)
        if mask and not mask & ~self._doubted:
            soonest = self._round_ns
        else:
            soonest = min(self._turn_ns, max(now, min(self._asked_ns)) + self._wait_ns)
        self._timer.set(max(now + 1, soonest))

    def _judge(self, now: Instant, mask: int) -> None:
        """Put planes in doubt whose EV in use was probed and has not answered for long enough."""
        doubted = self._doubted
        limit = self._board.settings.reverse_silent_probes
        for plane, asked_ns in enumerate(self._asked_ns):
            # A long path is not a dead one: a path that has answered gets 1.5 times the round trip it took.
            if now < asked_ns + max(self._wait_ns, self._rtt_ns[plane] * 3 // 2):
                continue
            self._asked_ns[plane] = NEVER
            if not limit:
                continue
            if self._silence[plane] >= limit:
                self._doubted |= 1 << plane
            elif mask >> plane & 1:
                self._verify(now, plane)
        if self._doubted == doubted:
            return
        self._rounds.reset()
        self._round_ns = now
        # What broke one path may have broken others: probe all at once.
        self._verify_relied(now, mask)

    def _verify_relied(self, now: Instant, mask: int) -> None:
        """Probe every plane that is not in doubt and was not proved just now."""
        relied = mask & ~self._doubted
        for plane, proved_ns in enumerate(self._proved_ns):
            if relied >> plane & 1 and proved_ns < now - self._wait_ns and self._asked_ns[plane] == NEVER:
                self._verify(now, plane)

    def _verify_one(self, now: Instant, mask: int) -> None:
        """Probe one plane that the SACKs of our own data do not prove."""
        limit_ns = max(0, now - self._stale_ns)
        asked_ns, proved_ns = self._asked_ns, self._proved_ns
        planes = [plane for plane in range(len(proved_ns)) if mask >> plane & 1]
        stale = [plane for plane in planes if asked_ns[plane] == NEVER and proved_ns[plane] < limit_ns]
        if not stale:
            return
        plane = stale[self._rng.below(len(stale))]
        if self._doubted >> plane & 1:
            # A plane in doubt, whose acknowledgements other planes carry: probe another of its paths.
            self._probe(now, self._way(self._next(plane)))
        else:
            self._verify(now, plane)

    def _verify(self, now: Instant, plane: int) -> None:
        """Probe the EV in use."""
        self._silence[plane] = min(self._silence[plane] + 1, 15)
        self._asked_ns[plane] = now
        self._timer.set_by(now + self._wait_ns)
        self._probe(now, self.reverse[plane])

    def _search(self, now: Instant, mask: int) -> None:
        """Every plane is in doubt: probe more paths in each round, planes in turn."""
        if now < self._round_ns:
            return
        self._round_ns = now + self._board.settings.reverse_refresh_ns
        planes = [plane for plane in range(len(self.reverse)) if mask >> plane & 1]
        if not planes:
            return
        total = len(planes) * max(len(set(map(self._to.path, self._candidates[plane]))) for plane in planes)
        first = self._rounds.sent
        for number in range(self._rounds.next(total)):
            plane = planes[(first + number) % len(planes)]
            self._probe(now, self._way(self._next(plane)))
        self._round_ns = now + self._board.settings.reverse_refresh_ns * self._rounds.pause(total)

    def _probe(self, now: Instant, way: Way) -> None:
        port, ev, outer = way
        request = self._next_id()
        if len(self.questions) >= EV_PROBES_MAX:
            del self.questions[next(iter(self.questions))]
        self.questions[request] = (ev, now)
        self._board.stats.reverse_probes += 1
        packet = self._control.endpoint_request(ev, outer, request, OP_EV_PROBE, 0, timestamp_of(now), data_class=True)
        self._board.ports.offer_probe(now, port, packet)

    # -- candidates

    def _draw(self, least: int = 0) -> list[list[int]]:
        """Random EVs, by plane: `_drawn` of each, or `least`."""
        evs, _ = self._to.draw_evs(self._rng, max(self._drawn, least), 0)
        return [[ev for ev in evs if self._to.path(ev).plane == plane] for plane in range(self._to.planes)]

    def _next(self, plane: int) -> int:
        """The EV that a plane in doubt tries next: first the one on which the peer was heard, then the candidates."""
        heard = self._arrived[plane]
        if heard >= 0:
            self._arrived[plane] = -1
            if not self._is_denied(plane, self._to.path(heard).number):
                return heard
        candidates = self._candidates[plane]
        cursor = self._cursor[plane] = (self._cursor[plane] + 1) % len(candidates)
        return candidates[cursor]

    def _take(self, ev: int) -> None:
        """From now on the acknowledgements of its plane use `ev`."""
        path = self._to.path(ev)
        self.reverse[path.plane] = self._way(ev)
        self._path[path.plane] = path.number

    def _drawn_from(self, plane: int) -> int:
        candidates = self._candidates[plane]
        return candidates[self._rng.below(len(candidates))]

    def follow_denied(self, plane: int) -> None:
        """The NIC's list of denied paths has changed in `plane`: use no denied path for acknowledgements."""
        self._denies = bool(self._board.denied)
        if not self._own_planes >> plane & 1:
            return
        to = self._to
        candidates = self._candidates[plane]
        if len(candidates) == self._drawn and not any(self._is_denied(plane, to.path(ev).number) for ev in candidates):
            # The path in use may not be a candidate: our own data may have proved it. It stays unless it is denied.
            if self._is_denied(plane, self._path[plane]):
                self._take(candidates[0])
            return
        # Draw so many that every path of the plane is among them.
        evs = self._draw(to.paths_per_plane)[plane]
        allowed = [ev for ev in evs if not self._is_denied(plane, to.path(ev).number)]
        self._candidates[plane] = allowed = allowed[: self._drawn]
        if not allowed:
            self._planes &= ~(1 << plane)
            return
        self._planes |= 1 << plane
        if self._is_denied(plane, self._path[plane]):
            self._take(allowed[0])

    def _is_denied(self, plane: int, path: int) -> bool:
        denied = self._board.denied
        return bool(denied) and denied.covers(plane, path, self._index, not self._to.same_t0)

    # -- the end, and questions

    def rows(self) -> list[dict[str, int | bool]]:
        """One row per plane: the EV and path that acknowledgements to this peer take, and whether the plane is used."""
        usable = self._usable()
        return [
            {"peer_index": self._index, "plane": plane, "ev": ev, "path": path, "usable": bool(usable >> plane & 1)}
            for plane, ((_, ev, _), path) in enumerate(zip(self.reverse, self._path, strict=True))
        ]

    def stop(self) -> None:
        """No QP uses this peer any more."""
        self._timer.cancel()
