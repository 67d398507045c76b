"""Measures and conditions of a fabric whose time goes on."""

import os
import signal
from typing import Any

import pytest

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError
from orchestrator.api import watch as watching
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import Fault, once
from tests.orchestrator.running import DEADLINE_S
from tests.support.wait import eventually

pytestmark = pytest.mark.integration


async def test_a_watch_waits_for_conditions_and_knows_the_figures(fabric: Fabric) -> None:
    watch = await fabric.watch()
    work = await fabric.start("training", figures={"steps": 8, "buckets": 1, "bucket_bytes": 1 << 16})
    found = await watch.until("steps", of="training-0", at_least=2, within_s=DEADLINE_S)
    assert found.observed is not None
    assert found.observed >= 2
    await work.finished(DEADLINE_S)
    await watch.look()
    assert watch.figure("steps", of="training-0") == 8
    assert (watch.figure("step_time", of="training-0", reduce="p50") or 0) > 20_000
    assert watch.finding("bytes_wrong", at_most=0).held
    assert not watch.finding("goodput", at_least=0.99, relative_to="line").held
    with pytest.raises(ConfigError, match="never at least 2"):
        watch.finding("goodput", at_least=2.0, relative_to="line")
    assert watch.recording.looks[-1].nics["h000"].counts["qp_errors"] == 0


async def test_of_several_figures_the_least_is_told(fabric: Fabric) -> None:
    watch = await fabric.watch()
    work = await fabric.start("p2p", ranks=2, figures={"message_bytes": 1 << 16, "messages": 2})
    await work.finished(DEADLINE_S)
    await watch.look()
    assert (watch.figure("data_packets", of="h000") or 0) > 0
    assert watch.figure("data_packets", of="h00*", reduce="each") == 0, "h001 has sent no data"


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"at_least": "90%"}, "'90%' is no bound"),
        ({"at_least": True}, "True is no bound"),
        ({"at_least": 1, "of": 0}, "of: 0 is no text"),
        ({"at_least": 1, "over_ns": 0.5}, "over_ns: 0.5"),
        ({"at_least": 1, "within_s": float("nan")}, "within_s: nan"),
        ({"at_leest": 1}, "at_leest: is no word of a condition"),
    ],
)
async def test_figures_of_another_type_are_mistakes(fabric: Fabric, bounds: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        await fabric.until("qp_errors", **bounds)


async def test_what_does_not_come_true_says_what_was_seen(fabric: Fabric) -> None:
    with pytest.raises(NoAnswerError, match=r"not within 2 s: qp_errors: (nothing|0) observed, at least 1 expected"):
        await fabric.until("qp_errors", at_least=1, within_s=2)
    with pytest.raises(ConfigError, match="nearest is goodput"):
        await fabric.until("godput", at_least=1)
    with pytest.raises(ConfigError, match="has no bound"):
        await fabric.until("goodput")


async def test_a_fault_that_somebody_heals_is_over_then(fabric: Fabric) -> None:
    watch = await fabric.watch()
    for number in (1, 2):
        start_ns = fabric.soon_ns()
        await fabric.inject(once("link_down", "p0-t0-0~p0-t1-1", at_ns=start_ns, fault_id="cut"))
        await watch.look()
        await fabric.reached(start_ns)
        left = await fabric.heal("cut")
        assert left is not None
        await fabric.reached(left.end_ns)
        await watch.look()
        seen = watch.recording.faults
        assert len(seen) == number
        assert seen[-1].healed_early
        assert seen[-1].over_ns <= (await fabric.clock()).front_ns
    # Nothing was sent meanwhile: there is nothing to say of what it cost.
    assert watch.figure("avoidance_rtts") is None
    assert watch.finding("avoidance_rtts", at_least=0).why == "not tried: no packet met cut, cut"


async def test_faults_are_in_the_recording_and_looks_are_bounded(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOOKS_MAX", 4)
    watch = await fabric.watch()
    async with fabric.fault("link_down", "p0-t0-0~p0-t1-1", title="cut") as fault:
        for _ in range(8):
            await watch.look()
    assert [one.fault.id for one in watch.recording.faults] == [fault.id]
    assert len(watch.recording.looks) <= 5


async def test_a_nic_that_hears_nobody_at_the_begin_counts_from_when_it_does(fabric: Fabric) -> None:
    await (await fabric.start("p2p", figures={"message_bytes": 1 << 16, "messages": 2})).finished(DEADLINE_S)
    cut = await fabric.add_fault("control_cut", "h000")
    await fabric.reached(cut.start_ns, DEADLINE_S)
    watch = await fabric.watch()
    seen = (await watch.look()).nics["h000"]
    assert (seen.alive, seen.counts, seen.ports_up) == (True, {}, [True, True])
    left = await fabric.heal(cut.id)
    assert left is not None
    await fabric.reached(left.end_ns, DEADLINE_S)
    await watch.look()
    assert watch.figure("data_packets", of="h000") == 0
    await (await fabric.start("p2p", figures={"message_bytes": 1 << 16, "messages": 2})).finished(DEADLINE_S)
    await watch.look()
    assert (watch.figure("data_packets", of="h000") or 0) > 0


async def test_a_node_that_has_just_died_is_an_error_that_scripts_know(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none_yet() -> list[Fault]:
        return []

    watch = await fabric.watch()
    child = fabric.daemons.members["h001"].child
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)
    await eventually(lambda: bool(fabric.unexpected_deaths()), DEADLINE_S)
    monkeypatch.setattr(fabric, "live_faults", none_yet)
    with pytest.raises(NoAnswerError, match="h001"):
        await watch.look()
    with pytest.raises(NoAnswerError, match="h001"):
        await fabric.watch()
