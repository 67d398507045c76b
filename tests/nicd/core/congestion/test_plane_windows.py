"""Contexts of planes: who is told what, and on which planes a packet may leave."""

from typing import Any

import pytest

from nicd.core.congestion.plane_windows import NO_PLANE, PlaneWindows
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats
from nicd.core.timers import Timers

GIGA = 1_000_000_000
PACKET = 4096
BASE = 10_000


def windows(rates: tuple[int, ...] = (100 * GIGA, 100 * GIGA), **knobs: Any) -> PlaneWindows:
    return PlaneWindows(NicSettings(base_rtt_ns=BASE, **knobs), rates, NicStats())


def test_each_plane_has_the_window_of_its_own_product() -> None:
    made = windows((100 * GIGA, 25 * GIGA))
    products = [rate * BASE // (8 * GIGA) for rate in (100 * GIGA, 25 * GIGA)]
    assert [context.cwnd_bytes for context in made.contexts] == [product * 3 // 2 for product in products]
    assert made.of == made.contexts


def test_what_knobs_grant_a_destination_is_shared_by_rate() -> None:
    made = windows((100 * GIGA, 300 * GIGA), cwnd_bytes=40 * PACKET, max_cwnd_bytes=80 * PACKET)
    assert [context.cwnd_bytes for context in made.contexts] == [10 * PACKET, 30 * PACKET]
    assert [context.record()["cwnd_bytes_max"] for context in made.contexts] == [20 * PACKET, 60 * PACKET]
    fixed = windows(congestion="fixed", cwnd_bytes=8 * PACKET)
    assert [context.cwnd_bytes for context in fixed.contexts] == [4 * PACKET, 4 * PACKET]


def test_a_full_plane_closes_alone_and_opens_when_one_is_acknowledged() -> None:
    made = windows(cwnd_bytes=4 * PACKET)
    made.left(0, 0, PACKET)
    assert made.open == 0b11
    made.left(0, 0, PACKET)
    assert made.open == 0b10
    made.acked(0, PACKET)
    made.on_sack(BASE, 0, False, BASE, 0)
    assert made.open == 0b11


def test_one_context_for_all_planes_opens_and_closes_them_together() -> None:
    made = windows(congestion_scope="destination", cwnd_bytes=2 * PACKET)
    assert len(made.contexts) == 1
    assert made.of[0] is made.of[1]
    made.left(0, 0, PACKET)
    assert made.open == 0b11
    made.left(0, 1, PACKET)
    assert made.open == 0
    made.gone(0, 0, PACKET)
    assert made.open == 0b11


def test_a_packet_always_fits_an_empty_plane() -> None:
    made = windows(cwnd_bytes=2, cwnd_bytes_min=PACKET)
    for plane in (0, 1):
        made.left(0, plane, PACKET)
    assert made.open == 0
    made.gone(0, 1, PACKET)
    assert made.open == 0b10


@pytest.mark.spec("MRC 1.0", "4")
def test_mark_and_round_trip_go_to_the_plane_of_the_packet_that_caused_them() -> None:
    made = windows()
    for plane in (0, 1):
        for _ in range(20):
            made.left(0, plane, PACKET)
            made.acked(plane, PACKET)
    # Forty packets of both planes; the one that was late and marked had left on plane 1.
    before = [context.cwnd_bytes for context in made.contexts]
    for now in range(1, 200):
        made.on_sack(now * BASE, 1, True, 5 * BASE, 0)
    assert made.contexts[0].cwnd_bytes >= before[0]
    assert made.contexts[1].cwnd_bytes < before[1] // 2
    assert (made.contexts[0].record()["average_delay_ns"], made.inflight_bytes) == (0, 0)


@pytest.mark.spec("MRC 1.0", "4")
def test_an_acknowledgement_without_a_cause_frees_bytes_and_says_no_more() -> None:
    made = windows()
    made.left(0, 0, PACKET)
    made.acked(0, PACKET)
    made.on_sack(BASE, NO_PLANE, False, None, 0)
    assert made.inflight_bytes == 0
    assert made.contexts[1].record()["average_delay_ns"] == 0


def test_trims_and_losses_cut_their_own_plane() -> None:
    made = windows(trim_nack=False)
    before = made.contexts[0].cwnd_bytes
    made.on_trim(1, 1, PACKET, True)
    made.on_loss(2, 1, PACKET)
    assert [context.cwnd_bytes for context in made.contexts] == [before, before - 2 * PACKET]


@pytest.mark.parametrize(("cwnd", "first", "cut"), [(30, False, 0), (30, True, 1), (5, False, 0), (3, False, 1)])
def test_where_a_plane_trims_a_full_queue_loses_only_first_packets_unsaid_and_few(
    cwnd: int, first: bool, cut: int
) -> None:
    made = windows(cwnd_bytes=2 * cwnd * PACKET)
    made.on_trim(1, 1, 0, True)
    before = [context.cwnd_bytes for context in made.contexts]
    for plane in (0, 1):
        made.on_loss(2, plane, PACKET, crowded=True, first=first)
    less = [was - context.cwnd_bytes for was, context in zip(before, made.contexts, strict=True)]
    assert less == [PACKET, cut * PACKET]


@pytest.mark.parametrize(("scope", "left"), [("plane", 0), ("destination", 1)])
def test_a_port_that_goes_down_takes_its_part_of_a_window_that_others_share(scope: str, left: int) -> None:
    made = windows(congestion_scope=scope)
    before = made.cwnd_bytes
    made.on_loss(1, 1, PACKET, port_down=True)
    assert made.cwnd_bytes == before - left * PACKET


def test_the_row_of_a_qp_sums_bytes_and_shows_the_longest_times() -> None:
    made = windows()
    made.left(0, 1, PACKET)
    made.contexts[1].on_base_rtt(1, BASE // 2)
    row = made.record()
    assert row["inflight_bytes"] == PACKET
    assert row["cwnd_bytes"] == made.cwnd_bytes
    assert row["base_rtt_ns"] == BASE


def spans(
    made: PlaneWindows, count: int, rtts: tuple[int, int], marked: bool = False, samples: int = 20, first: int = 1
) -> None:
    """So many spans with these round trips on the two planes; marks on the second."""
    for span in range(first, first + count):
        for number in range(samples):
            now = span * 100 * BASE + number
            made.on_sack(now, 0, False, rtts[0], 0)
            made.on_sack(now, 1, marked, rtts[1], 0)


def bases(made: PlaneWindows) -> list[int]:
    return [context.record()["base_rtt_ns"] for context in made.contexts]


def test_a_longer_plane_has_a_longer_base_rtt_and_a_larger_window() -> None:
    made = windows()
    before = [context.record()["cwnd_bytes_max"] for context in made.contexts]
    spans(made, 4, (BASE, 3 * BASE))
    assert bases(made) == [BASE, 3 * BASE]
    assert [context.record()["cwnd_bytes_max"] for context in made.contexts] == [before[0], 3 * before[1]]
    # And not for longer than it is.
    spans(made, 2, (BASE, BASE), first=5)
    assert bases(made) == [BASE, BASE]
    assert made.contexts[1].cwnd_bytes <= before[1]


@pytest.mark.parametrize(("again", "extra_ns"), [(False, 2 * BASE), (True, 0)])
def test_a_late_plane_that_causes_no_sack_is_measured_by_packets_that_others_sacks_show(
    again: bool, extra_ns: int
) -> None:
    """Its packets fill gaps: a cumulative acknowledgement tells of them. One that was sent again measures nothing."""
    made = windows()
    for span in range(1, 5):
        for number in range(20):
            now = span * 100 * BASE + number
            for age_ns in (4 * BASE, 3 * BASE):
                made.left(now - age_ns, 1, PACKET)
                made.acked(1, PACKET, -1 if again else now - age_ns)
            made.on_sack(now, 0, False, BASE, 0)
    assert bases(made) == [BASE, BASE + extra_ns]


def test_a_plane_that_is_too_long_for_acknowledgements_is_known() -> None:
    made = windows(reverse_lag_ns=2 * BASE)
    spans(made, 4, (BASE, 3 * BASE))
    assert made.longer == 0
    spans(made, 4, (BASE, 4 * BASE), first=5)
    assert made.longer == 0b10
    spans(made, 2, (BASE, BASE), first=9)
    assert made.longer == 0


def test_paths_of_different_length_concern_the_plane_that_has_them() -> None:
    alone, shared = windows(), windows(congestion_scope="destination")
    before = [made.contexts[0].record()["cwnd_bytes_max"] for made in (alone, shared)]
    for made in (alone, shared):
        made.on_uneven(1, 0, BASE, 2 * BASE)
    assert [context.record()["cwnd_bytes_max"] for context in alone.contexts] == [before[0], 2 * before[0]]
    # Where one window serves all planes, it would go to the one whose packets are in flight longest.
    assert shared.contexts[0].record()["cwnd_bytes_max"] == before[1]
    assert alone.back.longest_ns == shared.back.longest_ns == [0, 2 * BASE]


def test_a_window_that_shrinks_with_the_length_of_its_paths_closes_its_plane() -> None:
    made = windows()
    made.on_uneven(1, 0, 3 * BASE, 3 * BASE)
    window = made.of[1]
    window.grow(1 << 30)
    while made.open & 0b10 and window.inflight_bytes * 2 < window.cwnd_bytes:
        made.left(0, 1, PACKET)
    assert made.open == 0b11
    made.on_uneven(1, 0, 0, 0)
    assert window.inflight_bytes + PACKET > window.cwnd_bytes
    assert made.open == 0b01
    made.acked(1, window.inflight_bytes)
    made.on_sack(BASE, NO_PLANE, False, None, 0)
    assert made.open == 0b11


def test_a_queue_is_no_longer_way() -> None:
    marked, few, off, alike = windows(), windows(), windows(base_rtt_compared=False), windows()
    spans(marked, 4, (BASE, 3 * BASE), marked=True)
    spans(few, 2, (BASE, 3 * BASE), samples=1)
    spans(off, 4, (BASE, 3 * BASE))
    spans(alike, 4, (3 * BASE, 3 * BASE))
    for made in (marked, few, off, alike):
        assert bases(made) == [BASE, BASE]


@pytest.mark.parametrize(("clear", "known"), [(3, False), (4, True)])
def test_what_takes_two_base_rtts_more_without_a_mark_is_a_longer_way_though_others_are_marked(
    clear: int, known: bool
) -> None:
    """One slow path of a longer plane marks packets all the time."""
    for longer_ns, is_long, spans_seen in ((2 * BASE, known, 2), (2 * BASE, False, 1), (2 * BASE - 1, False, 4)):
        made = windows()
        # The first round trip of a span ends the one before.
        for span in range(1, spans_seen + 1):
            for number in range(20):
                now = span * 100 * BASE + number
                made.on_sack(now, 0, False, BASE, 0)
                is_marked = number >= clear
                made.on_sack(now, 1, is_marked, BASE + longer_ns + is_marked * BASE, 0)
        assert bases(made) == [BASE, BASE + longer_ns if is_long else BASE]


def test_round_trips_of_a_queue_have_had_every_length_between_and_those_of_a_longer_way_jump() -> None:
    for between, is_long in (((1,), True), ((1, 3, 4, 6), True), ((1, 3, 4, 5, 6), False)):
        made = windows()
        for number in range(20):
            made.on_sack(100 * BASE + number, 0, False, BASE, 0)
            made.on_sack(100 * BASE + number, 1, False, BASE * between[number % len(between)], 0)
        spans(made, 2, (BASE, 7 * BASE), first=2)
        assert made.contexts[1].record()["base_rtt_ns"] == BASE + is_long * 6 * BASE
    # A queue that has drained is forgotten.
    spans(made, 2, (BASE, BASE), first=4)
    spans(made, 2, (BASE, 7 * BASE), first=6)
    assert bases(made) == [BASE, 7 * BASE]


def test_what_a_queue_adds_to_the_shortest_plane_makes_no_other_one_shorter() -> None:
    made = windows()
    spans(made, 3, (BASE, 7 * BASE))
    for rtt_ns in (3, 4, 5, 6):
        made.on_sack(350 * BASE, 0, True, rtt_ns * BASE, 0)
    spans(made, 3, (6 * BASE, 7 * BASE), first=4)
    assert bases(made)[1] == 7 * BASE


def test_a_longer_plane_is_measured_by_the_base_rtt_where_the_shortest_has_a_lower_rate() -> None:
    made = windows()
    spans(made, 3, (2 * BASE, 7 * BASE))
    assert bases(made)[1] == 7 * BASE


def test_packets_that_come_late_tell_how_long_a_plane_is() -> None:
    for compared, is_long in ((True, True), (False, False)):
        made = windows(base_rtt_compared=compared)
        for number in range(4):
            made.on_sack(number, 0, False, BASE, 0)
            made.came_late(number, 1, 7 * BASE)
        made.on_sack(100 * BASE, 0, False, BASE, 0)
        assert bases(made) == [BASE, BASE + is_long * 6 * BASE]


def test_a_window_of_a_longer_plane_grows_within_a_round_trip() -> None:
    timers = Timers()
    made = PlaneWindows(
        NicSettings(base_rtt_ns=BASE, cwnd_bytes=8 * PACKET), (100 * GIGA,) * 2, NicStats(), timers=timers
    )
    spans(made, 2, (BASE, 9 * BASE))
    before, begun = made.contexts[1].cwnd_bytes, timers.next_ns()
    assert before < 16 * PACKET
    half = 9 * BASE * 100 // 8 // 2
    while timers.next_ns() < begun + 9 * BASE:
        timers.fire(timers.next_ns())
    assert half - PACKET <= made.contexts[1].cwnd_bytes <= half + PACKET
    assert not made.open >> 1 & 1 or made.contexts[1].inflight_bytes + PACKET <= made.contexts[1].cwnd_bytes


def test_what_was_last_heard_of_a_crowded_plane_holds_the_longer_the_smaller_its_window_is() -> None:
    made = windows(rto_ns=8 * BASE)
    assert not made.is_crowded(0, 5, first=False)
    made.of[0].crowded_ns = 100_000
    for packets, rtos in ((64, 0), (8, 0), (6, 0.5), (5, 0.75), (4, 1), (1, 4)):
        made.of[0].cwnd_bytes = packets * PACKET
        until_ns = 100_000 + int(8 * BASE * rtos)
        assert made.is_crowded(0, until_ns, first=False)
        assert not made.is_crowded(0, until_ns + 1, first=False)
    made.of[0].cwnd_bytes = PACKET // 2
    assert made.is_crowded(0, 100_000 + 8 * 8 * BASE, first=False)
    assert not made.is_crowded(0, 100_001 + 8 * 8 * BASE, first=False)


def test_planes_are_crowded_when_each_of_them_was_within_the_last_rto() -> None:
    made = windows(rto_ns=8 * BASE)
    assert not made.are_crowded(BASE, 0b11), "nothing was heard yet"
    made.of[0].crowded_ns = made.of[1].crowded_ns = 100_000
    assert made.are_crowded(100_000 + 8 * BASE, 0b11)
    assert not made.are_crowded(100_000, 0), "no plane can send"
    made.of[1].crowded_ns = -1
    assert not made.are_crowded(100_000 + 8 * BASE, 0b11)
    assert made.are_crowded(100_000 + 8 * BASE, 0b01)


def test_the_others_speak_for_a_plane_of_whose_first_packets_none_was_heard() -> None:
    made = windows()
    made.of[0].crowded_ns = 100_000
    assert not made.is_crowded(1, 90_000, first=False)
    assert made.is_crowded(1, 90_000, first=True)
    made.of[1].crowded_ns = 0
    assert not made.is_crowded(1, 90_000, first=True), "it has been heard of"


def run(timers: Timers, until: int) -> None:
    while (now := timers.next_ns()) <= until:
        timers.fire(now)


def test_the_part_of_a_small_window_that_is_no_packet_is_sent_now_and_then() -> None:
    timers = Timers()
    woken: list[int] = []
    settings = NicSettings(base_rtt_ns=BASE)
    made = PlaneWindows(settings, (100 * GIGA,), NicStats(), timers=timers, wake=lambda: woken.append(1))
    made.of[0].cwnd_bytes = 5 * PACKET // 2
    made.left(0, 0, PACKET)
    assert made.open
    made.left(0, 0, PACKET)
    # Two and a half per round trip: the third leaves two fifths of one after the second.
    assert not made.open
    assert timers.next_ns() == 2 * BASE // 5
    run(timers, 2 * BASE // 5)
    assert (made.open, woken) == (1, [1])
    made.left(2 * BASE // 5, 0, PACKET)
    run(timers, BASE - 1)
    assert not made.open, "three are more than two and a half"


@pytest.mark.parametrize("knobs", [{"cwnd_paced_packets": 0}, {"cwnd_paced_packets": 2}, {"congestion": "fixed"}])
def test_where_it_is_not_wanted_whole_packets_leave_alone(knobs: dict[str, Any]) -> None:
    timers = Timers()
    made = PlaneWindows(NicSettings(base_rtt_ns=BASE, **knobs), (100 * GIGA,), NicStats(), timers=timers)
    made.of[0].cwnd_bytes = 5 * PACKET // 2
    made.left(0, 0, PACKET)
    made.left(0, 0, PACKET)
    run(timers, 10 * BASE)
    assert not made.open


@pytest.mark.parametrize("rtt_ns", [-(1 << 40), -1, 0, 1 << 60])
def test_no_round_trip_is_too_strange(rtt_ns: int) -> None:
    made = windows()
    spans(made, 4, (BASE, rtt_ns))
    assert all(context.cwnd_bytes > 0 for context in made.contexts)


def test_an_acknowledgement_that_came_back_on_a_longer_plane_is_no_queue_of_its_packets_plane() -> None:
    made = windows()
    spans(made, 4, (BASE, 3 * BASE))
    assert bases(made) == [BASE, 3 * BASE]
    assert made.less_way_back(0, 1, 3 * BASE) == BASE
    assert made.less_way_back(1, 1, 5 * BASE) == 3 * BASE
    assert made.less_way_back(1, 0, 3 * BASE) == 3 * BASE
    assert made.less_way_back(0, -1, 3 * BASE) == 3 * BASE
    assert made.less_way_back(0, 1, BASE) == 0
    assert made.less_way_back(0, 1, None) is None


def test_where_peers_can_be_asked_data_alone_make_no_plane_longer() -> None:
    asked: list[int] = []

    def ask(now: int) -> int:
        asked.append(now)
        return 2

    made = PlaneWindows(NicSettings(base_rtt_ns=BASE), (100 * GIGA,) * 2, NicStats(), ask_lengths=ask)
    made.left(1, 1, PACKET)
    spans(made, 4, (BASE, 7 * BASE))
    assert asked
    assert bases(made) == [BASE, BASE]
    made.length_answered(asked[-1] + BASE, 0, BASE, False)
    made.length_answered(asked[-1] + 7 * BASE, 1, 7 * BASE, False)
    assert bases(made) == [BASE, 7 * BASE]
    assert made.longer == made.late_back == 0b10
