"""Another NIC, as this one knows it: the ways to it, its ports, the window towards it, and the reverse set.

Owns endpoint requests and Port Status Updates in both directions. `reverse_set` chooses the paths of acknowledgements.
All QPs to this peer share it: a deliberate difference from one reverse set per QP, with the same paths behind it.

MRC 1.0 section 2.6 of the endpoint operations; arXiv 2605.04333 section 2 (reverse paths, port state).
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from mrcfabric.rng import Rng
from mrcfabric.units import Instant
from mrcfabric.wire.layout import OP_EV_PROBE, OP_PORT_STATUS, timestamp_of
from mrcfabric.wire.srh import SrhControlTemplate
from nicd.core.congestion.plane_windows import PlaneWindows
from nicd.core.events import PeerPortChange
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.length_probes import LengthProbes
from nicd.core.mrc.path_lengths import PathLengths
from nicd.core.mrc.path_policy import leaves_lost
from nicd.core.mrc.reverse_set import ReverseSet
from nicd.core.scheduler import Sender
from nicd.core.timers import Timer

_ID_MASK: Final = 0xFFFF
DOUBTED_MAX: Final = 1024
"""So many probes of doubted paths are waited for; of more the oldest are forgotten."""
_OVERTAKEN_RTOS: Final = 4
"""No packet is under way for longer than this many RTOs."""


class Peer:
    """One NIC that QPs of ours are connected to."""

    __slots__ = (
        "_asked", "_board", "_control", "_doubted", "_last_update", "_last_update_ns", "_on_ports", "_request_id",
        "_update_id", "_update_number", "_update_tries", "_update_wait_ns", "_updates", "address", "confirm",
        "data_arrived", "destination", "follow_denied", "index", "length_probes", "path_lengths", "ports", "probed",
        "reply", "reverse", "reverse_rows", "reverse_set", "sharing", "ways", "windows",
    )  # fmt: skip

    def __init__(self, board: MrcBoard, index: int, on_ports: Callable[[Instant, "Peer", int], None]) -> None:
        """`on_ports` is called when planes change at the peer: (now, peer, bits that changed)."""
        config = board.config
        settings = board.settings
        self._board = board
        self._on_ports = on_ports
        self.index = index
        self.destination = config.paths.towards(index)
        self.address = self.destination.address
        self.ports = self.destination.ports
        """The ports of both ends by plane."""
        self.windows = PlaneWindows(
            settings,
            self.destination.rates_bps,
            board.stats,
            self.destination.same_t0,
            board.timers,
            self._wake_senders,
            leaves_lost(settings.path_policy),
            ask_lengths=self._ask_lengths,
        )
        self.sharing: deque[Sender] = deque()
        """The living QPs that share these windows."""
        self._control = SrhControlTemplate(config.address, self.address, 2, dscp=config.dscp, options=config.options)
        self._request_id = 0
        rng = Rng(config.seed, config.name, "peer", index)
        self.reverse_set = paths = ReverseSet(
            board, index, self.destination, rng, self._control, self._next_id, self.windows
        )  # fmt: skip
        self.length_probes = LengthProbes(
            board, index, self.destination, Rng(config.seed, config.name, "peer", index, "lengths"), self._control,
            self._next_id,
        )  # fmt: skip
        self.path_lengths = PathLengths(board, self.destination, self._control, self._next_id)
        # Used for every packet: bind these objects here, which saves a step each.
        self.reverse = paths.reverse
        self.reply = paths.reply
        self.ways = paths.ways
        self.probed = paths.probed
        self.confirm = paths.confirm
        self.data_arrived = paths.data_arrived
        self.follow_denied = paths.follow_denied
        self.reverse_rows = paths.rows
        self._asked: dict[int, Callable[[Instant, int], None]] = {}
        """Request id -> the function to call with the answer, of the controller's own probes."""
        self._doubted: dict[int, Callable[[Instant, int], None]] = {}
        """The same, of probes of paths that QPs doubt."""
        self._last_update = -1
        self._last_update_ns: Instant = 0
        self._update_number = 0
        self._update_id = -1
        self._update_tries = 0
        self._update_wait_ns = 0
        self._updates = Timer(board.timers, self._send_update)

    @property
    def up(self) -> int:
        """Bit p: the peer's port p is reachable, as far as it has told us."""
        return self.reverse_set.up

    @up.setter
    def up(self, mask: int) -> None:
        self.reverse_set.up = mask

    def _wake_senders(self) -> None:
        self.sharing.rotate(-1)
        for sender in self.sharing:
            self._board.scheduler.wake(sender)

    @property
    def questions(self) -> int:
        """Endpoint EV probes waiting for an answer."""
        return len(self.reverse_set.questions)

    # -- ports

    def announce_ports(self, now: Instant) -> None:
        """Tell the peer which of our ports have carrier, again and again until it answers."""
        # Updates have their own numbers, so that the peer can order them however many EV probes lie between.
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
        way = self.reply()
        if way is not None:
            port, ev, outer = way
            self._board.stats.port_updates_sent += 1
            packet = self._control.endpoint_request(
                ev, outer, self._update_id, OP_PORT_STATUS, ports.carrier, timestamp_of(now)
            )
            ports.offer(now, port, packet, True)
        self._updates.set(now + self._update_wait_ns)
        self._update_wait_ns *= 2

    def forget_ports(self) -> None:
        """A QP connects to a NIC that may have started again: take its ports to be up until it says otherwise."""
        self.up = self.ports.in_ports
        self._last_update = -1

    def on_request(
        self, now: Instant, request: int, op: int, mask: int, timestamp: int, port: int = 0, ev: int = 0
    ) -> None:
        """Answer an endpoint request of the peer, which came in by `port` on `ev`."""
        if op == OP_PORT_STATUS:
            self._board.stats.port_updates_received += 1
            if self._is_news(now, request):
                self._last_update = request
                self._last_update_ns = now
                self._ports_are(now, mask & self.ports.in_ports)
        ways = self.ways(now, port, ev)
        if not ways:
            self._board.stats.drops["no_port"] += 1
        for reply_port, own_ev, outer in ways:
            packet = self._control.endpoint_response(own_ev, outer, request, op, timestamp)
            self._board.ports.offer(now, reply_port, packet, True)

    def _is_news(self, now: Instant, request: int) -> bool:
        """Whether a Port Status Update is up to date."""
        if self._last_update < 0 or 0 < (request - self._last_update & _ID_MASK) <= _ID_MASK >> 1:
            return True
        # A newer one has overtaken it. But if the newer one came so long ago that no packet of then can be under way,
        # the peer has started again while a QP to it lives on, and counts from the beginning.
        return now - self._last_update_ns > _OVERTAKEN_RTOS * self._board.settings.rto_ns

    def ask_ev(
        self, now: Instant, plane: int, ev: int, outer: bytes, answered: Callable[[Instant, int], None]
    ) -> int | None:
        """Probe one EV for the controller; `answered` is told (now, port) if the peer answers.

        Returns the request id, None when the plane is down at one end.
        """
        ports = self._board.ports
        if not self.ports.alive(ports.carrier, self.up) >> plane & 1:
            return None
        request = self._next_id()
        if len(self._asked) >= self._board.settings.ev_probe_evs_max:
            del self._asked[next(iter(self._asked))]
        self._asked[request] = answered
        packet = self._control.endpoint_request(ev, outer, request, OP_EV_PROBE, data_class=True)
        ports.offer_probe(now, self.ports.port[plane], packet)
        return request

    def ask_path(
        self, now: Instant, plane: int, ev: int, outer: bytes, answered: Callable[[Instant, int], None]
    ) -> bool:
        """Probe one EV in the control class, for a QP that doubts its path; `answered` is told (now, port).

        False: the plane is down at one end.
        """
        ports = self._board.ports
        if not self.ports.alive(ports.carrier, self.up) >> plane & 1:
            return False
        request = self._next_id()
        if len(self._doubted) >= DOUBTED_MAX:
            del self._doubted[next(iter(self._doubted))]
        self._doubted[request] = answered
        self._board.stats.doubt_probes += 1
        packet = self._control.endpoint_request(ev, outer, request, OP_EV_PROBE)
        ports.offer(now, self.ports.port[plane], packet, True)
        return True

    def on_response(self, now: Instant, request: int, op: int, stamp: int = 0, port: int = 0, ev: int = -1) -> None:
        """The peer answered an endpoint request and sent its time stamp back; it came in by `port` on `ev`."""
        if op == OP_PORT_STATUS:
            if request == self._update_id:
                self._update_id = -1
                self._updates.cancel()
            return
        answered = self._asked.pop(request, None)
        if answered is None and (answered := self._doubted.pop(request, None)) is not None:
            self._board.stats.doubt_replies += 1
        if answered is not None:
            answered(now, port)
            return
        if self.path_lengths.answered(now, request, ev):
            return
        length = self.length_probes.answered(now, request, port)
        if length is not None:
            self.windows.length_answered(now, *length)
            return
        self.reverse_set.answered(now, request, stamp)

    def _ask_lengths(self, now: Instant) -> int:
        """Probe how long the planes are that are up at both ends."""
        return self.length_probes.ask(now, self.ports.alive(self._board.ports.carrier, self.up))

    def stop(self) -> None:
        """No QP uses this peer any more."""
        self.reverse_set.stop()
        self._updates.cancel()

    def _ports_are(self, now: Instant, mask: int) -> None:
        changed = self.up ^ mask
        self.up = mask
        for port in range(changed.bit_length()):
            if changed >> port & 1:
                self._board.tell(PeerPortChange(now, self.index, port, bool(mask >> port & 1)))
        if changed:
            self._on_ports(now, self, changed)

    def _next_id(self) -> int:
        self._request_id = (self._request_id + 1) & _ID_MASK
        return self._request_id
