"""The clock page: horizons bind, the dead do not, and idleness is judged from what is sent and taken."""

import os

import pytest

from mrcfabric import tally
from mrcfabric.clock import ClockPage, PageState, SlotState, restart_horizon
from mrcfabric.units import NEVER

# Three nodes in a row: 0 -- 1 -- 2.
ROW = [[(1, 0)], [(0, 0), (2, 0)], [(1, 1)]]


@pytest.fixture
def page() -> ClockPage:
    return ClockPage.create(ROW, dilation=12.5)


def test_a_new_page_sleeps_with_everybody_absent(page: ClockPage) -> None:
    assert page.state is PageState.SLEEP
    assert [page.slot_state(node) for node in range(3)] == [SlotState.ABSENT] * 3
    assert page.dilation == 12.5
    assert page.fabric_now() == 0


def test_another_process_sees_the_same_words(page: ClockPage) -> None:
    other = ClockPage(os.dup(page.fd))
    other.mark_alive(1, pid=77, incarnation=3)
    page.words[page.horizon_word(1)] = 4_000
    assert (page.pid(1), page.incarnation(1), other.horizon(1)) == (77, 3, 4_000)
    other.close()


def test_fabric_now_is_the_slowest_of_the_living(page: ClockPage) -> None:
    for node, horizon in enumerate((500, 300, 900)):
        page.mark_alive(node, pid=1, incarnation=0)
        page.words[page.horizon_word(node)] = horizon
    assert (page.fabric_now(), page.fabric_front()) == (300, 900)
    page.mark_dead(1)
    assert page.horizon(1) == NEVER
    assert page.fabric_now() == 500


def test_a_node_that_is_being_started_holds_fabric_now(page: ClockPage) -> None:
    for node, horizon in enumerate((500, 300, 900)):
        page.mark_alive(node, pid=1, incarnation=0)
        page.words[page.horizon_word(node)] = horizon
    page.mark_booting(1, 400)
    assert (page.fabric_now(), page.fabric_front()) == (400, 900)


def test_words_of_different_edges_never_overlap(page: ClockPage) -> None:
    words = [
        position(node, port)
        for node, ports in enumerate(ROW)
        for port in range(len(ports))
        for position in (page.sent_word, page.taken_word, page.want_word)
    ]
    assert len(set(words)) == len(words)
    rows = [page.tally_words(node) for node in range(3)]
    assert rows[0].start == max(words) + 1
    assert [row.start for row in rows[1:]] == [row.stop for row in rows[:-1]]
    assert rows[-1].stop == len(page.words)


def test_what_was_counted_outlives_its_node_and_never_gets_less(page: ClockPage) -> None:
    page.mark_alive(1, pid=1, incarnation=0)
    page.set_tally(1, [7] * tally.WORDS)
    page.set_tally(1, [9] + [3] * (tally.WORDS - 1))
    page.mark_dead(1)
    page.mark_booting(1, 100)
    assert page.tally(1) == [9] + [7] * (tally.WORDS - 1)
    assert page.tally(0) == page.tally(2) == [0] * tally.WORDS


def test_idle_means_nothing_pending_and_nothing_between(page: ClockPage) -> None:
    for node in range(3):
        page.mark_alive(node, pid=1, incarnation=0)
    assert page.all_idle()
    page.words[page.pending_word(2)] = 1
    assert not page.all_idle()
    page.words[page.pending_word(2)] = 0
    page.words[page.sent_word(0, 0)] = 5
    assert not page.all_idle()
    page.words[page.taken_word(1, 0)] = 5
    assert page.all_idle()


def test_an_instant_that_is_awaited_must_be_reached_by_all_that_live(page: ClockPage) -> None:
    for node, horizon in enumerate((5000, 4000, 6000)):
        page.mark_alive(node, pid=1, incarnation=0)
        page.words[page.horizon_word(node)] = horizon
    assert page.all_idle(4000)
    assert not page.all_idle(4001)
    page.mark_dead(1)
    assert page.all_idle(5000)


def test_a_booting_node_keeps_the_fabric_awake(page: ClockPage) -> None:
    for node in range(3):
        page.mark_alive(node, pid=1, incarnation=0)
    page.mark_booting(0, 1_000)
    assert not page.all_idle()
    assert page.horizon(0) == 1_000


def test_what_the_dead_sent_keeps_nobody_awake(page: ClockPage) -> None:
    for node in range(3):
        page.mark_alive(node, pid=1, incarnation=0)
    page.words[page.sent_word(0, 0)] = 9
    page.mark_dead(0)
    assert page.all_idle()


def test_no_frame_for_the_restarted_node_is_sent_before_it_listens() -> None:
    delay, serialization = 1_000, 341
    horizon = restart_horizon(0, 100_000, delay, serialization)
    latest_departure_before_restart = horizon + delay
    assert latest_departure_before_restart + serialization + delay < 100_000
    assert restart_horizon(99_999, 100_000, delay, serialization) == 99_999


def test_other_memory_is_refused() -> None:
    fd = os.memfd_create("nothing")
    os.ftruncate(fd, 4096)
    with pytest.raises(ValueError, match="not a clock page"):
        ClockPage(fd)
    os.close(fd)


def test_a_new_page_sets_no_limit_and_everybody_sees_one_that_is_set(page: ClockPage) -> None:
    assert page.limit == NEVER
    other = ClockPage(os.dup(page.fd))
    page.set_limit(5_000)
    assert other.limit == 5_000
    other.close()


def test_a_node_that_waits_for_its_birth_is_not_ahead_of_the_others(page: ClockPage) -> None:
    for node in range(3):
        page.mark_alive(node, pid=1, incarnation=0)
        page.words[page.horizon_word(node)] = 300
    page.mark_booting(1, 9_000)
    page.mark_alive(1, pid=2, incarnation=1)
    assert (page.fabric_now(), page.fabric_front()) == (300, 300)
    page.words[page.horizon_word(1)] = 9_500
    assert page.fabric_front() == 9_500
