"""Lengths of planes by probes: when a peer is asked, and what its answers and shorter round trips of data mean."""

import pytest

from nicd.core.congestion.plane_lengths import SPAN_RTTS
from nicd.core.congestion.probed_lengths import ProbedLengths

BASE = 1_000
SPAN = SPAN_RTTS * BASE
MARGIN = BASE // 4


class Bench:
    """Two planes, of which the first is short; data have left on both."""

    def __init__(self, answers: int = 4, packet_ns: int = 0) -> None:
        self.asked: list[int] = []
        self.told: list[tuple[int, int]] = []
        self.answers = answers
        self.sent_ns = [1, 1]
        self.lengths = ProbedLengths(
            2, BASE, BASE, lambda now, number, extra_ns: self.told.append((number, extra_ns)), self._ask, self.sent_ns,
            [packet_ns] * 2,
        )  # fmt: skip
        self.now = 0

    def _ask(self, now: int) -> int:
        self.asked.append(now)
        return self.answers

    def span(self, rtt_ns: int, near_ns: int = BASE, samples: int = 8, marked: bool = False) -> bool:
        """A span with such round trips. Returns whether the peer was asked at its end."""
        before = len(self.asked)
        for _ in range(samples):
            self.lengths.measured(self.now + 1, 0, near_ns, False)
            self.lengths.measured(self.now + 1, 1, rtt_ns, marked)
        self.now += SPAN
        assert self.lengths.measured(self.now, 0, near_ns, False)
        return len(self.asked) > before

    def answer(self, *rtts: int, number: int = 1, same: bool = False) -> int:
        """Answers of this plane; how much longer it is known to be then."""
        for rtt_ns in rtts:
            self.lengths.answered(self.now + 1, number, rtt_ns, same)
        return self.lengths.extra_ns[number]


def test_nobody_is_asked_about_planes_that_are_alike() -> None:
    bench = Bench()
    assert not any(bench.span(BASE + MARGIN) for _ in range(40))
    assert bench.lengths.extra_ns == [0, 0]


@pytest.mark.parametrize("marked", [False, True])
def test_a_plane_that_answers_late_is_longer_though_it_is_marked(marked: bool) -> None:
    bench = Bench()
    assert bench.span(7 * BASE, marked=marked)
    assert bench.answer(BASE, BASE, number=0) == 0
    assert bench.answer(7 * BASE) == 6 * BASE
    assert bench.told[-1] == (1, 6 * BASE)


def test_a_queue_that_never_empties_is_no_length() -> None:
    bench = Bench()
    assert bench.span(7 * BASE)
    bench.answer(BASE, BASE, number=0)
    assert bench.answer(BASE + MARGIN) == 0
    assert bench.answer(3 * BASE) == 0, "the shortest answer counts"


def test_it_is_as_long_as_its_shortest_answer_and_never_longer_than_its_data() -> None:
    bench = Bench()
    bench.span(7 * BASE)
    bench.answer(BASE, BASE, number=0)
    assert bench.answer(4 * BASE) == 3 * BASE + MARGIN, "a full packet takes longer than a probe"
    assert bench.answer(9 * BASE) == 3 * BASE + MARGIN
    other = Bench()
    other.span(4 * BASE)
    other.answer(BASE, BASE, number=0)
    assert other.answer(9 * BASE) == 3 * BASE


def test_an_answer_that_met_packets_on_the_wires_is_mended_by_the_next_ones() -> None:
    """Data agree with it, because the window is too large: nothing else would have the peer asked again."""
    bench = Bench()
    bench.span(2 * BASE)
    bench.answer(BASE, BASE, number=0)
    assert bench.answer(2 * BASE) == BASE
    for seen, known in ((BASE + BASE * 7 // 8, BASE), (BASE, 0)):
        while not bench.span(2 * BASE):
            pass
        bench.answer(BASE, BASE, number=0)
        assert bench.answer(seen, seen) == known
    assert not any(bench.span(BASE) for _ in range(40)), "asked twice more, and no more"


def test_of_answers_that_are_about_alike_the_least_counts() -> None:
    bench = Bench()
    for answer_ns, least_ns in ((7 * BASE, 6_750), (6_000, 6_000), (6_000 + MARGIN, 6_000), (6_500, 6_500)):
        while not bench.span(7 * BASE):
            bench.now += SPAN
        bench.answer(BASE, BASE, number=0)
        assert bench.answer(answer_ns, answer_ns) == least_ns + MARGIN - BASE


def test_where_packets_are_long_beside_a_base_rtt_answers_that_are_about_alike_are_averaged() -> None:
    """One that met no packet on slow links does not make a plane short again."""
    packet_ns = BASE * 4 // 10
    bench = Bench(packet_ns=packet_ns)
    for answer_ns, average_ns in ((BASE, BASE), (800, 900), (1_000, 950), (1_300, 1_300), (900, 1_100)):
        while not bench.span(3 * BASE):
            bench.now += SPAN
        bench.answer(BASE // 2, BASE // 2, number=0)
        assert bench.answer(answer_ns, answer_ns) == 2 * (average_ns + packet_ns - BASE)


def test_an_answer_on_the_same_plane_has_taken_its_length_twice() -> None:
    bench = Bench()
    bench.span(7 * BASE)
    bench.answer(BASE, BASE, number=0, same=True)
    assert bench.answer(7 * BASE, same=True) == 3 * BASE + MARGIN
    assert bench.answer(2 * BASE, same=False) == BASE + MARGIN


def test_a_shorter_round_trip_of_data_is_true_without_asking() -> None:
    bench = Bench()
    bench.span(7 * BASE)
    bench.answer(BASE, BASE, number=0)
    assert bench.answer(7 * BASE) == 6 * BASE
    bench.span(5 * BASE)
    assert bench.lengths.extra_ns[1] == 4 * BASE
    bench.span(BASE + MARGIN)
    assert bench.lengths.extra_ns[1] == 0
    assert bench.told[-1] == (1, 0)


def test_a_plane_is_asked_about_of_which_nothing_was_heard_within_two_base_rtts() -> None:
    bench = Bench()
    for now in range(1, 2 * BASE):
        assert not bench.lengths.measured(now, 0, BASE, False)
    assert bench.lengths.measured(2 * BASE + 1, 0, BASE, False)
    assert bench.asked == [2 * BASE + 1]
    bench.answer(BASE, BASE, number=0)
    assert bench.answer(7 * BASE) == 6 * BASE + MARGIN
    full = Bench()
    full.lengths.busy(1)
    for now in range(1, 2 * BASE + 2):
        full.lengths.measured(now, 0, BASE, False)
    assert not full.asked, "what it trims explains the silence"
    full.now = 2 * BASE + 1
    assert full.span(BASE, samples=0)
    idle = Bench()
    idle.sent_ns[1] = 0
    for now in range(1, 2 * BASE + 2):
        idle.lengths.measured(now, 0, BASE, False)
    assert not idle.asked, "nothing has left on that plane"


def test_while_answers_change_nothing_the_peer_is_asked_less_and_less() -> None:
    bench = Bench()
    for _ in range(100):
        if bench.span(3 * BASE):
            bench.answer(BASE, BASE, number=0)
            bench.answer(BASE, BASE)
    gaps = [(later - earlier) // SPAN for earlier, later in zip(bench.asked, bench.asked[1:], strict=False)]
    assert gaps[:5] == [1, 2, 4, 8, 16]
    assert set(gaps[4:]) == {16}
    assert bench.span(4 * BASE), "it seems longer than before: a new reason"


def test_answers_are_waited_for_and_those_that_come_are_believed() -> None:
    bench = Bench()
    bench.span(7 * BASE)
    bench.answer(BASE, number=0)
    assert [bench.span(7 * BASE) for _ in range(3)] == [False] * 3
    assert bench.answer(7 * BASE) == 6 * BASE, "each plane has answered"
    lost = Bench()
    lost.span(7 * BASE)
    lost.answer(7 * BASE)
    for _ in range(4):
        assert lost.lengths.extra_ns[1] == 0
        lost.span(7 * BASE)
    assert lost.lengths.extra_ns[1] == 6 * BASE, "the others are lost"
    assert not lost.lengths.answered(lost.now, 1, BASE, False) or lost.asked[1:]


def test_who_may_not_ask_now_asks_at_the_end_of_the_next_span() -> None:
    bench = Bench(answers=0)
    assert bench.span(7 * BASE)
    assert bench.answer(7 * BASE) == 0, "nobody was asked"
    bench.answers = 4
    assert bench.span(7 * BASE)
    bench.answer(BASE, BASE, number=0)
    assert bench.answer(7 * BASE) == 6 * BASE


def test_answers_speak_of_all_planes() -> None:
    """The shortest plane may be a weak one, on which every packet takes longer, too."""
    bench = Bench()
    bench.span(7 * BASE, near_ns=3 * BASE)
    bench.answer(2 * BASE, 2 * BASE, number=0)
    assert bench.answer(7 * BASE) + bench.lengths.back_ns == 6 * BASE
    assert bench.lengths.extra_ns[0] == BASE + MARGIN


def test_planes_may_be_longer_alike_and_acknowledgements_are_late_by_as_much() -> None:
    bench = Bench()
    assert bench.span(7 * BASE, near_ns=7 * BASE)
    bench.answer(7 * BASE, 7 * BASE, number=0, same=True)
    assert bench.answer(7 * BASE, 7 * BASE, same=True) == 3 * BASE + MARGIN
    assert bench.lengths.back_ns == 3 * BASE - MARGIN
    assert bench.told[-2:] == [(0, 6 * BASE), (1, 6 * BASE)], "as long as their round trips without a queue"
    for _ in range(2):
        assert bench.span(7 * BASE, near_ns=7 * BASE), "asked twice more"
        bench.answer(7 * BASE, 7 * BASE, number=0, same=True)
        bench.answer(7 * BASE, 7 * BASE, same=True)
    assert not any(bench.span(7 * BASE, near_ns=7 * BASE) for _ in range(40))
    bench.span(4 * BASE, near_ns=4 * BASE)
    assert [extra_ns + bench.lengths.back_ns for extra_ns in bench.lengths.extra_ns] == [3 * BASE - MARGIN] * 2
    bench.span(BASE, near_ns=BASE)
    assert bench.lengths.extra_ns == [0, 0]
    assert bench.lengths.back_ns == 0


def test_an_only_plane_is_compared_with_the_base_rtt() -> None:
    told: list[int] = []
    asked: list[int] = []
    lengths = ProbedLengths(
        1, BASE, BASE, lambda now, number, extra_ns: told.append(extra_ns), lambda now: asked.append(now) or 2, [1], [0]
    )
    for now in range(0, 4 * SPAN, BASE // 2):
        lengths.measured(now, 0, 4 * BASE, False)
        if len(asked) == 1 and told[-1:] != [3 * BASE]:
            lengths.answered(now, 0, 4 * BASE, True)
    assert asked
    assert told[-1] == 3 * BASE
    assert lengths.extra_ns[0] == 3 * BASE // 2 + MARGIN


@pytest.mark.parametrize("overflows", [False, True])
def test_a_full_queue_is_no_reason_to_ask_where_planes_are_late_alike(overflows: bool) -> None:
    bench = Bench()
    for _ in range(8):
        for number in range(2):
            for _ in range(8):
                bench.lengths.measured(bench.now + 1, number, 7 * BASE, not overflows)
            if overflows:
                bench.lengths.busy(number)
        assert not bench.span(7 * BASE, near_ns=7 * BASE, samples=0)
    assert bench.span(7 * BASE, near_ns=7 * BASE), "what has overflowed before may be empty now"


def test_a_full_packet_takes_longer_than_a_probe() -> None:
    """By 4/10 of a base RTT here. A probe that takes as long as data would have met packets on each wire."""
    for probe_ns, longer_ns in (
        (BASE * 85 // 100, 0),
        (BASE * 86 // 100, BASE * 26 // 100 * 2),
        (BASE, BASE * 8 // 10),
    ):
        bench = Bench(packet_ns=BASE * 4 // 10)
        assert bench.span(3 * BASE)
        bench.answer(BASE // 2, BASE // 2, number=0)
        assert bench.answer(probe_ns) == longer_ns


@pytest.mark.parametrize(
    ("data_ns", "longer_ns"),
    [(20 * BASE, 4 * BASE + 4 * BASE // 5), (5 * BASE, 4 * BASE), (4 * BASE, 3 * BASE)],
)
def test_what_is_longer_than_slow_links_explain_is_no_longer_than_probes_and_data_say(
    data_ns: int, longer_ns: int
) -> None:
    bench = Bench(packet_ns=BASE * 4 // 10)
    assert bench.span(data_ns)
    bench.answer(BASE // 2, BASE // 2, number=0)
    assert bench.answer(5 * BASE - BASE * 4 // 10) == longer_ns


def test_where_packets_are_short_beside_a_base_rtt_answers_count_as_they_are() -> None:
    bench = Bench(packet_ns=MARGIN)
    assert bench.span(3 * BASE)
    bench.answer(BASE // 2, BASE // 2, number=0)
    assert bench.answer(BASE + MARGIN) == 0
    bench = Bench(packet_ns=MARGIN)
    assert bench.span(3 * BASE)
    bench.answer(BASE // 2, BASE // 2, number=0)
    assert bench.answer(BASE + MARGIN + 1) == 2 * MARGIN + 1


@pytest.mark.parametrize(("marked", "longer_ns"), [(2, 0), (1, BASE * 8 // 10)])
def test_where_packets_are_marked_a_probe_waits_as_long_as_a_full_packet_takes(marked: int, longer_ns: int) -> None:
    """A quarter of the packets: links are full, and it has waited at each of them, there and back."""
    bench = Bench(packet_ns=BASE * 4 // 10)
    for number in range(8):
        bench.lengths.measured(bench.now + 1, 1, 3 * BASE, number < marked)
    assert bench.span(3 * BASE, samples=0)
    bench.answer(BASE // 2, BASE // 2, number=0)
    assert bench.answer(BASE) == longer_ns


def test_slow_links_of_all_planes_make_all_probes_a_little_late() -> None:
    """The wires of a quarter of the rate: half a margin to a probe, and four times that to a full packet."""
    bench, late_ns = Bench(), BASE + 3 * MARGIN // 4
    assert bench.span(BASE + 2 * MARGIN, near_ns=BASE + 2 * MARGIN)
    assert bench.answer(late_ns, number=0) == 0, "nothing is known of the other plane"
    assert bench.answer(late_ns) == late_ns - BASE + MARGIN, "a full packet takes longer than a probe"
    other = Bench()
    other.span(BASE + 2 * MARGIN, near_ns=BASE + 2 * MARGIN)
    assert other.answer(BASE, number=0) == other.answer(late_ns) == 0, "one plane is near: the other has a queue"
