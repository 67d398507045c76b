"""One session of BGP with one neighbour: its states, its timers, and the messages that it exchanges.

Owns what happens between the carrier of a port and routes that are heard. The connection beneath is a `Stream`; who
opens it is fixed, so that two connections never meet. `router` decides what to tell a neighbour.

Sources: RFC 4271 8.2 (states), 6 (errors), 4.4 (keepalives), 10 (timers and jitter).
"""

from typing import Final, Protocol

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, NS_PER_S, Instant
from mrcfabric.wire import bgp, bgp_update
from mrcfabric.wire.bgp import BGP_PORT, BgpError, Notification, Open
from mrcfabric.wire.bgp_update import Update
from mrcfabric.wire.tcp import SEQUENCE_MASK, Segment
from switchd.core.routing.config import Neighbor, RoutingConfig
from switchd.core.routing.stream import CLOSED, OPEN, Stream, refusal
from switchd.core.routing.timetable import Kind

IDLE, CONNECT, ACTIVE, OPEN_SENT, OPEN_CONFIRM, ESTABLISHED = (
    "Idle", "Connect", "Active", "OpenSent", "OpenConfirm", "Established",
)  # fmt: skip
STATES: Final = IDLE, CONNECT, ACTIVE, OPEN_SENT, OPEN_CONFIRM, ESTABLISHED
START_NS: Final = NS_PER_S
"""How long a session that ended rests before it dials again, as FRR's start timer."""
OPEN_HOLD_NS: Final = 240 * NS_PER_S
"""How long to wait for an OPEN (RFC 4271 8.2.2: a large value, four minutes)."""
DYNAMIC_PORTS: Final = 16_384
DYNAMIC_FIRST: Final = 49_152
_SEQUENCE_CLOCK_NS: Final = 4_000
"""First sequence numbers count on by one in so many nanoseconds (RFC 9293 3.4.1)."""


class Host(Protocol):
    """What a session asks of the routing core."""

    def timer(self, kind: Kind, port: int, at_ns: Instant) -> None:
        """Call `Session.expire` at that instant."""
        ...

    def send(self, at_ns: Instant, port: int, segment: Segment) -> None:
        """Send a segment to the neighbour."""
        ...

    def opened(self, at_ns: Instant, port: int) -> None:
        """The session is established."""
        ...

    def lost(self, at_ns: Instant, port: int, why: str) -> None:
        """It was, and has ended."""
        ...

    def heard(self, at_ns: Instant, port: int, update: Update) -> None:
        """The neighbour tells of routes."""
        ...


class Session:
    """One session."""

    def __init__(self, config: RoutingConfig, neighbor: Neighbor, host: Host, start_ns: Instant) -> None:
        self.state = IDLE
        self.neighbor = neighbor
        self.identifier = 0
        """The neighbour's, as far as it has been heard."""
        self.established = 0
        """How often the session came up."""
        self.updates_heard = self.updates_sent = 0
        self.withdrawals_heard = 0
        """Prefixes that the neighbour has taken back."""
        self._config = config
        self._knobs = config.knobs
        self._host = host
        self._rng = Rng(config.seed, "bgp", config.name, neighbor.port)
        self.shut = False
        """It is kept from being: it neither dials nor listens."""
        self.deaf = False
        """The core hangs: the connection takes what comes, and nobody reads it."""
        self._stream: Stream | None = None
        self._hold_ns = self._knobs.bgp_hold_ns
        self._keepalive_ns = 0
        self._dials = start_ns // _SEQUENCE_CLOCK_NS
        """Moves on with each connection, so that ports differ, also from those of an earlier life."""

    # What others tell it.

    def start(self, at_ns: Instant) -> None:
        """The port can be used: open a connection, or wait for one."""
        if self.shut or self.state not in (IDLE, ACTIVE):
            return
        if not self.neighbor.dials:
            self.state = ACTIVE
            self._stream = self._make(at_ns, BGP_PORT, 0)
            return
        self.state = CONNECT
        self._dials += 1
        self._stream = self._make(at_ns, DYNAMIC_FIRST + self._dials % DYNAMIC_PORTS, BGP_PORT)
        self._stream.dial(at_ns)
        self._host.timer(Kind.RETRY, self.neighbor.port, at_ns + self.jittered(self._knobs.bgp_connect_retry_ns))
        self._flush(at_ns)

    def stop(self, at_ns: Instant, why: str, subcode: int) -> None:
        """The port cannot be used, or shall not: end what there is, and stay so."""
        self._end(at_ns, why, Notification(bgp.CEASE, subcode))
        self._host.timer(Kind.RETRY, self.neighbor.port, NEVER)

    def restart(self, at_ns: Instant, why: str, subcode: int) -> None:
        """End what there is, and begin anew after a while."""
        self._end(at_ns, why, Notification(bgp.CEASE, subcode))

    def hold_down(self, at_ns: Instant, down: bool, usable: bool) -> None:
        """Be kept from being, or no longer; `usable`: the port can be used."""
        was, self.shut = self.shut, down
        if down and not was:
            self.stop(at_ns, "shutdown", bgp.CEASE_SHUTDOWN)
        elif was and not down and usable:
            self.start(at_ns)

    def tell(self, at_ns: Instant, messages: list[bytes]) -> None:
        """Send these messages, if the session is established."""
        if self.state == ESTABLISHED and self._stream is not None and messages:
            self.updates_sent += len(messages)
            self._stream.send(at_ns, b"".join(messages))
            self._keep_alive_later(at_ns)
            self._flush(at_ns)

    def hear(self, at_ns: Instant, segment: Segment) -> None:
        """Take a segment from the neighbour."""
        stream = self._stream
        if stream is None:
            answer = refusal(segment)
            if answer is not None:
                self._host.send(at_ns, self.neighbor.port, answer)
            return
        stream.hear(at_ns, segment)
        if self.deaf:
            self._flush(at_ns)
        else:
            self._follow(at_ns, stream)

    def catch_up(self, at_ns: Instant) -> None:
        """Read what has come while nobody did."""
        if self._stream is not None:
            self._follow(at_ns, self._stream)

    def _follow(self, at_ns: Instant, stream: Stream) -> None:
        """Do what follows from how the connection stands, and from what has come over it."""
        if stream.state == OPEN and self.state in (CONNECT, ACTIVE):
            self._greet(at_ns, stream)
        self._flush(at_ns)
        self._read(at_ns, stream)
        if stream is self._stream and stream.state == CLOSED:
            self._end(at_ns, "connection", None)

    def expire(self, at_ns: Instant, kind: Kind) -> None:
        """One of its timers has expired."""
        if kind == Kind.RETRY:
            if self.state == CONNECT:
                self._stream = None
                self.state = IDLE
            self.start(at_ns)
        elif kind == Kind.HOLD:
            self._end(at_ns, "hold_time", Notification(bgp.HOLD_EXPIRED, 0))
        elif kind == Kind.KEEPALIVE and self._stream is not None:
            self._stream.send(at_ns, bgp.frame(bgp.KEEPALIVE))
            self._keep_alive_later(at_ns)
            self._flush(at_ns)
        elif kind == Kind.RESEND and self._stream is not None:
            self._stream.expire(at_ns)
            self._flush(at_ns)

    def jittered(self, length_ns: int) -> int:
        """75 to 100 % of a length (RFC 4271 10), unless jitter is off."""
        if not self._knobs.bgp_jitter:
            return length_ns
        return length_ns - self._rng.below(length_ns // 4 + 1)

    # Messages.

    def _greet(self, at_ns: Instant, stream: Stream) -> None:
        """The connection is there: say who is speaking."""
        self.state = OPEN_SENT
        said = Open(self._config.asn, self._knobs.bgp_hold_ns // NS_PER_S, self._config.router_id)
        stream.send(at_ns, bgp.encode_open(said))
        self._host.timer(Kind.RETRY, self.neighbor.port, NEVER)
        self._host.timer(Kind.HOLD, self.neighbor.port, at_ns + OPEN_HOLD_NS)

    def _read(self, at_ns: Instant, stream: Stream) -> None:
        """Take the messages that have come."""
        try:
            while stream is self._stream and (message := bgp.take(stream.received)) is not None:
                self._obey(at_ns, *message)
        except BgpError as error:
            self._end(at_ns, "error", Notification(error.code, error.subcode, error.data))

    def _obey(self, at_ns: Instant, kind: int, body: bytes) -> None:
        """Carry out one message. Raises BgpError."""
        if kind == bgp.NOTIFICATION:
            bgp.parse_notification(body)
            self._end(at_ns, "notification", None)
        elif kind == bgp.OPEN and self.state == OPEN_SENT:
            self._agree(at_ns, bgp.parse_open(body))
        elif kind == bgp.KEEPALIVE and self.state == OPEN_CONFIRM:
            self.state = ESTABLISHED
            self.established += 1
            self._hold(at_ns)
            self._host.opened(at_ns, self.neighbor.port)
        elif kind == bgp.KEEPALIVE and self.state == ESTABLISHED:
            self._hold(at_ns)
        elif kind == bgp.UPDATE and self.state == ESTABLISHED:
            self.updates_heard += 1
            self._hold(at_ns)
            update = bgp_update.parse(body)
            self.withdrawals_heard += len(update.unreach)
            self._host.heard(at_ns, self.neighbor.port, update)
        else:
            raise BgpError(bgp.BAD_STATE, 0)

    def _agree(self, at_ns: Instant, said: Open) -> None:
        """The neighbour has said who it is. Raises BgpError."""
        if said.asn != self.neighbor.asn:
            raise BgpError(bgp.BAD_OPEN, bgp.OPEN_PEER_AS)
        if said.identifier == self._config.router_id:
            raise BgpError(bgp.BAD_OPEN, bgp.OPEN_IDENTIFIER)
        if not said.ipv6 or not said.four_bytes:
            raise BgpError(bgp.BAD_OPEN, bgp.OPEN_CAPABILITY)
        self.identifier = said.identifier
        self._hold_ns = min(self._knobs.bgp_hold_ns, said.hold_s * NS_PER_S)
        self._keepalive_ns = min(self._knobs.bgp_keepalive_ns, self._hold_ns // 3)
        self.state = OPEN_CONFIRM
        assert self._stream is not None
        self._stream.send(at_ns, bgp.frame(bgp.KEEPALIVE))
        self._hold(at_ns)
        self._keep_alive_later(at_ns)
        self._flush(at_ns)

    def _hold(self, at_ns: Instant) -> None:
        due_ns = at_ns + self._hold_ns if self._hold_ns else NEVER
        self._host.timer(Kind.HOLD, self.neighbor.port, due_ns)

    def _keep_alive_later(self, at_ns: Instant) -> None:
        due_ns = at_ns + self.jittered(self._keepalive_ns) if self._keepalive_ns else NEVER
        self._host.timer(Kind.KEEPALIVE, self.neighbor.port, due_ns)

    # The connection.

    def _make(self, at_ns: Instant, own_port: int, peer_port: int) -> Stream:
        first = (at_ns // _SEQUENCE_CLOCK_NS + self._rng.below(1 << 32)) & SEQUENCE_MASK
        return Stream(own_port, peer_port, first, self._config.mss)

    def _flush(self, at_ns: Instant) -> None:
        """Hand on what the stream has to send, and note when it wants to send again."""
        stream = self._stream
        if stream is None:
            return
        segments, stream.out = stream.out, []
        for segment in segments:
            self._host.send(at_ns, self.neighbor.port, segment)
        self._host.timer(Kind.RESEND, self.neighbor.port, stream.due_ns)

    def _end(self, at_ns: Instant, why: str, said: Notification | None) -> None:
        """End the session: say why where somebody may hear it, and dial or listen again."""
        stream, port = self._stream, self.neighbor.port
        if stream is not None:
            if said is not None and self.state in (OPEN_SENT, OPEN_CONFIRM, ESTABLISHED):
                stream.finish(bgp.encode_notification(said))
            elif said is None:
                stream.finish(b"")
            self._flush(at_ns)
        self._stream = None
        was, self.state = self.state, IDLE
        for kind in (Kind.HOLD, Kind.KEEPALIVE, Kind.RESEND, Kind.ADVERTISE):
            self._host.timer(kind, port, NEVER)
        # Who listens is back soon, who dials rests first.
        rest_ns = self.jittered(START_NS) if self.neighbor.dials else 1
        self._host.timer(Kind.RETRY, port, at_ns + rest_ns)
        if was == ESTABLISHED:
            self._host.lost(at_ns, port, why)
