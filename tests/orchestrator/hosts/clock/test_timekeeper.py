"""The agent's hand on fabric time: sleep, wake, leads, stalls. The daemons are played by the test."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from mrcfabric import tally
from mrcfabric.clock import S_ORDERS, S_STATE, SlotState
from mrcfabric.units import NEVER
from orchestrator.hosts.clock import timekeeper
from orchestrator.hosts.clock.timekeeper import IDLE_HOPS_PER_S, LEAD_HOPS_MIN, LEAD_WALL_S, PACE_WALL_S, Timekeeper
from tests.support.wait import eventually

HOP_NS = 1000
# Two nodes with a cable between them.
PEERS = [[(1, 0)], [(0, 0)]]
DEADLINE_S = 20.0


@pytest.fixture
def keeper() -> Iterator[Timekeeper]:
    one = Timekeeper(PEERS, doorbells=2, hops_ns=(HOP_NS, HOP_NS), dilation=0.0)
    yield one
    one.close()


@pytest.fixture
async def serving(keeper: Timekeeper) -> AsyncIterator[Timekeeper]:
    for slot in (0, 1):
        keeper.page.mark_alive(slot, os.getpid(), 0)
    task = asyncio.create_task(keeper.serve())
    yield keeper
    task.cancel()
    await asyncio.wait([task])


def rung(doorbell: int) -> bool:
    try:
        return bool(os.eventfd_read(doorbell))
    except BlockingIOError:
        return False


def reach(keeper: Timekeeper, instant: int) -> None:
    for slot in (0, 1):
        keeper.page.words[keeper.page.horizon_word(slot)] = instant


async def test_an_idle_fabric_sleeps_and_pending_work_wakes_it(serving: Timekeeper) -> None:
    assert serving.state == "sleep"
    os.eventfd_write(serving.agent_doorbell, 1)
    await eventually(lambda: serving.page.wakes == 1, DEADLINE_S)
    await eventually(lambda: serving.state == "sleep", DEADLINE_S)
    assert all(rung(doorbell) for doorbell in serving.doorbells)
    # Work whose ring got lost is found by looking.
    serving.page.words[serving.page.pending_word(1)] = 1
    await eventually(lambda: serving.state == "run", DEADLINE_S)
    serving.page.words[serving.page.pending_word(1)] = 0
    await eventually(lambda: serving.state == "sleep", DEADLINE_S)
    assert serving.run_wall_s() > 0


async def test_a_frame_on_its_way_keeps_the_fabric_awake(serving: Timekeeper) -> None:
    page = serving.page
    page.words[page.sent_word(0, 0)] = 1
    await eventually(lambda: serving.state == "run", DEADLINE_S)
    page.words[page.taken_word(1, 0)] = 1
    await eventually(lambda: serving.state == "sleep", DEADLINE_S)


async def test_a_node_that_is_being_started_keeps_the_fabric_awake(serving: Timekeeper) -> None:
    serving.hold_for(1, 5000)
    await eventually(lambda: serving.state == "run", DEADLINE_S)
    assert not serving.all_alive()
    serving.bury(1)
    await eventually(lambda: serving.state == "sleep", DEADLINE_S)


async def test_an_instant_that_is_awaited_wakes_the_fabric_until_all_are_there(serving: Timekeeper) -> None:
    serving.await_instant(5000)
    assert serving.state == "run"
    # Nothing is pending with anybody, and one is there.
    serving.page.words[serving.page.horizon_word(0)] = 5000
    looks = serving.page.wakes
    serving.page.sleep()
    await eventually(lambda: serving.page.wakes > looks, DEADLINE_S)
    reach(serving, 5000)
    await eventually(lambda: serving.state == "sleep", DEADLINE_S)
    serving.await_instant(4000)
    assert serving.state == "sleep"


async def test_what_is_called_off_is_not_awaited(serving: Timekeeper) -> None:
    serving.await_instant(10**15)
    assert serving.state == "run"
    serving.await_instant(0)
    await eventually(lambda: serving.state == "sleep", DEADLINE_S)


def test_time_never_goes_back(keeper: Timekeeper) -> None:
    keeper.page.mark_alive(0, os.getpid(), 0)
    keeper.page.words[keeper.page.horizon_word(0)] = 7000
    assert keeper.now_ns() == 7000
    keeper.bury(0)
    assert keeper.now_ns() == 7000


def test_the_front_stays_where_a_node_was_that_has_died(keeper: Timekeeper) -> None:
    for slot in (0, 1):
        keeper.page.mark_alive(slot, os.getpid(), 0)
    keeper.page.words[keeper.page.horizon_word(1)] = 9000
    assert keeper.front_ns() == 9000
    soon_ns = keeper.soon_ns()
    keeper.bury(1)
    assert keeper.front_ns() == 9000
    assert keeper.soon_ns() == soon_ns
    assert keeper.limit(5000) == 9000


def test_the_lead_follows_the_pace(keeper: Timekeeper) -> None:
    assert keeper.lead_ns() == IDLE_HOPS_PER_S * HOP_NS * LEAD_WALL_S, "a sleeping fabric wakes up fast"
    keeper.page.wake()
    assert keeper.lead_ns() == LEAD_HOPS_MIN * HOP_NS


@pytest.mark.parametrize(("dilation", "hops"), [(20_000, LEAD_HOPS_MIN), (2_000, 250), (500, 500), (0, 500)])
def test_a_fabric_that_is_slowed_down_wakes_up_no_faster(dilation: float, hops: int) -> None:
    """Hops of a microsecond: 50 of them take a wall second at the slower pace; without the bound it was ten."""
    keeper = Timekeeper([[(1, 1000)], [(0, 1000)]], 1, (1000, 1000), dilation)
    try:
        assert keeper.lead_ns() == hops * 1000
    finally:
        keeper.close()


def test_the_lead_of_a_fabric_that_is_let_go_is_that_of_its_pace_before(keeper: Timekeeper) -> None:
    keeper.limit(5000)
    keeper.page.wake()
    assert keeper.lead_ns() == LEAD_HOPS_MIN * HOP_NS
    keeper.limit(None)
    assert keeper.lead_ns() == IDLE_HOPS_PER_S * HOP_NS * LEAD_WALL_S


async def test_the_lead_of_a_fabric_that_waits_for_somebody_is_that_of_its_pace_before(
    serving: Timekeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timekeeper, "STALL_WALL_S", 5 * PACE_WALL_S)
    serving.page.words[serving.page.pending_word(0)] = 1
    await eventually(lambda: serving.stalled() is not None, DEADLINE_S)
    assert serving.lead_ns() == IDLE_HOPS_PER_S * HOP_NS * LEAD_WALL_S, "it may go on at any moment"


def test_commands_are_stamped_ahead_of_the_furthest_node(keeper: Timekeeper) -> None:
    for slot, horizon in enumerate((4000, 5000)):
        keeper.page.mark_alive(slot, os.getpid(), 0)
        keeper.page.words[keeper.page.horizon_word(slot)] = horizon
    assert keeper.now_ns() == 4000
    assert keeper.soon_ns() == 5000 + keeper.lead_ns()


@pytest.mark.parametrize("several", [False, True])
def test_time_that_is_held_for_a_command_needs_no_lead_of_its_pace(several: bool) -> None:
    """Where others hear of the limit later, they may go on meanwhile: unless they sleep, and hear of it first."""
    keeper = Timekeeper(PEERS, 2, (HOP_NS, 7_000), 0.0, several=several)
    try:
        least_ns = LEAD_HOPS_MIN * HOP_NS + 7_000
        reach(keeper, 5_000)
        assert keeper.next_ns() == keeper.front_ns() + least_ns
        keeper.wake()
        assert keeper.next_ns() == keeper.front_ns() + (keeper.lead_ns() if several else least_ns)
        assert keeper.lead_ns() == IDLE_HOPS_PER_S * HOP_NS * LEAD_WALL_S > least_ns
    finally:
        keeper.close()


async def test_the_node_that_is_furthest_behind_is_the_one_that_stalls(
    serving: Timekeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timekeeper, "STALL_WALL_S", 0.05)
    page = serving.page
    page.words[page.pending_word(0)] = 1
    reach(serving, 3000)
    page.words[page.horizon_word(0)] = 2500
    await eventually(lambda: serving.stalled() is not None, DEADLINE_S)
    stalled = serving.stalled()
    assert stalled is not None
    assert stalled[0] == 0
    serving.excuse()
    assert serving.stalled() is None, "nobody was to blame so far"
    await eventually(lambda: serving.stalled() is not None, DEADLINE_S)
    reach(serving, 9000)
    await eventually(lambda: serving.stalled() is None, DEADLINE_S)
    serving.hold_for(1, 9000)
    await eventually(lambda: serving.state == "run", DEADLINE_S)
    assert serving.stalled() is None, "a node that boots is waited for"


def test_the_record_tells_the_effective_dilation(keeper: Timekeeper) -> None:
    assert keeper.record()["dilation_effective"] is None
    keeper.page.mark_alive(0, os.getpid(), 0)
    keeper.wake()
    keeper.page.words[keeper.page.horizon_word(0)] = 1000
    record = keeper.record()
    assert record["fabric_ns"] == 1000
    assert record["dilation_effective"] == pytest.approx(record["run_wall_s"] * 1e6)


async def test_a_fabric_that_stands_at_its_limit_is_not_stalled(
    serving: Timekeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timekeeper, "STALL_WALL_S", 0.0)
    page = serving.page
    page.words[page.pending_word(0)] = 1
    reach(serving, 3000)
    serving.wake()
    assert serving.limit(4000) == 4000
    assert not serving.standing
    assert serving.stalled() is not None
    reach(serving, 4000)
    assert serving.standing
    assert serving.stalled() is None
    assert serving.limit(None) == NEVER
    assert not serving.standing


def test_a_limit_never_lies_behind_the_furthest_node(keeper: Timekeeper) -> None:
    for slot, horizon in enumerate((4000, 5000)):
        keeper.page.mark_alive(slot, os.getpid(), 0)
        keeper.page.words[keeper.page.horizon_word(slot)] = horizon
    assert keeper.limit(4500) == 5000
    assert all(rung(doorbell) for doorbell in keeper.doorbells)


async def test_time_stands_still_for_who_looks_and_nobody_is_to_blame(
    serving: Timekeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timekeeper, "STALL_WALL_S", 0.0)
    page = serving.page
    page.words[page.pending_word(0)] = 1
    page.words[page.horizon_word(0)], page.words[page.horizon_word(1)] = 3000, 4000
    serving.wake()
    assert [rung(doorbell) for doorbell in serving.doorbells] == [True, True]
    async with serving.still():
        async with serving.still():
            assert page.limit == 3000, "where the last node is"
            assert not any(map(rung, serving.doorbells)), "who sleeps need not wake for that"
        assert page.limit == 3000, "as long as anybody looks"
        assert not serving.standing
        assert serving.limit_ns == NEVER
        assert serving.stalled() is None
        assert serving.limit(9000) == 9000, "what a run asks for meanwhile comes after it"
        assert page.limit == 3000
    assert page.limit == 9000
    assert [rung(doorbell) for doorbell in serving.doorbells] == [True, True]
    assert serving.stalled() is not None


async def test_time_goes_on_as_long_as_it_stood_still_before_it_does_so_again(keeper: Timekeeper) -> None:
    async with keeper.still():
        began_s = time.monotonic()
        await asyncio.sleep(0.2)
        ended_s = time.monotonic()
    # It stood still for longer than we have seen; whatever puts this test aside lets more time go by.
    async with keeper.still():
        assert time.monotonic() - ended_s >= ended_s - began_s - 0.01
    with pytest.raises(ValueError, match="of who looks"):
        async with keeper.still():
            raise ValueError("of who looks")
    assert keeper.page.limit == NEVER


async def test_time_waits_until_daemons_know_of_an_instant(keeper: Timekeeper) -> None:
    with keeper.before(5_000):
        assert keeper.page.limit == 4_999
        with keeper.before(3_000), keeper.before(9_000):
            assert keeper.page.limit == 2_999
            assert keeper.limit(2_000) == 2_000
            assert keeper.page.limit == 2_000
            assert keeper.limit(None) == NEVER
            assert keeper.page.limit == 2_999
        assert keeper.page.limit == 4_999
        assert all(rung(doorbell) for doorbell in keeper.doorbells)
        with keeper.before(4_000):
            assert not any(rung(doorbell) for doorbell in keeper.doorbells), "who sleeps need not wake for that"
    assert keeper.page.limit == NEVER
    assert all(rung(doorbell) for doorbell in keeper.doorbells)


async def test_an_instant_that_passed_before_time_was_held_is_chosen_again(
    keeper: Timekeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when this process stands still while the fabric runs on."""
    instants = iter([90, 100, 5_000])
    monkeypatch.setattr(keeper, "next_ns", lambda: next(instants))
    keeper.page.mark_alive(0, os.getpid(), 0)
    reach(keeper, 100)
    with keeper.before(None) as at_ns:
        assert (at_ns, keeper.page.limit) == (5_000, 4_999)
    assert keeper.page.limit == NEVER


async def test_before_the_first_instant_time_stands_at_zero(keeper: Timekeeper) -> None:
    with keeper.before(0):
        assert keeper.page.limit == 0
    assert keeper.page.limit == NEVER


async def test_time_does_not_wait_long_for_who_hears_nothing(
    keeper: Timekeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timekeeper, "BEFORE_WALL_S", 0.01)
    with keeper.before(5_000):
        await eventually(lambda: keeper.page.limit == NEVER, DEADLINE_S)
    assert keeper.page.limit == NEVER


async def test_what_a_relay_overwrites_is_ordered_again(serving: Timekeeper) -> None:
    page = serving.page
    for order, state in (
        (lambda: serving.bury(1), SlotState.DEAD),
        (lambda: serving.hold_for(1, 77), SlotState.BOOTING),
    ):
        orders, before = page.orders(1), page.slot_state(1)
        order()
        horizon = page.horizon(1)
        # News that the relay took for fresh before the order was given, and writes only now.
        row = page.horizon_word(1)
        page.words[row + S_STATE], page.words[row], page.words[row + S_ORDERS] = before, 5, orders
        await eventually(lambda state=state: page.slot_state(1) == state, DEADLINE_S)
        assert (page.orders(1), page.horizon(1)) == (orders + 1, horizon)


COUNTED = [7] * tally.WORDS


def test_the_last_of_a_node_on_another_host_is_kept_for_its_neighbours(keeper: Timekeeper) -> None:
    keeper.page.mark_booting(1, 0)
    keeper.has_reached({1: [900, 3, 2, *COUNTED]})
    assert keeper.page.horizon(1) == 0, "one that has not been born has reached nothing"
    keeper.page.mark_alive(1, 1, 0)
    keeper.has_reached({1: [900, 3, 2, *COUNTED]})
    assert keeper.page.reached(1) == [900, 3, 2]
    assert keeper.page.tally(1) == COUNTED
