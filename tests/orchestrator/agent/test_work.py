"""Work that belongs to nobody's run: begun, told of, ended by hand, by its length, or by room that others need."""

import asyncio
from typing import Any, cast

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from nicd.programs.kind import STEPS_MAX
from orchestrator.agent import work
from orchestrator.agent.faults import FaultRequests
from orchestrator.agent.leases import Held
from orchestrator.agent.runs import RunRequests
from orchestrator.agent.work import ENDLESS_NS, WorkRequests
from orchestrator.fabric import Fabric
from tests.orchestrator.running import DEADLINE_S
from tests.support.wait import eventually_true

UNHEARD = cast("Fabric", None)
"""A request that reached the fabric would fail on this."""
BOTH = ["h000", "h001"]


def requests_of(fabric: Fabric) -> WorkRequests:
    return WorkRequests(fabric, RunRequests(fabric, FaultRequests(fabric)))


async def row_of(requests: WorkRequests, name: str) -> dict[str, Any] | None:
    return next((row for row in await requests.every({}) if row["name"] == name), None)


@pytest.mark.parametrize(
    ("endpoint", "body", "complaint"),
    [
        ("start", {}, "kind: is missing"),
        ("start", {"kind": "incats"}, "'incats' is no kind of work .*there are p2p, permutation"),
        ("start", {"kind": "p2p", "ranks": "h000"}, "is no list of texts"),
        ("start", {"kind": "p2p", "for_ns": 0}, "is no whole number from 1"),
        ("start", {"kind": "p2p", "id": "a\nb"}, "1 to 80 printable characters"),
        ("stop", {}, "ids: is missing"),
    ],
)
async def test_mistakes_are_named(endpoint: str, body: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        await getattr(requests_of(UNHEARD), endpoint)(body)


@pytest.mark.parametrize(
    ("kind", "figures", "for_ns", "made", "stopped_after_ns"),
    [
        ("incast", {}, None, {"for_ns": ENDLESS_NS}, None),
        ("incast", {}, 7, {"for_ns": 7}, None),
        ("incast", {"messages": 3}, None, {"messages": 3}, None),
        ("training", {}, None, {"steps": STEPS_MAX}, None),
        ("training", {}, 7, {"steps": STEPS_MAX}, 7),
        ("training", {"steps": 3}, None, {"steps": 3}, None),
        ("trace", {"messages": [[0, 1, 1, 0]]}, None, {"messages": [[0, 1, 1, 0]]}, None),
    ],
)
def test_what_nobody_counts_goes_on(
    kind: str, figures: dict[str, Any], for_ns: int | None, made: dict[str, Any], stopped_after_ns: int | None
) -> None:
    assert work._lasting(kind, figures, for_ns) == stopped_after_ns
    assert figures == made


@pytest.mark.integration
async def test_work_goes_on_until_it_is_stopped(fabric: Fabric) -> None:
    requests = requests_of(fabric)
    row = await requests.start({"kind": "permutation", "ranks": BOTH, "figures": {"message_bytes": 65536}})
    assert (row["name"], row["kind"], row["ranks"], row["endless"], row["owner"]) == ("w1", "permutation", 2, True, "")

    async def moving() -> bool:
        now = await row_of(requests, "w1")
        assert now is not None
        assert now["wrong"] == 0
        return bool(now["running"] == 2 and now["verified"] > 0)

    await eventually_true(moving, DEADLINE_S)
    with pytest.raises(RefusedError, match="there is work w1 already"):
        await requests.start({"kind": "p2p", "ranks": BOTH, "id": "w1"})
    with pytest.raises(RefusedError, match="there is no work w2"):
        await requests.stop({"ids": ["w1", "w2"]})
    assert await requests.stop({"all": True}) == ["w1"]
    assert await requests.every({}) == []
    kinds = [note["kind"] for note in fabric.journal.after(0)]
    assert kinds[-2:] == ["work", "work_over"]
    assert (await fabric.totals())["qp_errors"] == 0


@pytest.mark.integration
async def test_work_ends_with_its_length(fabric: Fabric) -> None:
    requests = requests_of(fabric)
    await requests.start({"kind": "p2p", "ranks": BOTH, "for_ns": 100_000})
    await requests.start({"kind": "all_to_all", "ranks": BOTH, "for_ns": 100_000, "id": "steps"})

    async def over() -> bool:
        sent = await row_of(requests, "w1")
        assert sent is not None
        return sent["done"] == 2 and await row_of(requests, "steps") is None

    await eventually_true(over, DEADLINE_S)
    again = await requests.start({"kind": "p2p", "ranks": BOTH, "id": "w1", "for_ns": 100_000})
    assert again["running"] == 2
    await requests.close()


@pytest.mark.integration
async def test_what_is_done_makes_room(fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "PROGRAMS_MAX", 1)
    requests = requests_of(fabric)
    await requests.start({"kind": "p2p", "ranks": BOTH, "figures": {"messages": 1}})

    async def done() -> bool:
        row = await row_of(requests, "w1")
        return row is None or row["done"] == 2

    await eventually_true(done, DEADLINE_S)
    await requests.start({"kind": "p2p", "ranks": BOTH, "id": "next"})
    assert [row["name"] for row in await requests.every({})] == ["next"]


@pytest.mark.integration
async def test_the_work_of_others_is_shown_and_left_alone(fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = FaultRequests(fabric)
    runs = RunRequests(fabric, faults)
    requests = WorkRequests(fabric, runs)
    work = await fabric.start("p2p", name="theirs")
    monkeypatch.setattr(faults.leases, "_held", {"run": Held("run", 1, "run", 0.0, 0.0)})
    await runs.claim({"program": work.program.settings(), "owner": "run"})
    row = await row_of(requests, "theirs")
    assert row is not None
    assert (row["owner"], row["ranks"]) == ("run", 2)
    with pytest.raises(RefusedError, match="work theirs belongs to run and ends with it"):
        await requests.stop({"ids": ["theirs"]})
    with pytest.raises(RefusedError, match="there is work theirs already, of run"):
        await requests.start({"kind": "p2p", "ranks": BOTH, "id": "theirs"})


@pytest.mark.integration
async def test_work_of_an_owner_that_has_gone_is_no_longer_shown(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = FaultRequests(fabric)
    runs = RunRequests(fabric, faults)
    requests = WorkRequests(fabric, runs)
    theirs = (await fabric.start("p2p", name="theirs")).program
    monkeypatch.setattr(faults.leases, "_held", {"run": Held("run", 1, "run", 0.0, 0.0)})
    await runs.claim({"program": theirs.settings(), "owner": "run"})
    before = await fabric.counters(BOTH)
    assert [row["name"] for row in requests.rows(before)] == ["theirs"]
    monkeypatch.setattr(faults.leases, "_held", {})
    assert await requests.every({}) == []  # NICs still have it
    with pytest.raises(RefusedError, match="there is work theirs already"):
        await requests.start({"kind": "p2p", "ranks": BOTH, "id": "theirs"})
    await runs.stop_work_of("run")
    assert requests.rows(before) == []  # a NIC that answered before it was told
    again = await requests.start({"kind": "p2p", "ranks": BOTH, "id": "theirs"})
    assert (again["name"], again["owner"]) == ("theirs", "")


@pytest.mark.integration
async def test_work_that_does_not_end_with_its_owner_is_shown(fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = FaultRequests(fabric)
    runs = RunRequests(fabric, faults)
    requests = WorkRequests(fabric, runs)
    theirs = (await fabric.start("p2p", name="theirs")).program
    monkeypatch.setattr(faults.leases, "_held", {"run": Held("run", 1, "run", 0.0, 0.0)})
    await runs.claim({"program": theirs.settings(), "owner": "run"})

    async def deaf(_program: object) -> dict[str, str]:
        return {"h001": "does not answer"}

    monkeypatch.setattr(fabric, "stop_work", deaf)
    await runs.stop_work_of("run")
    assert [(row["name"], row["owner"]) for row in await requests.every({})] == [("theirs", "")]


@pytest.mark.integration
async def test_a_nic_that_died_is_told_of(fabric: Fabric) -> None:
    requests = requests_of(fabric)
    await requests.start({"kind": "p2p", "ranks": BOTH})
    fault = await fabric.add_fault("nic_crash", "h001")
    await asyncio.wait_for(fabric.reached(fault.start_ns), DEADLINE_S)

    async def lost() -> bool:
        row = await row_of(requests, "w1")
        assert row is not None
        return bool(row["lost"] == 1)

    await eventually_true(lost, DEADLINE_S)
    await fabric.heal(fault.id)
    assert await requests.stop({"all": True}) == ["w1"]
    assert [note for note in fabric.journal.after(0) if note["kind"] == "unstopped"] == []


@pytest.mark.integration
async def test_a_nic_that_lives_and_has_not_answered_is_not_lost(fabric: Fabric) -> None:
    requests = requests_of(fabric)
    await requests.start({"kind": "p2p", "ranks": BOTH})
    counters = await fabric.counters(BOTH)
    del counters[BOTH[1]]
    (row,) = requests.rows(counters)
    assert (row["running"], row["lost"], row["unheard"]) == (1, 0, 1)


@pytest.mark.integration
async def test_nothing_begins_or_ends_while_somebody_holds_time(fabric: Fabric) -> None:
    requests = requests_of(fabric)
    async with fabric.held():
        with pytest.raises(RefusedError, match="work cannot start while fabric time is in the hands of"):
            await requests.start({"kind": "p2p", "ranks": BOTH})
        with pytest.raises(RefusedError, match="work cannot be stopped while"):
            await requests.stop({"all": True})
