"""One end of a TCP connection between neighbours, as much of TCP as a session of BGP needs.

Owns sequence numbers, the handshake, acknowledgements, and sending again what was lost. What it leaves out: congestion
control (four segments may be under way), selective acknowledgements, time stamps, delayed acknowledgements, measuring
the round trip (the time-out is 200 ms, doubled each time), both ends dialling at once, and waiting after a close. What
comes out of order is dropped, and its sender sends it again.

Sources: RFC 9293 3.5 (handshake), 3.6 (close), 3.10.7 (segments that arrive), RFC 6298 2 and 5 (time-outs).
"""

from typing import Final

from mrcfabric.units import NEVER, NS_PER_MS, NS_PER_S, Instant
from mrcfabric.wire.tcp import ACK, FIN, PSH, RST, SEQUENCE_MASK, SYN, Segment

SEGMENTS_UNDER_WAY: Final = 4
RESEND_NS: Final = 200 * NS_PER_MS
FIRST_RESEND_NS: Final = NS_PER_S
"""Of a SYN."""
RESEND_MAX_NS: Final = 60 * NS_PER_S
LISTEN, SYN_SENT, SYN_RECEIVED, OPEN, CLOSED = "listen", "syn_sent", "syn_received", "open", "closed"
_HALF: Final = 1 << 31


def refusal(segment: Segment) -> Segment | None:
    """The RST that answers a segment for which there is no connection; None for one that is an RST itself."""
    if segment.flags & RST:
        return None
    ports = segment.destination_port, segment.source_port
    if segment.flags & ACK:
        return Segment(*ports, segment.acknowledged, 0, RST)
    return Segment(*ports, 0, (segment.sequence + segment.length) & SEQUENCE_MASK, RST | ACK)


class Stream:
    """One end. It says what to send in `out`, and has what came, in order, in `received`; its owner empties both."""

    def __init__(self, own_port: int, peer_port: int, first: int, mss: int) -> None:
        """`first`: the sequence number of its SYN. It listens until it dials."""
        self.state = LISTEN
        self.out: list[Segment] = []
        self.received = bytearray()
        self.due_ns: Instant = NEVER
        """When what is under way is sent again."""
        self.resent = 0
        self._own_port = own_port
        self._peer_port = peer_port
        self._mss = self._own_mss = mss
        self._first = first
        self._unacked = first
        """The first sequence number that the peer has not acknowledged."""
        self._next_in = 0
        """The next one that it has to send."""
        self._buffer = bytearray()
        """What was not acknowledged yet, and what was not sent yet."""
        self._sent = 0
        """How much of it is under way."""
        self._window = mss
        self._resend_ns = FIRST_RESEND_NS

    def dial(self, at_ns: Instant) -> None:
        """Begin the handshake."""
        self.state = SYN_SENT
        self._say(SYN, self._first)
        self.due_ns = at_ns + self._resend_ns

    def send(self, at_ns: Instant, data: bytes) -> None:
        """Send these bytes, at once or when there is room."""
        self._buffer += data
        self._push(at_ns)

    def finish(self, data: bytes) -> None:
        """Send these last bytes and close; with others still waiting, break off. The end is not waited for."""
        if self.state == OPEN:
            if self._sent == len(self._buffer):
                self._say(ACK | PSH | FIN, self._unacked + self._sent, data)
            else:
                self._say(RST, self._unacked + self._sent)
        self._close()

    def expire(self, at_ns: Instant) -> None:
        """Nothing was acknowledged in time: send again."""
        self.resent += 1
        self._resend_ns = min(2 * self._resend_ns, RESEND_MAX_NS)
        if self.state == SYN_SENT:
            self._say(SYN, self._first)
        elif self.state == SYN_RECEIVED:
            self._say(SYN | ACK, self._first)
        self.due_ns = at_ns + self._resend_ns
        if self.state == OPEN:
            self._sent = 0
            self._push(at_ns)

    def hear(self, at_ns: Instant, segment: Segment) -> None:
        """Take a segment that arrived."""
        if self.state == LISTEN:
            self._accept(at_ns, segment)
        elif (segment.source_port, segment.destination_port) != (self._peer_port, self._own_port):
            self._refuse(segment)
        elif segment.flags & RST:
            self._break(segment)
        elif self.state == SYN_SENT:
            self._answered(at_ns, segment)
        elif segment.flags & SYN:
            self._again(segment)
        elif segment.flags & ACK:
            self._take(at_ns, segment)

    def _accept(self, at_ns: Instant, segment: Segment) -> None:
        if segment.flags & (SYN | ACK | RST) != SYN or segment.destination_port != self._own_port:
            self._refuse(segment)
            return
        self._peer_port = segment.source_port
        self._learn(segment)
        self.state = SYN_RECEIVED
        self._say(SYN | ACK, self._first)
        self.due_ns = at_ns + self._resend_ns

    def _learn(self, segment: Segment) -> None:
        """Of the peer's SYN: where its numbers begin, and how large its segments may be."""
        self._next_in = (segment.sequence + 1) & SEQUENCE_MASK
        self._mss = min(self._own_mss, segment.mss or 1_220)
        self._window = segment.window

    def _answered(self, at_ns: Instant, segment: Segment) -> None:
        """Of a segment after the own SYN."""
        if segment.flags & ACK and segment.acknowledged != (self._first + 1) & SEQUENCE_MASK:
            self._refuse(segment)
        elif segment.flags & (SYN | ACK) == SYN | ACK:
            self._learn(segment)
            self._open(at_ns, segment)
            self._say(ACK, self._unacked)

    def _open(self, at_ns: Instant, segment: Segment) -> None:
        self.state = OPEN
        self._unacked = segment.acknowledged
        self._window = segment.window
        self._resend_ns = RESEND_NS
        self.due_ns = NEVER
        self._push(at_ns)

    def _again(self, segment: Segment) -> None:
        """Of a SYN on a connection that there is: it was sent again, or the peer has begun anew."""
        if segment.sequence == (self._next_in - 1) & SEQUENCE_MASK:
            flags = SYN | ACK if self.state == SYN_RECEIVED else ACK
            self._say(flags, self._first if flags & SYN else self._unacked + self._sent)
            return
        self._refuse(segment)
        self._close()

    def _break(self, segment: Segment) -> None:
        """Of an RST, if it is for this connection and not for an older one."""
        if self.state == SYN_SENT:
            if segment.flags & ACK and segment.acknowledged == (self._first + 1) & SEQUENCE_MASK:
                self._close()
        elif segment.sequence == self._next_in:
            self._close()

    def _take(self, at_ns: Instant, segment: Segment) -> None:
        if self.state == SYN_RECEIVED:
            if segment.acknowledged != (self._first + 1) & SEQUENCE_MASK:
                self._refuse(segment)
                return
            self._open(at_ns, segment)
        self._acknowledge(at_ns, segment)
        ahead = (self._next_in - segment.sequence) & SEQUENCE_MASK
        # What has come already is passed over; a hole in front means that something was lost.
        new = segment.payload[ahead:] if ahead < _HALF else b""
        fits = ahead < _HALF and ahead <= len(segment.payload)
        if new:
            self.received += new
            self._next_in = (self._next_in + len(new)) & SEQUENCE_MASK
        if segment.flags & FIN and fits:
            self._next_in = (self._next_in + 1) & SEQUENCE_MASK
            self._say(ACK, self._unacked + self._sent)
            self._close()
        elif segment.payload or segment.flags & FIN:
            self._say(ACK, self._unacked + self._sent)

    def _acknowledge(self, at_ns: Instant, segment: Segment) -> None:
        done = (segment.acknowledged - self._unacked) & SEQUENCE_MASK
        # After a time-out what was sent before counts as not sent, and may be acknowledged all the same.
        if done > len(self._buffer):
            return
        self._window = segment.window
        if done:
            del self._buffer[:done]
            self._sent = max(0, self._sent - done)
            self._unacked = segment.acknowledged
            self._resend_ns = RESEND_NS
            self.due_ns = at_ns + RESEND_NS if self._sent else NEVER
        self._push(at_ns)

    def _push(self, at_ns: Instant) -> None:
        """Send what there is room for."""
        if self.state != OPEN:
            return
        room = min(self._window, SEGMENTS_UNDER_WAY * self._mss)
        while self._sent < min(len(self._buffer), room):
            end = min(self._sent + self._mss, len(self._buffer), room)
            self._say(ACK | PSH, self._unacked + self._sent, bytes(self._buffer[self._sent : end]))
            self._sent = end
            if self.due_ns == NEVER:
                self.due_ns = at_ns + self._resend_ns

    def _say(self, flags: int, sequence: int, data: bytes = b"") -> None:
        mss = self._own_mss if flags & SYN else 0
        acknowledged = self._next_in if flags & ACK else 0
        ports = self._own_port, self._peer_port
        self.out.append(Segment(*ports, sequence & SEQUENCE_MASK, acknowledged, flags, mss=mss, payload=data))

    def _refuse(self, segment: Segment) -> None:
        answer = refusal(segment)
        if answer is not None:
            self.out.append(answer)

    def _close(self) -> None:
        self.state = CLOSED
        self.due_ns = NEVER
