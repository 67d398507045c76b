"""One set of verbs: what a fabric does by itself, it does whether it was launched here or runs elsewhere."""

import inspect
import re
from pathlib import Path

import pytest

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import RefusedError
from mrcfabric.units import NS_PER_S
from orchestrator.api.fabric import AttachedFabric
from orchestrator.api.watch import Watch
from orchestrator.api.work import Work
from orchestrator.fabric import Fabric
from orchestrator.fabric.readings import ClockReading
from orchestrator.fabric.verbs import Verbs
from orchestrator.faults.fault import Fault
from tests.orchestrator.running import DEADLINE_S
from tests.support.wait import eventually

LINK = "p0-t0-0~p0-t1-1"
GUIDE = Path(__file__).parents[3] / "docs" / "PYTHON.md"


@pytest.mark.parametrize("verb", sorted(Verbs.__abstractmethods__))
def test_both_kinds_of_fabric_take_the_same(verb: str) -> None:
    wanted = inspect.signature(getattr(Verbs, verb)).parameters
    for kind in (Fabric, AttachedFabric):
        taken = inspect.signature(getattr(kind, verb)).parameters
        assert {name: taken[name] for name in wanted} == wanted
        assert inspect.getdoc(getattr(kind, verb))


@pytest.mark.parametrize(
    ("spoken_of", "kind"), [("fabric", AttachedFabric), ("fabric", Fabric), ("watch", Watch), ("work", Work)]
)
def test_the_guide_speaks_of_what_there_is(spoken_of: str, kind: type) -> None:
    spoken = set(re.findall(rf"\b{spoken_of}\.([a-z_]+)\(", GUIDE.read_text()))
    assert spoken
    assert not [name for name in spoken if not hasattr(kind, name)]


@pytest.mark.integration
async def test_a_fault_lasts_as_long_as_its_block(fabric: Fabric) -> None:
    async with fabric.fault("loss", LINK, figures={"share_ppm": 20_000}) as fault:
        [live] = await fabric.live_faults()
        assert (live.id, live.targets) == (fault.id, (LINK,))
        assert (await fabric.clock()).now_ns >= fault.start_ns
    assert not fabric.active_faults()
    async with fabric.fault("link_down", LINK) as fault:
        await fabric.heal(fault.id)
    assert not fabric.active_faults()


@pytest.mark.integration
async def test_a_fabric_that_was_faster_than_our_word_is_told_again(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, stale = fabric.clock, await fabric.clock()
    readings = [stale._replace(front_ns=0, soon_ns=0, next_ns=0), stale]

    async def clock() -> ClockReading:
        return readings.pop(0) if readings else await read()

    monkeypatch.setattr(fabric, "clock", clock)
    fault = await fabric.add_fault("link_down", LINK)
    assert fault.start_ns > stale.front_ns
    assert (readings, [one.id for one in fabric.faults()]) == ([], [fault.id])


@pytest.mark.integration
async def test_a_fault_begins_next_however_fast_the_fabric_was(fabric: Fabric) -> None:
    """It took many seconds where a fabric had been fast while it was idle, and then had much to do."""
    before = await fabric.clock()
    assert before.next_ns < before.soon_ns
    fault = await fabric.add_fault("link_down", LINK)
    assert fault.start_ns == before.next_ns
    await fabric.reached(fault.start_ns, DEADLINE_S)
    before = await fabric.clock()
    left = await fabric.heal(fault.id)
    assert left is None or left.end_ns == before.next_ns
    assert (await fabric.fidelity())["late_commands"] == 0


@pytest.mark.integration
async def test_what_is_refused_for_another_reason_is_asked_for_once(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Fault] = []

    async def inject(fault: Fault) -> None:
        asked.append(fault)
        raise RefusedError("one too many")

    monkeypatch.setattr(fabric, "inject", inject)
    with pytest.raises(RefusedError, match="one too many"):
        await fabric.add_fault("link_down", LINK)
    assert len(asked) == 1


@pytest.mark.integration
async def test_time_is_held_where_no_node_ends_its_step_beyond(fabric: Fabric) -> None:
    before = await fabric.clock()
    async with fabric.held() as at_ns:
        assert at_ns >= before.next_ns > before.front_ns
        await eventually(lambda: fabric.time.page.fabric_front() <= at_ns, DEADLINE_S)


@pytest.mark.integration
async def test_time_is_held_at_once_on_a_fabric_that_was_fast_while_idle(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fabric.time, "lead_ns", lambda: 1000 * NS_PER_S)
    async with fabric.held() as at_ns:
        assert at_ns < NS_PER_S


@pytest.mark.integration
async def test_a_hold_that_time_has_passed_is_put_further_ahead(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit, asked = fabric.limit, []

    async def late(at_ns: int | None, owner: str = "") -> int | None:
        asked.append(at_ns)
        return await limit(0 if len(asked) == 1 else at_ns, owner)

    monkeypatch.setattr(fabric, "limit", late)
    async with fabric.held() as at_ns:
        assert asked[1:] == [at_ns]


@pytest.mark.integration
async def test_what_is_broken_while_time_is_held_breaks_there(fabric: Fabric) -> None:
    async with fabric.held() as at_ns:
        first = await fabric.add_fault("link_down", LINK, for_ns=5_000)
        second = await fabric.add_fault("nic_port_down", "h001:0", title="a port")
        assert first.start_ns == second.start_ns == at_ns + 1
        with pytest.raises(RefusedError, match="in the hands of"):
            await fabric.limit(at_ns, "another")
    await fabric.reached(first.end_ns + 5_000, DEADLINE_S)
    assert [fault.title for fault in await fabric.live_faults()] == ["a port"]
    assert await fabric.heal_all() == [second.id]
    await eventually(lambda: not fabric.faults(), DEADLINE_S)
    assert await fabric.heal_all() == []


@pytest.mark.integration
async def test_fabric_time_that_is_held_is_not_waited_for_for_ever(fabric: Fabric) -> None:
    async with fabric.held() as at_ns:
        await fabric.add_fault("link_down", LINK, for_ns=5_000)
        with pytest.raises(NoAnswerError, match=r"within 0\.05 s"):
            await fabric.reached(at_ns + 5_000, 0.05)
