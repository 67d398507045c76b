"""One port on real sockets: order, sequence numbers, restarts, and frames that are not ours."""

import os
import time
from collections.abc import Iterator

import pytest

from mrcfabric.clock import ClockPage
from mrcfabric.link_port import MISSING_WALL_NS_MAX, SEQUENCE_GAP, Fidelity, LinkEnd, LinkPort
from mrcfabric.node import Input
from mrcfabric.udp import TRAIN_SEGMENTS_MAX, Address, Endpoint
from mrcfabric.units import NEVER
from mrcfabric.wire.link import CONTROL, LINK_VERSION, SIZE_AT, ControlFrame, link_frame, link_stamp
from mrcfabric.wire.pfc import encode
from tests.support.ports import free_udp_ports

pytestmark = pytest.mark.integration

TAG = 0xABCD


class Wire:
    """Two nodes, one link, and their ports as often as they are opened."""

    def __init__(self) -> None:
        self.page = ClockPage.create([[(1, 0)], [(0, 0)]])
        one, two = free_udp_ports(2)
        self.addresses: list[Address] = [("127.0.0.1", one), ("127.0.0.1", two)]
        self.opened: list[LinkPort] = []

    def open(self, node: int, incarnation: int = 0, tag: int = TAG, live_from: int = 0) -> LinkPort:
        self.page.mark_alive(node, 100, incarnation)
        local, peer = self.addresses[node], self.addresses[1 - node]
        end = LinkEnd(
            port=0, local=local, peer=peer, peer_node=1 - node, peer_port=0, delay_ns=1_000, tag=tag, peer_tag=TAG
        )
        port = LinkPort(end, Endpoint(local, peer), self.page, node, incarnation, live_from, Fidelity(), shared=True)
        self.opened.append(port)
        return port

    def send(self, port: LinkPort, *packets: tuple[int, bytes]) -> None:
        port.outgoing += [(0, arrival_ns, packet) for arrival_ns, packet in packets]
        port.send()
        self.page.words[port.sent_word] = port.sent

    def take(self, port: LinkPort) -> list[Input]:
        held: list[Input] = []
        port.receive(self.page.words[port.published_word], held)
        return sorted(Input(*one) for one in held)


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire()
    yield wire
    for port in wire.opened:
        port.endpoint.close()


def test_frames_come_out_as_they_went_in(wire: Wire) -> None:
    a, b = wire.open(0), wire.open(1)
    sizes = (4224, 4224, 100, 4224, 90, 90, 4300)
    packets = [(1_000 * number, os.urandom(size)) for number, size in enumerate(sizes, 1)]
    wire.send(a, *packets)
    held = wire.take(b)
    assert [(entry.at_ns, bytes(entry.body)) for entry in held] == packets
    assert sorted(entry.sequence for entry in held) == [1, 2, 3, 4, 5, 6, 7]
    assert a.fidelity.trains_out == 3, "4300 and 4224; 4224 twice and 100; 90 twice"


def test_more_than_a_train_holds(wire: Wire) -> None:
    a, b = wire.open(0), wire.open(1)
    packets = [(number + 1, bytes([number % 251]) * 4224) for number in range(150)]
    wire.send(a, *packets)
    assert [(entry.at_ns, bytes(entry.body)) for entry in wire.take(b)] == packets


@pytest.mark.parametrize("size", [1, 100, 4224])
def test_a_frame_does_not_pin_its_train(wire: Wire, size: int) -> None:
    a, b = wire.open(0), wire.open(1)
    wire.send(a, *((number, bytes([number]) * size) for number in (1, 2, 3)))
    taken = wire.take(b)
    assert [entry.body for entry in taken] == [bytearray([number]) * size for number in (1, 2, 3)]
    assert all(type(entry.body) is bytearray for entry in taken)


def test_a_control_frame_keeps_its_type_and_its_place_among_packets(wire: Wire) -> None:
    a, b = wire.open(0), wire.open(1)
    pause = encode(bytes(6), {3: 65_535})
    packets = [(1, b"x" * 4224), (2, pause), (3, b"y" * 4224), (4, pause), (5, pause), (6, b"z" * 64)]
    wire.send(a, *packets)
    held = wire.take(b)
    assert [(entry.at_ns, bytes(entry.body)) for entry in held] == packets
    assert [type(entry.body) is ControlFrame for entry in held] == [False, True, False, True, True, False]
    assert (b.fidelity.frames_in, b.fidelity.unknown_flags) == (6, 0)


@pytest.mark.parametrize("flags", [2, 3, 0x80, 0xFF])
def test_a_frame_with_a_flag_that_nobody_knows_is_refused_and_is_no_host_drop(wire: Wire, flags: int) -> None:
    a, b = wire.open(0), wire.open(1)
    wire.send(a, (1, b"one"))
    a.endpoint.send([link_frame(2, a.sent + 1, link_stamp(0, flags, TAG), b"of tomorrow")], 35, 1)
    a.sent += 1
    wire.send(a, (3, b"three"))
    assert [bytes(entry.body) for entry in wire.take(b)] == [b"one", b"three"]
    fidelity = b.fidelity
    assert (fidelity.unknown_flags, fidelity.frames_in, fidelity.bad_frames, fidelity.host_drops) == (1, 2, 0, 0)
    assert b.taken == a.sent


@pytest.mark.parametrize("version", [0, LINK_VERSION - 1, LINK_VERSION + 1, 0xFF])
@pytest.mark.parametrize("flags", [0, CONTROL])
def test_a_frame_of_another_version_is_none_of_ours(wire: Wire, version: int, flags: int) -> None:
    a, b = wire.open(0), wire.open(1)
    a.endpoint.send([link_frame(2, 1, link_stamp(0, flags, TAG, version), b"packet")], 30, 1)
    wire.page.words[a.sent_word] += 1
    assert wire.take(b) == []
    assert (b.fidelity.bad_frames, b.fidelity.unknown_flags) == (1, 0)


@pytest.mark.parametrize("size", [0, 1, 24, 101, 0xFFFF])
def test_a_frame_that_lies_about_its_size_is_none(wire: Wire, size: int) -> None:
    a, b = wire.open(0), wire.open(1)
    spoilt = bytearray(link_frame(2, 1, link_stamp(0, 0, TAG), bytes(76)))
    spoilt[SIZE_AT : SIZE_AT + 2] = size.to_bytes(2, "big")
    a.endpoint.send([spoilt], 100, 1)
    wire.send(a, (1, b"one"))
    assert [bytes(entry.body) for entry in wire.take(b)] == [b"one"]
    assert (b.fidelity.bad_frames, b.fidelity.frames_in, b.fidelity.host_drops) == (1, 1, 0)


def test_a_train_of_more_frames_than_anybody_sends_is_none(wire: Wire) -> None:
    a, b = wire.open(0), wire.open(1)
    a.endpoint.send([link_frame(2, 1, link_stamp(0, 0, TAG), b"x") * 66], 25 * 66, 1)
    wire.send(a, (1, b"one"))
    assert [bytes(entry.body) for entry in wire.take(b)] == [b"one"]
    assert (b.fidelity.bad_frames, b.fidelity.frames_in) == (1, 1)


def test_a_gap_in_the_sequence_is_a_host_drop(wire: Wire) -> None:
    a, b = wire.open(0), wire.open(1)
    wire.send(a, (1, b"one"))
    wire.take(b)
    a.sent += 2
    wire.send(a, (2, b"two"))
    wire.take(b)
    assert b.fidelity.host_drops == 2


def test_another_launch_of_the_fabric_is_not_heard(wire: Wire) -> None:
    stranger, b = wire.open(0, tag=TAG + 1), wire.open(1)
    wire.send(stranger, (1, b"from before"))
    assert wire.take(b) == []
    assert b.fidelity.bad_frames == 1


def test_frames_for_the_time_before_the_restart_are_gone(wire: Wire) -> None:
    a, b = wire.open(0), wire.open(1, live_from=5_000)
    wire.send(a, (4_999, b"early"), (5_000, b"early"), (5_001, b"in time"))
    assert [bytes(entry.body) for entry in wire.take(b)] == [b"in time"]


def test_a_restarted_sender_goes_on_counting(wire: Wire) -> None:
    a, b = wire.open(0), wire.open(1)
    wire.send(a, (1, b"first life"))
    wire.take(b)
    a.endpoint.close()
    again = wire.open(0, incarnation=1)
    wire.send(again, (2, b"second life"))
    assert [bytes(entry.body) for entry in wire.take(b)] == [b"second life"]
    assert b.taken == again.sent > 2
    assert (b.fidelity.host_drops, b.fidelity.bad_frames) == (0, 0)


@pytest.mark.parametrize("heard", [True, False])
def test_what_a_killed_sender_did_not_publish_was_never_sent(wire: Wire, heard: bool) -> None:
    """It died between sending and publishing: its successor's frames are heard, and those are not."""
    a, b = wire.open(0), wire.open(1)
    if heard:
        wire.send(a, (1, b"published"))
        assert len(wire.take(b)) == 1
    a.outgoing += [(0, 2, b"not published"), (0, 3, b"nor this")]
    a.send()
    a.endpoint.close()
    again = wire.open(0, incarnation=1)
    wire.send(again, (9, b"second life"))
    wire.send(again, (10, b"goes on"))
    assert [bytes(entry.body) for entry in wire.take(b)] == [b"second life", b"goes on"]
    assert (b.fidelity.host_drops, b.fidelity.bad_frames, b.fidelity.frames_in) == (0, 0, 2 + heard)


def test_what_was_taken_was_sent_though_nobody_knows_of_it_any_more(wire: Wire) -> None:
    a, b = wire.open(0), wire.open(1)
    wire.send(a, (1, b"told to the neighbour alone"))
    wire.take(b)
    wire.page.words[b.taken_word] = b.taken
    a.endpoint.close()
    wire.page.words[a.sent_word] = 0
    again = wire.open(0, incarnation=1)
    assert wire.page.words[again.sent_word] == b.taken == 1
    wire.send(again, (2, b"second life"))
    assert [bytes(entry.body) for entry in wire.take(b)] == [b"second life"]


def test_an_older_incarnation_is_not_heard_again(wire: Wire) -> None:
    a, b = wire.open(0, incarnation=3), wire.open(1)
    wire.send(a, (1, b"now"))
    wire.take(b)
    a.endpoint.send([link_frame(2, a.sent + 1, link_stamp(2, 0, TAG), b"ghost")], 29, 1)
    wire.page.words[a.sent_word] += 1
    assert wire.take(b) == []
    assert (b.fidelity.bad_frames, b.fidelity.frames_in, b.fidelity.old_frames) == (0, 1, 1)


@pytest.mark.parametrize(("incarnation", "beyond"), [(1, 1), (0x7000, 1), (0, 3 * SEQUENCE_GAP), (0, 1 << 47)])
def test_a_life_that_the_page_does_not_know_moves_nothing(wire: Wire, incarnation: int, beyond: int) -> None:
    """Forged by somebody who knows the mark, while the sender is dead: whoever lives after it is heard."""
    a, b = wire.open(0), wire.open(1)
    wire.send(a, (1, b"first life"))
    wire.take(b)
    forged = link_frame(2, a.sent + beyond, link_stamp(incarnation, 0, TAG), b"ghost")
    for _ in range(2):
        a.endpoint.send([forged], len(forged), 1)
    a.endpoint.close()
    again = wire.open(0, incarnation=1) if incarnation else wire.open(0)
    wire.send(again, (3, b"second life"))
    taken = [bytes(entry.body) for entry in wire.take(b)]
    assert b"second life" in taken
    if incarnation != 1:
        assert taken == [b"second life"]
        assert b.fidelity.refused_frames == 2
    wire.send(again, (4, b"goes on"))
    assert [bytes(entry.body) for entry in wire.take(b)] == [b"goes on"]


def test_what_is_sent_back_to_its_sender_is_no_frame(wire: Wire) -> None:
    """Whoever sits at the port of a dead neighbour hears our mark, which is not the neighbour's."""
    a, b = wire.open(0), wire.open(1, tag=TAG + 1)
    wire.send(b, (1, b"into silence"))
    heard = link_frame(1, 1, link_stamp(0, 0, TAG + 1), b"into silence")
    a.endpoint.send([heard], len(heard), 1)
    wire.page.words[a.sent_word] += 1
    assert wire.take(b) == []
    assert (b.fidelity.bad_frames, b.taken) == (1, 0)


def junk(size: int, says: int = 0xA5A5) -> bytes:
    """So many bytes that are no frame; where a frame has its size stands `says`."""
    return (b"\xa5" * SIZE_AT + says.to_bytes(2, "big") + b"\xa5" * size)[:size]


@pytest.mark.parametrize(
    ("sent", "bad"),
    [
        (junk(1), 1),
        (junk(5), 1),
        (junk(24), 1),
        (junk(900), 1),
        # What says that it is a train is taken apart, and each part is none.
        (junk(900, says=300), 3),
        (junk(910, says=300), 4),
        (junk(25 * (TRAIN_SEGMENTS_MAX + 1), says=25), 1),
    ],
    ids=lambda given: f"{len(given)} bytes" if isinstance(given, bytes) else "",
)
def test_bytes_that_are_no_frame_are_counted(wire: Wire, sent: bytes, bad: int) -> None:
    a, b = wire.open(0), wire.open(1)
    a.endpoint.send([sent], len(sent), 1)
    wire.page.words[a.sent_word] = 1
    assert wire.take(b) == []
    assert b.fidelity.bad_frames == bad


@pytest.mark.parametrize("published", [2, SEQUENCE_GAP + 2], ids=["one life", "a new life"])
def test_a_published_frame_is_waited_for_but_not_for_ever(wire: Wire, published: int) -> None:
    wire.open(0)
    b = wire.open(1)
    wire.page.words[b.published_word] = published
    assert wire.take(b) == []
    assert not b.give_up(published, lives=True)
    end = time.monotonic_ns() + 10 * MISSING_WALL_NS_MAX
    while not b.give_up(published, lives=True):
        assert time.monotonic_ns() < end
        time.sleep(0.01)
    assert (b.fidelity.host_drops, b.taken) == (2, published)


class Fan:
    """A node that waits for three neighbours, of whom the first has a port on it."""

    def __init__(self) -> None:
        self.page = ClockPage.create([[(1, 0), (2, 0), (3, 0)], [(0, 0)], [(0, 1)], [(0, 2)]])
        local, peer = (("127.0.0.1", number) for number in free_udp_ports(2))
        delays = (1_000, 400, 1_000)
        end = LinkEnd(
            port=0, local=local, peer=peer, peer_node=0, peer_port=0, delay_ns=1_000,
            peer_waits_for=lambda: [(1 + number, 0, delay) for number, delay in enumerate(delays)],
        )  # fmt: skip
        self.port = LinkPort(end, Endpoint(local, peer), self.page, 1, 0, 0, Fidelity(), shared=True)

    def at(self, *horizons: int) -> None:
        for node, horizon in enumerate(horizons, 1):
            self.page.words[self.page.horizon_word(node)] = horizon

    def wishes(self) -> list[int]:
        return [self.page.words[self.page.want_word(node, 0)] for node in (1, 2, 3)]


@pytest.fixture
def fan() -> Iterator[Fan]:
    fan = Fan()
    yield fan
    fan.port.endpoint.close()


def test_who_can_make_a_whole_step_is_to_be_rung(fan: Fan) -> None:
    fan.at(5_000, 5_600, 5_000)  # for a step to 6,000
    assert not fan.port.hand_over(5_000)
    fan.at(5_000, NEVER, 7_000)  # one of them is dead
    assert not fan.port.hand_over(5_000)
    assert fan.wishes() == [NEVER] * 3


def test_a_wish_goes_to_the_neighbour_that_is_not_there_yet(fan: Fan) -> None:
    fan.at(5_000, 5_599, 4_000)
    assert fan.port.hand_over(5_000)
    assert fan.wishes() == [NEVER, 5_600, NEVER]
    fan.at(5_000, 5_600, 4_999)
    assert fan.port.hand_over(5_000)
    assert fan.wishes()[2] == 5_000


def test_a_neighbour_that_comes_while_it_gets_the_wish_is_looked_at_again(fan: Fan) -> None:
    words = fan.page.words

    class Late:
        """The page, on which the second neighbour comes forward as soon as a wish for it is written."""

        def __getitem__(self, word: int) -> int:
            return int(words[word])

        def __setitem__(self, word: int, value: int) -> None:
            words[word] = value
            words[fan.page.horizon_word(2)] = 5_600

    fan.at(5_000, 5_000, 5_000)
    fan.page.words = Late()  # type: ignore[assignment]
    assert not fan.port.hand_over(5_000)
    fan.page.words = words
    assert fan.wishes() == [NEVER] * 3
