"""Who waits for whom, counted from what drives write into the page."""

from mrcfabric.clock import ClockPage
from mrcfabric.units import NS_PER_MS, NS_PER_S
from orchestrator.hosts.clock.waiting import GAP_NS_MAX, Waiting

ROW = [[(1, 0)], [(0, 0), (2, 0)], [(1, 1), (3, 0)], [(2, 1)]]
HOST_OF = [1, 1, 2, 2]
"""Four nodes in a row, 0 -- 1 -- 2 -- 3, on two hosts."""


def test_a_wish_that_is_not_fulfilled_is_a_wait_for_the_host_of_the_neighbour() -> None:
    page = ClockPage.create(ROW)
    page.wake()
    waiting = Waiting(page, ROW, HOST_OF, 1)
    assert waiting.waited_ns == {1: 0, 2: 0}
    page.words[page.want_word(2, 0)] = 500  # node 1 waits for node 2
    page.words[page.want_word(1, 0)] = 300  # node 0 for node 1
    page.words[page.want_word(2, 1)] = 900  # node 3 for node 2: that is of the other host
    waiting.look(NS_PER_S)
    waiting.look(NS_PER_S + 50 * NS_PER_MS)
    assert (waiting.ran_ns, waiting.waited_ns) == (50 * NS_PER_MS, {1: 50 * NS_PER_MS, 2: 50 * NS_PER_MS})
    page.words[page.horizon_word(1)] = 300
    waiting.look(NS_PER_S + 60 * NS_PER_MS)
    assert (waiting.ran_ns, waiting.waited_ns) == (60 * NS_PER_MS, {1: 50 * NS_PER_MS, 2: 60 * NS_PER_MS})


def test_nobody_waits_while_time_sleeps_and_who_stood_still_itself_does_not_know() -> None:
    page = ClockPage.create(ROW)
    waiting = Waiting(page, ROW, HOST_OF, 2)
    page.words[page.want_word(1, 1)] = 500
    waiting.look(0)
    waiting.look(NS_PER_S)
    assert (waiting.ran_ns, waiting.waited_ns) == (0, {1: 0, 2: 0})
    page.wake()
    waiting.look(100 * NS_PER_S)
    assert (waiting.ran_ns, waiting.waited_ns) == (GAP_NS_MAX, {1: GAP_NS_MAX, 2: 0})
