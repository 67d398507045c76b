"""One connection between two ends over a link that loses, delays and doubles: all bytes in order, or a clean end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, NS_PER_S
from mrcfabric.wire.tcp import ACK, RST, SYN, Segment
from switchd.core.routing.stream import CLOSED, LISTEN, OPEN, RESEND_NS, Stream, refusal

DELAY = 1_000


class Pair:
    """A connection, and the wire between its ends."""

    def __init__(self, loss_ppm: int = 0, mss: int = 100, first: int = 5) -> None:
        self.rng = Rng("wire", loss_ppm, mss)
        self.loss_ppm = loss_ppm
        self.now = 0
        self.ends = Stream(50_000, 179, first, mss), Stream(179, 0, (1 << 32) - 40, mss)
        self.flying: list[tuple[int, int, Segment]] = []
        self.most = 0

    def pick_up(self) -> None:
        for number, end in enumerate(self.ends):
            for segment in end.out:
                if not self.rng.chance(self.loss_ppm):
                    self.flying.append((self.now + DELAY, 1 - number, segment))
            end.out = []
            self.most = max(self.most, end._sent)

    def run(self, until: int) -> None:
        self.pick_up()
        while True:
            due = [(end.due_ns, 2, number) for number, end in enumerate(self.ends)]
            due += [(at_ns, 1, number) for number, (at_ns, _, _) in enumerate(self.flying)]
            at_ns, kind, number = min(due, default=(NEVER, 0, 0))
            if at_ns > until:
                self.now = until
                return
            self.now = at_ns
            if kind == 2:
                self.ends[number].expire(at_ns)
            else:
                _, end, segment = self.flying.pop(number)
                self.ends[end].hear(at_ns, segment)
            self.pick_up()


def opened(**arguments: int) -> Pair:
    pair = Pair(**arguments)
    pair.ends[0].dial(0)
    pair.run(600 * NS_PER_S if arguments.get("loss_ppm") else 10 * DELAY)
    assert [end.state for end in pair.ends] == [OPEN, OPEN]
    return pair


def test_a_handshake_takes_one_and_a_half_round_trips() -> None:
    pair = Pair()
    pair.ends[0].dial(0)
    pair.run(2 * DELAY)
    assert pair.ends[0].state == OPEN
    assert pair.ends[1].state != OPEN
    pair.run(3 * DELAY)
    assert pair.ends[1].state == OPEN
    assert [end.due_ns for end in pair.ends] == [NEVER, NEVER]


@pytest.mark.parametrize("loss_ppm", [0, 10_000, 200_000])
@pytest.mark.parametrize("first", [7, (1 << 32) - 3])
def test_all_bytes_come_in_order_both_ways(loss_ppm: int, first: int) -> None:
    pair = opened(loss_ppm=loss_ppm, first=first)
    said = [bytes(number * 7 + way & 0xFF for number in range(5_000)) for way in range(2)]
    for at in range(0, 5_000, 1_250):
        for end, data in zip(pair.ends, said, strict=True):
            end.send(pair.now, data[at : at + 1_250])
        pair.run(pair.now + 3 * DELAY)
    pair.run(pair.now + 3_000 * NS_PER_S)
    assert [bytes(end.received) for end in pair.ends] == said[::-1]
    assert pair.most <= 4 * 100
    assert (sum(end.resent for end in pair.ends) > 0) == (loss_ppm > 0)
    assert [end.due_ns for end in pair.ends] == [NEVER, NEVER]


def test_what_is_lost_goes_again_after_200_ms_and_then_later_and_later() -> None:
    pair = opened()
    pair.loss_ppm = 1_000_000
    pair.ends[0].send(pair.now, b"x")
    sent_ns, seen = pair.now, []
    for _ in range(4):
        seen.append(pair.ends[0].due_ns - sent_ns)
        pair.run(pair.ends[0].due_ns)
    assert seen == [RESEND_NS, 3 * RESEND_NS, 7 * RESEND_NS, 15 * RESEND_NS]


def test_last_words_close_both_ends() -> None:
    pair = opened()
    pair.ends[1].finish(b"bye")
    pair.run(pair.now + 10 * DELAY)
    assert [end.state for end in pair.ends] == [CLOSED, CLOSED]
    assert pair.ends[0].received == b"bye"
    assert [end.due_ns for end in pair.ends] == [NEVER, NEVER]


def test_with_bytes_waiting_a_close_breaks_off() -> None:
    pair = opened()
    pair.ends[1].send(pair.now, bytes(1_000))
    pair.ends[1].finish(b"bye")
    pair.run(pair.now + 10 * DELAY)
    assert pair.ends[0].state == CLOSED
    assert len(pair.ends[0].received) == 400


def test_a_peer_that_has_forgotten_the_connection_ends_it() -> None:
    pair = opened()
    pair.ends = pair.ends[0], Stream(179, 0, 99, 100)
    pair.ends[0].send(pair.now, b"hello")
    pair.run(pair.now + 10 * DELAY)
    assert pair.ends[0].state == CLOSED
    assert pair.ends[1].state == LISTEN


def test_a_peer_that_begins_anew_on_the_same_ports_ends_it_too() -> None:
    pair = opened()
    pair.ends[1].hear(pair.now, Segment(50_000, 179, 77_777, 0, SYN))
    assert pair.ends[1].state == CLOSED
    pair = opened()
    pair.ends[1].hear(pair.now, Segment(50_001, 179, 77_777, 0, SYN))
    assert pair.ends[1].state == OPEN
    assert pair.ends[1].out[-1].flags & RST


def test_an_rst_out_of_its_place_is_not_believed() -> None:
    pair = opened()
    pair.ends[0].hear(pair.now, Segment(179, 50_000, 1, 0, RST))
    assert pair.ends[0].state == OPEN


def test_refusals() -> None:
    assert refusal(Segment(1, 2, 3, 4, RST)) is None
    assert refusal(Segment(1, 2, 3, 4, ACK, payload=b"x")) == Segment(2, 1, 4, 0, RST)
    assert refusal(Segment(1, 2, 3, 4, SYN)) == Segment(2, 1, 0, 4, RST | ACK)


@given(
    st.lists(
        st.tuples(
            st.sampled_from((179, 50_000)), st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 32) - 1),
            st.integers(0, 63), st.integers(0, 0xFFFF), st.binary(max_size=9),
        ),
        max_size=30,
    )
)  # fmt: skip
def test_any_segments_raise_nothing(said: list[tuple[int, int, int, int, int, bytes]]) -> None:
    for end in (*opened().ends, Stream(179, 0, 1, 100)):
        for port, sequence, acknowledged, flags, window, payload in said:
            end.send(1, b"abc")
            segment = Segment(port, 50_179 - port, sequence, acknowledged, flags, window, 0, payload)
            end.hear(1, segment)
