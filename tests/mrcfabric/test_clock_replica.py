"""Replicas of a clock page: one source per word, old lives dropped, counts before horizons, nobody left waiting."""

import itertools
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.clock import ClockPage, PageState, SlotState
from mrcfabric.clock_replica import Replica, Rings, StrangeNewsError
from mrcfabric.units import NEVER
from tests.support.watched import Watched

# Four nodes in a row, 0 -- 1 -- 2 -- 3: the leader's host has none, host 1 the first two, host 2 the others.
ROW = [[(1, 0)], [(0, 0), (2, 0)], [(1, 1), (3, 0)], [(2, 1)]]
HOST_OF = [1, 1, 2, 2]
LEADER, LEFT, RIGHT = range(3)


class Cluster:
    """Three replicas and what is on its way between them, in order per direction."""

    def __init__(self) -> None:
        self.pages = [ClockPage.create(ROW) for _ in range(3)]
        self.replicas = [Replica(page, ROW, HOST_OF, here, LEADER) for here, page in enumerate(self.pages)]
        self.wires: dict[tuple[int, int], deque[bytes]] = {(a, b): deque() for a in range(3) for b in range(3)}

    def look(self, host: int) -> None:
        for other, news in self.replicas[host].look().items():
            self.wires[host, other].append(news)

    def deliver(self, source: int, host: int) -> Rings:
        rings = Rings()
        while self.wires[source, host]:
            one = self.replicas[host].take(source, self.wires[source, host].popleft())
            rings = Rings(rings.nodes | one.nodes, rings.everybody or one.everybody, rings.agent or one.agent)
        return rings

    def settle(self) -> None:
        for _ in range(3):
            for host in range(3):
                self.look(host)
            for source, host in self.wires:
                self.deliver(source, host)

    def publish(self, node: int, horizon: int, pending: int = 0) -> bool:
        """What a process does at the end of its tick; whether somebody asked for it."""
        page = self.pages[HOST_OF[node]]
        page.words[page.pending_word(node)] = pending
        page.words[page.horizon_word(node)] = horizon
        asked = False
        for port in range(len(ROW[node])):
            if page.words[page.want_word(node, port)] <= horizon:
                page.words[page.want_word(node, port)] = NEVER
                asked = True
        return asked

    def bear(self, node: int, incarnation: int = 0) -> None:
        self.pages[HOST_OF[node]].mark_alive(node, 100 + node, incarnation)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def born(cluster: Cluster) -> Cluster:
    for node in range(4):
        cluster.pages[LEADER].mark_booting(node, 0)
    cluster.settle()
    for node in range(4):
        cluster.bear(node)
    cluster.settle()
    return cluster


def test_births_are_ordered_by_the_leader_and_told_by_the_host(cluster: Cluster) -> None:
    cluster.pages[LEADER].mark_booting(1, 7)
    cluster.settle()
    assert [page.slot_state(1) for page in cluster.pages] == [SlotState.BOOTING] * 3
    assert [page.horizon(1) for page in cluster.pages] == [7] * 3
    cluster.bear(1)
    cluster.settle()
    assert [page.slot_state(1) for page in cluster.pages] == [SlotState.ALIVE] * 3
    assert cluster.pages[RIGHT].pid(1) == 101


def test_a_host_hears_of_its_neighbours_and_the_leader_of_all(born: Cluster) -> None:
    for node in range(4):
        born.publish(node, 1_000 + node)
    born.settle()
    assert [born.pages[LEADER].horizon(node) for node in range(4)] == [1_000, 1_001, 1_002, 1_003]
    assert [born.pages[RIGHT].horizon(node) for node in range(4)] == [0, 1_001, 1_002, 1_003]
    assert born.pages[RIGHT].slot_state(0) == SlotState.ABSENT


def test_who_waits_for_a_node_elsewhere_is_rung_and_nobody_else(born: Cluster) -> None:
    right = born.pages[RIGHT]
    right.words[right.want_word(1, 1)] = 900  # node 2 waits for node 1
    born.publish(1, 899)
    born.look(LEFT)
    assert born.deliver(LEFT, RIGHT).nodes == set()
    born.publish(1, 900)
    born.look(LEFT)
    assert born.deliver(LEFT, RIGHT).nodes == {2}
    assert right.words[right.want_word(1, 1)] == NEVER


def test_every_publication_of_a_node_with_neighbours_elsewhere_is_asked_for(born: Cluster) -> None:
    for horizon in (10, 11, 500):
        born.look(LEFT)
        assert born.publish(1, horizon)
        assert not born.publish(0, horizon)  # its only neighbour is on the same host


def test_news_of_a_life_that_is_over_are_dropped(born: Cluster) -> None:
    born.publish(1, 5_000)
    born.look(LEFT)
    born.pages[LEADER].mark_dead(1)
    assert born.deliver(LEFT, LEADER).nodes == set()
    assert born.pages[LEADER].slot_state(1) == SlotState.DEAD
    born.settle()
    assert [page.slot_state(1) for page in born.pages] == [SlotState.DEAD] * 3
    assert [page.horizon(1) for page in born.pages] == [NEVER] * 3


def test_what_a_node_had_reached_when_it_died_is_not_undone_by_news_from_before(born: Cluster) -> None:
    leader, left = born.pages[LEADER], born.pages[LEFT]
    born.publish(1, 500)
    born.look(LEFT)
    left.words[left.sent_word(1, 1)] += 3
    born.publish(1, 600)
    # The share of its host tells of its death before the relay has told of its last step.
    leader.set_reached(1, left.reached(1))
    born.deliver(LEFT, LEADER)
    assert leader.reached(1) == left.reached(1)


@pytest.mark.parametrize("first", [LEADER, LEFT])
@pytest.mark.parametrize("reborn", [False, True])
def test_a_process_that_outlives_its_death_binds_nobody(born: Cluster, first: int, reborn: bool) -> None:
    born.publish(1, 500)
    born.settle()
    born.pages[LEADER].mark_dead(1)
    born.look(LEADER)
    born.deliver(LEADER, LEFT)
    # Its host has heard it, its process has not.
    if reborn:
        born.bear(1, 1)
    born.pages[LEFT].words[born.pages[LEFT].sent_word(1, 1)] += 9
    born.publish(1, 600, pending=1)
    born.look(LEFT)
    for source in (first, LEADER + LEFT - first):
        born.deliver(source, RIGHT)
    born.publish(1, 700)
    born.settle()
    for page in (born.pages[LEADER], born.pages[RIGHT]):
        assert (page.slot_state(1), page.horizon(1)) == (SlotState.DEAD, NEVER)
        assert not page.words[page.pending_word(1)]
    # Born again, it is heard again.
    born.pages[LEADER].mark_booting(1, 800)
    born.settle()
    born.bear(1, 2)
    born.publish(1, 900)
    born.settle()
    assert [(page.slot_state(1), page.horizon(1)) for page in born.pages] == [(SlotState.ALIVE, 900)] * 3


def test_a_death_rings_those_who_wait_for_the_dead(born: Cluster) -> None:
    right = born.pages[RIGHT]
    right.words[right.want_word(1, 1)] = 900
    born.pages[LEADER].mark_dead(1)
    born.look(LEADER)
    assert born.deliver(LEADER, RIGHT).nodes == {2}


def test_sleep_and_limit_are_the_leaders_and_ring_everybody_once(born: Cluster) -> None:
    born.pages[LEADER].set_limit(77)
    born.pages[LEADER].wake()
    born.look(LEADER)
    assert born.deliver(LEADER, LEFT).everybody
    assert (born.pages[LEFT].limit, born.pages[LEFT].state) == (77, PageState.RUN)
    born.replicas[LEADER].set_floor()
    born.look(LEADER)
    assert not born.deliver(LEADER, LEFT).everybody


def test_no_host_runs_ahead_of_the_slowest_node_it_has_never_heard_of(born: Cluster) -> None:
    for node, horizon in enumerate((300, 2_000, 2_000, 2_000)):
        born.publish(node, horizon)
    born.settle()
    born.replicas[LEADER].set_floor()
    born.settle()
    assert [page.fabric_now() for page in born.pages] == [300] * 3


def test_idleness_is_judged_from_every_host(born: Cluster) -> None:
    left = born.pages[LEFT]
    left.words[left.sent_word(1, 1)] = 3
    for node in range(4):
        born.publish(node, 100)
    born.settle()
    assert not born.pages[LEADER].all_idle()
    right = born.pages[RIGHT]
    right.words[right.taken_word(2, 0)] = 3
    born.publish(2, 101)
    born.settle()
    assert born.pages[LEADER].all_idle()


def test_work_that_turns_up_after_the_fabric_went_to_sleep_wakes_it(born: Cluster) -> None:
    born.pages[LEADER].sleep()
    born.settle()
    born.publish(3, 100, pending=1)
    born.look(RIGHT)
    assert born.deliver(RIGHT, LEADER).agent
    assert born.replicas[LEADER].take(LEFT, born.replicas[LEFT].asked()).agent


def test_a_new_connection_is_told_everything(born: Cluster) -> None:
    born.publish(1, 4_444)
    born.settle()
    blank = ClockPage.create(ROW)
    anew = Replica(blank, ROW, HOST_OF, RIGHT, LEADER)
    anew.take(LEADER, born.replicas[LEADER].everything(RIGHT))
    anew.take(LEFT, born.replicas[LEFT].everything(RIGHT))
    assert blank.horizon(1) == 4_444
    assert blank.slot_state(3) == SlotState.ABSENT  # its own life is nobody else's to tell


def test_sequence_numbers_outlive_a_host(born: Cluster) -> None:
    right = born.pages[RIGHT]
    right.words[right.sent_word(2, 0)], right.words[right.taken_word(2, 0)] = 50, 40
    born.publish(2, 100)
    born.settle()
    blank = ClockPage.create(ROW)
    anew = Replica(blank, ROW, HOST_OF, RIGHT, LEADER)
    born.pages[LEADER].mark_booting(2, 200)
    anew.take(LEADER, born.replicas[LEADER].everything(RIGHT))
    assert (blank.words[blank.sent_word(2, 0)], blank.words[blank.taken_word(2, 0)]) == (50, 40)
    assert (blank.slot_state(2), blank.horizon(2)) == (SlotState.BOOTING, 200)


@pytest.mark.parametrize(
    ("source", "news"),
    [
        (RIGHT, b"123"),
        (RIGHT, b"\xff" * 8),
        (RIGHT, (9 << 32).to_bytes(8, "little")),
        (RIGHT, (1 << 32 | 2).to_bytes(8, "little")),  # cut off
        (RIGHT, (1 << 32 | 1).to_bytes(8, "little") + bytes(8 * 10)),  # of a node that is not its own
        (RIGHT, (3 << 32).to_bytes(8, "little") + bytes(32)),  # a header, but not of the leader
    ],
)
def test_strange_news_are_refused(born: Cluster, source: int, news: bytes) -> None:
    before = bytes(born.pages[LEFT].words)
    with pytest.raises(StrangeNewsError):
        born.replicas[LEFT].take(source, news)
    assert bytes(born.pages[LEFT].words) == before


def assert_dead(cluster: Cluster, nodes: set[int]) -> None:
    """For the leader, and for the hosts of their neighbours."""
    for node in nodes:
        hosts = {LEADER, *(HOST_OF[peer] for peer, _ in ROW[node])} - {HOST_OF[node]}
        told = {(cluster.pages[host].slot_state(node), cluster.pages[host].horizon(node)) for host in hosts}
        assert told == {(SlotState.DEAD, NEVER)}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(0, 3), st.integers(1, 500)),
        st.tuples(st.just("send"), st.integers(0, 3), st.integers(1, 5)),
        st.tuples(st.just("look"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("deliver"), st.integers(0, 2), st.integers(0, 2)),
        st.tuples(st.just("die"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("bear"), st.integers(0, 3), st.integers(0, 1_000)),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_whatever_is_late_no_replica_is_ahead_and_all_agree_in_the_end(steps: list[tuple[str, int, int]]) -> None:
    cluster = Cluster()
    for node in range(4):
        cluster.pages[LEADER].mark_booting(node, 0)
    cluster.settle()
    for node in range(4):
        cluster.bear(node)
    living = set(range(4))
    cluster.settle()
    for verb, one, two in steps:
        if verb == "look":
            cluster.look(one)
        elif verb == "deliver":
            cluster.deliver(one, two)
        elif verb == "die" and one in living:
            living.discard(one)
            cluster.pages[LEADER].mark_dead(one)
        elif verb == "bear" and one not in living:
            cluster.pages[LEADER].mark_booting(one, two)
            cluster.settle()
            cluster.bear(one, 1)
            living.add(one)
        elif verb in ("publish", "send"):
            page = cluster.pages[HOST_OF[one]]
            page.words[page.sent_word(one, 0)] += two if verb == "send" else 0
            # One that is dead goes on when nobody has told its process.
            cluster.publish(one, page.horizon(one) + two if one in living else two)
        for node in living:
            truth = cluster.pages[HOST_OF[node]]
            for page in cluster.pages:
                known = page.horizon(node)
                if page.slot_state(node) == SlotState.ALIVE and truth.horizon(node) != NEVER:
                    assert known <= truth.horizon(node)
    cluster.settle()
    assert_dead(cluster, set(range(4)) - living)
    for node in living:
        truth = cluster.pages[HOST_OF[node]]
        assert cluster.pages[LEADER].horizon(node) == truth.horizon(node)
        assert cluster.pages[LEADER].slot_state(node) == truth.slot_state(node)
        sent = truth.words[truth.sent_word(node, 0)]
        assert cluster.pages[LEADER].words[cluster.pages[LEADER].sent_word(node, 0)] == sent


@pytest.mark.parametrize("alive", [True, False])
def test_nobody_hears_of_half_an_order(born: Cluster, alive: bool) -> None:
    """The relay of the leader may look while the leader's agent writes."""
    page, look = born.pages[LEADER], lambda: born.look(LEADER)
    words = page.words
    if not alive:
        page.mark_dead(1)
        born.settle()
    page.words = Watched(words, look)  # type: ignore[assignment]
    number = page.mark_booting(1, 500)
    page.words = words
    born.settle()
    assert [(one.orders(1), one.slot_state(1), one.horizon(1)) for one in born.pages] == [
        (number, SlotState.BOOTING, 500)
    ] * 3
    born.bear(1, 1)
    born.publish(1, 600)
    born.settle()
    assert [(one.slot_state(1), one.horizon(1)) for one in born.pages] == [(SlotState.ALIVE, 600)] * 3
    page.words = Watched(words, look)  # type: ignore[assignment]
    number = page.mark_dead(1)
    page.words = words
    born.settle()
    assert [(one.orders(1), one.slot_state(1), one.horizon(1)) for one in born.pages] == [
        (number, SlotState.DEAD, NEVER)
    ] * 3


def test_nobody_hears_news_of_a_node_under_half_an_order() -> None:
    """Of a node on the leader's own host, whose relay stands beside the agent."""
    here, there = pages = [ClockPage.create([[(1, 0)], [(0, 0)]]) for _ in range(2)]
    leader, other = (Replica(page, [[(1, 0)], [(0, 0)]], [0, 1], number, 0) for number, page in enumerate(pages))
    words, look = here.words, lambda: [other.take(0, news) for news in leader.look().values()]
    here.words = Watched(words, look)  # type: ignore[assignment]
    here.mark_booting(0, 500)
    number = here.mark_dead(0)
    here.words = words
    look()
    assert (there.orders(0), there.slot_state(0), there.horizon(0)) == (number, SlotState.DEAD, NEVER)


@pytest.mark.parametrize("after", range(7))
def test_an_order_given_in_the_midst_of_news_stands_or_is_seen_to_be_overwritten(born: Cluster, after: int) -> None:
    """The leader's relay may be writing what it has heard of the former life while the agent writes."""
    page = born.pages[LEADER]
    words = page.words
    born.publish(1, 300)
    born.look(LEFT)
    news = born.wires[LEFT, LEADER].popleft()
    written = itertools.count()
    numbers: list[int] = []

    def order() -> None:
        if next(written) == 2 * after:
            page.words = words
            numbers.append(page.mark_booting(1, 500))

    page.words = Watched(words, order)  # type: ignore[assignment]
    born.replicas[LEADER].take(LEFT, news)
    page.words = words
    assert len(numbers) == 1
    slot = (page.slot_state(1), page.horizon(1))
    assert page.orders(1) < numbers[0] or slot == (SlotState.BOOTING, 500)
