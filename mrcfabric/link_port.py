"""One port of a node on real sockets: link headers, trains, sequence numbers, and frames that the host lost.

Owns the way from a core's transmits to datagrams and back. `mrcfabric.drive` decides when to receive and how far time
may go, `mrcfabric.udp` has sockets and offload, `mrcfabric.clock` the layout of the clock page.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mrcfabric.clock import ClockPage
from mrcfabric.node import Input, Rank
from mrcfabric.trains import Sent, cut_of, longest_first
from mrcfabric.udp import RECEIVED, TRAIN_BYTES_MAX, TRAIN_SEGMENTS_MAX, Address, Endpoint
from mrcfabric.units import NEVER, NS_PER_MS, Buffer, Instant
from mrcfabric.wire.link import (
    CONTROL,
    LINK_HEADER,
    LINK_HEADER_BYTES,
    LINK_VERSION,
    SIZE_AT,
    SIZE_BITS,
    ControlFrame,
    link_stamp,
    read_stamp,
)

# The kernel's backlog may hold a frame that was sent but is not in the socket; after this time it is a host drop.
MISSING_WALL_NS_MAX = 500 * NS_PER_MS
# One tick of one port sends fewer frames than this.
SEQUENCE_GAP: Final = 1 << 20
# Half the range of the 16-bit incarnation: a number that is further ahead than this is an older one.
_INCARNATION_HALF: Final = 0x8000
_INCARNATION_MASK: Final = 0xFFFF
_INCARNATION_UNKNOWN: Final = -1
_STAMP_UNKNOWN: Final = b""

_FRAME: Final[Any] = int(Rank.FRAME)  # an object, as inputs take it
_HEADER: Final = 24
assert _HEADER == LINK_HEADER_BYTES
_SIZE_MASK: Final = (1 << SIZE_BITS) - 1
_pack: Final = LINK_HEADER.pack
_Control: Final = ControlFrame


@dataclass(slots=True)
class LinkEnd:
    """One end of a link: where a port's socket is bound, the peer, and the delay to it."""

    port: int
    local: Address
    peer: Address
    peer_node: int
    """The neighbour's slot in the clock page."""
    peer_port: int
    delay_ns: int
    peer_doorbell: int | None = None
    """The eventfd of the neighbour's process; None when it is this process, or there is no page."""
    path_mtu: int | None = None
    """See `Endpoint`."""
    tag: int = 0
    """`wire.link.link_tag` of frames sent here; 0 outside a launch."""
    peer_tag: int = 0
    """The same of frames that the neighbour sends."""
    peer_waits_for: Callable[[], Sequence[tuple[int, int, int]]] | None = None
    """(slot, port there, delay to the neighbour) for each neighbour of the neighbour, this node included; None: not to
    be looked at."""


@dataclass(slots=True)
class Fidelity:
    """What the host did to the emulation's frames. In a faithful run all but the traffic counts are zero."""

    late_frames: int = 0
    late_ns_max: int = 0
    late_commands: int = 0
    host_drops: int = 0
    """Frames that were sent and that the kernel did not deliver."""
    bad_frames: int = 0
    """Segments that are no frame of this launch of this fabric, or do not bear the neighbour's tag."""
    old_frames: int = 0
    """Old frames. A former life of the neighbour was killed before it published them, or they arrived twice, or after
    they were given up."""
    refused_frames: int = 0
    """Frames with the neighbour's tag of a life that the clock page does not know, or with a number beyond its
    counts."""
    unknown_flags: int = 0
    """Frames of the neighbour with a flag in the link header that this version does not know, refused for that."""
    frames_in: int = 0
    frames_out: int = 0
    trains_in: int = 0
    trains_out: int = 0
    ticks: int = 0


class LinkPort:
    """A port's socket, its sequence numbers and its words in the clock page."""

    __slots__ = (
        "_control_stamp",
        "_least_incarnation",
        "_live_from",
        "_missing_since_ns",
        "_page",
        "_peer_incarnation",
        "_peer_incarnation_word",
        "_peer_tag",
        "_peer_waits_for",
        "_rivals",
        "_shared",
        "_stamp",
        "_usual",
        "delay_ns",
        "doorbell",
        "endpoint",
        "fidelity",
        "horizon_word",
        "host_drops",
        "late_frames",
        "number",
        "outgoing",
        "published_word",
        "sent",
        "sent_word",
        "taken",
        "taken_word",
        "want_word",
        "wanted_word",
    )  # fmt: skip

    def __init__(
        self, end: LinkEnd, endpoint: Endpoint, page: ClockPage, slot: int, incarnation: int,
        live_from: Instant, fidelity: Fidelity, *, shared: bool,
    ) -> None:  # fmt: skip
        """`live_from`: the node drops frames that arrived up to then, because it was down.

        `shared`: other processes use the page.
        """
        self.number = end.port
        self.delay_ns = end.delay_ns
        self.doorbell = end.peer_doorbell
        self.endpoint = endpoint
        self.sent_word = page.sent_word(slot, end.port)
        """Our own count of frames sent."""
        self.taken_word = page.taken_word(slot, end.port)
        self.published_word = page.sent_word(end.peer_node, end.peer_port)
        """The neighbour's count of frames sent to us."""
        self._page = page
        self._peer_incarnation_word = page.incarnation_word(end.peer_node)
        self.horizon_word = page.horizon_word(end.peer_node)
        self.want_word = page.want_word(end.peer_node, end.peer_port)
        """Where we write which horizon of the neighbour we wait for."""
        self.wanted_word = page.want_word(slot, end.port)
        """Where the neighbour writes which horizon of ours it waits for."""
        self._peer_waits_for = end.peer_waits_for
        self._rivals: list[tuple[int, int, int]] = []
        """(word of the horizon, of the wish, delay): of all for whom the neighbour waits, this node included."""
        self.outgoing: list[Sent] = []
        if incarnation:
            # A frame that a neighbour has taken was sent, even if our host was lost before the other hosts heard of it.
            taken = page.words[page.taken_word(end.peer_node, end.peer_port)]
            page.words[self.sent_word] = max(page.words[self.sent_word], taken)
        # Sequence numbers continue over a restart, beyond all frames that a process killed in the middle of a tick may
        # have sent and not published. Frames that were sent to the dead process's socket are gone.
        self.sent: int = page.words[self.sent_word] + (SEQUENCE_GAP if incarnation else 0)
        self.taken: int = page.words[self.published_word]
        page.words[self.taken_word] = self.taken
        self._peer_incarnation = _INCARNATION_UNKNOWN
        self._least_incarnation = page.words[self._peer_incarnation_word] & _INCARNATION_MASK
        """An older incarnation's frames are remnants of a life that is over."""
        self._stamp = link_stamp(incarnation, 0, end.tag)
        """Of the packets that are sent here; the other one is of control frames."""
        self._control_stamp = link_stamp(incarnation, CONTROL, end.tag)
        self._peer_tag = end.peer_tag
        self._usual = _STAMP_UNKNOWN
        """The stamp of packets of the neighbour's present life."""
        self._live_from = live_from
        self.fidelity = fidelity
        self.late_frames = 0
        """This port's part of `fidelity`'s late frames; `host_drops` is its part of the host drops."""
        self.host_drops = 0
        self._shared = shared
        self._missing_since_ns = 0

    def hand_over(self, wanted: Instant) -> bool:
        """The neighbour waited for our horizon `wanted`, and can have it. False when it can now make a whole step.

        Otherwise another of its neighbours is not there yet: that one gets the wish, and rings later. So a process is
        woken once for a step, and not once by each of its neighbours.
        """
        if self._peer_waits_for is None:
            return False
        if not self._rivals:
            page, found = self._page, self._peer_waits_for()
            self._rivals = [(page.horizon_word(node), page.want_word(node, port), delay) for node, port, delay in found]
        words = self._page.words
        own = self.wanted_word
        need = wanted + next(delay for _, want_word, delay in self._rivals if want_word == own)
        for horizon_word, want_word, delay_ns in self._rivals:
            missing = need - delay_ns
            if words[horizon_word] < missing:
                words[want_word] = missing
                # It may have published between our look and our wish, and then it does not ring: look again.
                if words[horizon_word] < missing:
                    return True
                words[want_word] = NEVER
        return False

    def receive(self, enough: int, held: list[Input]) -> None:
        """Read trains into `held` until frame number `enough` has been seen or the socket is empty."""
        if self._shared and enough - self.taken >= SEQUENCE_GAP:
            # The neighbour has a new life. Frames that the former life sent and did not publish stand in the socket
            # before those of the new one; for the fabric they were never sent.
            self._least_incarnation = self._page.words[self._peer_incarnation_word] & _INCARNATION_MASK
            self._peer_incarnation = _INCARNATION_UNKNOWN
            self._usual = _STAMP_UNKNOWN
        endpoint = self.endpoint
        while self.taken < enough:
            size = endpoint.receive()
            if not size:
                return
            self._missing_since_ns = 0
            self.fidelity.trains_in += 1
            self.take_train(RECEIVED, size, held)

    def give_up(self, published: int, *, lives: bool) -> bool:
        """Called when a published frame is not in the socket. True when it has been missing so long that it is lost.

        If this node does not live yet, the frame went to the process before it and is no host drop: the news of a
        neighbour on another host may have arrived only after we bound the sockets.
        """
        mono_ns = time.monotonic_ns()
        if not self._missing_since_ns:
            self._missing_since_ns = mono_ns
        if mono_ns - self._missing_since_ns < MISSING_WALL_NS_MAX:
            return False
        if lives:
            # A new life of the neighbour skipped one gap of numbers, which no frame has.
            self._lose((published - self.taken) % SEQUENCE_GAP)
        self.taken = published
        self._missing_since_ns = 0
        return True

    def _lose(self, frames: int) -> None:
        self.fidelity.host_drops += frames
        self.host_drops += frames

    def take_train(self, train: bytearray, size: int, held: list[Input]) -> None:
        """Copy the frames of one train into `held`; count what is no frame of ours.

        The train is the first `size` bytes. Its frames are as long as the first one says; the last may be shorter.
        """
        segment = train[SIZE_AT] << 8 | train[SIZE_AT + 1] if size > _HEADER else 0
        count = size // segment if segment > _HEADER else 0
        rest = size - count * segment
        if not count or count > TRAIN_SEGMENTS_MAX:
            self.fidelity.bad_frames += 1
            return
        if rest > _HEADER:
            count += 1
        elif rest:
            self.fidelity.bad_frames += 1
            size -= rest
        cut = cut_of(segment, count)
        words, bodies = cut.unpack(train), cut.bodies
        taken, usual, live_from = self.taken, self._usual, self._live_from
        number: Any = self.number
        place = fresh = 0
        for body in bodies:
            arrival_ns: int = words[place]
            numbered: int = words[place + 1]
            stamp: bytes = words[place + 2]
            sequence = numbered >> SIZE_BITS
            if place == 3 * (count - 1):
                body = slice(place // 3 * segment + _HEADER, size)
            if stamp == usual and sequence == taken + 1:
                taken = sequence
                fresh += 1
                if arrival_ns > live_from:
                    held.append((words[place], _FRAME, number, sequence, train[body]))  # type: ignore[arg-type]
            else:
                self.taken = taken
                self._take_odd(arrival_ns, sequence, stamp, train[body], held)
                taken, usual = self.taken, self._usual
            place += 3
        self.taken = taken
        self.fidelity.frames_in += fresh

    def _take_odd(self, arrival_ns: Instant, sequence: int, stamp: bytes, frame: bytearray, held: list[Input]) -> None:
        """Put a frame into `held` that is no packet, or not the next one of the life that we know; or count it."""
        incarnation, version, flags, tag = read_stamp(stamp)
        fidelity = self.fidelity
        if tag != self._peer_tag or version != LINK_VERSION:
            fidelity.bad_frames += 1
            return
        if sequence == self.taken + 1 and incarnation == self._peer_incarnation:
            self.taken = sequence
        elif (incarnation - self._least_incarnation) & _INCARNATION_HALF:
            fidelity.old_frames += 1
            return
        elif self._shared and self._is_strange(sequence, incarnation):
            fidelity.refused_frames += 1
            return
        elif not self._resynchronize(sequence, incarnation):
            fidelity.old_frames += 1
            return
        packet: Buffer = frame
        if flags:
            if flags != CONTROL:
                # It has come, so it is no host drop; what it is, nobody here knows.
                fidelity.unknown_flags += 1
                return
            packet = ControlFrame(frame)
        fidelity.frames_in += 1
        if arrival_ns > self._live_from:
            held.append((arrival_ns, _FRAME, self.number, sequence, packet))  # type: ignore[arg-type]

    def _is_strange(self, sequence: int, incarnation: int) -> bool:
        """For a frame out of order: whether no life that the clock page knows can have sent it.

        The page shows a life before that life sends, and shows frames at the end of the tick that sent them.
        """
        words = self._page.words
        known = words[self._peer_incarnation_word] & _INCARNATION_MASK
        ahead = (incarnation - known) & _INCARNATION_MASK
        # A new life numbers its frames from one gap further on.
        return 0 < ahead < _INCARNATION_HALF or sequence >= words[self.published_word] + 2 * SEQUENCE_GAP

    def _resynchronize(self, sequence: int, incarnation: int) -> bool:
        """For a frame out of order: count a gap as host drops; False for an old frame, which is refused."""
        if incarnation != self._peer_incarnation:
            self._peer_incarnation = self._least_incarnation = incarnation
            self._usual = link_stamp(incarnation, 0, self._peer_tag)
        elif sequence > self.taken + 1:
            self._lose(sequence - self.taken - 1)
        if sequence <= self.taken and self._shared:
            return False
        self.taken = sequence
        return True

    def send(self) -> None:
        """Send `outgoing` as trains: equal sizes, only the last may be shorter."""
        stamp, control_stamp = self._stamp, self._control_stamp
        sequence = self.sent
        buffers: list[Buffer] = []
        segment = room = count = 0
        for transmit in longest_first(self.outgoing):
            packet: Any = transmit[2]
            size = len(packet) + _HEADER
            if count and (size > segment or size > room or count == TRAIN_SEGMENTS_MAX):
                self._send_train(buffers, segment, count)
                buffers = []
                count = 0
            if not count:
                segment = size
                room = TRAIN_BYTES_MAX
            sequence += 1
            count += 1
            room -= size
            buffers.append(
                _pack(transmit[1], sequence << SIZE_BITS | size, control_stamp if type(packet) is _Control else stamp)
            )
            buffers.append(packet)
            if size < segment:
                room = 0
        self._send_train(buffers, segment, count)
        self.fidelity.frames_out += sequence - self.sent
        self.sent = sequence
        self.outgoing.clear()

    def _send_train(self, buffers: list[Buffer], segment: int, count: int) -> None:
        self.fidelity.trains_out += 1
        self.endpoint.send(buffers, segment, count)
