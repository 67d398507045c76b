"""Actions on a fabric that runs: broken, healed, worked, waited for."""

from typing import Any

import pytest

from chaosmrc import actions, probes
from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.fabric import Fabric
from tests.chaosmrc.asking import beside
from tests.orchestrator.running import DEADLINE_S
from tests.support.wait import eventually, eventually_true

pytestmark = pytest.mark.integration


async def test_faults_come_and_go(served: Fabric, configuration: dict[str, Any]) -> None:
    loss = await beside(
        actions.inject_fault, "loss", selector={"tier": "t0-t1", "mode": "one"}, figures={"share_ppm": 5_000},
        title="a bad cable", configuration=configuration,
    )  # fmt: skip
    short = await beside(
        actions.inject_fault, "link_down", ["h000~p0-t0-0"], lasting_us=50, configuration=configuration
    )
    assert len(loss["targets"]) == 1
    [window] = short["windows"]
    assert window[1] - window[0] == 50_000
    assert await beside(actions.heal_fault, "a bad cable", configuration) == [loss["id"]]
    assert set(await beside(actions.heal_faults, configuration)) <= {loss["id"], short["id"]}
    await eventually(lambda: not served.faults(), DEADLINE_S)
    with pytest.raises(ConfigError, match="nearest is link_down"):
        await beside(actions.inject_fault, "link_dawn", configuration=configuration)
    for wrong in (-5, 0, float("nan")):
        with pytest.raises(ConfigError, match=r"lasting_us.*is no length of time"):
            await beside(actions.inject_fault, "link_down", ["h*"], lasting_us=wrong, configuration=configuration)


async def test_a_name_stands_alone_and_words_of_another_type_are_named(
    served: Fabric, configuration: dict[str, Any]
) -> None:
    given = {"lasting_us": 50, "configuration": configuration}
    assert (await beside(actions.inject_fault, "link_down", "h000~p0-t0-0", **given))["targets"] == ["h000~p0-t0-0"]
    for wrong, said in (
        ({"names": 3}, "names: 3 is no text"),
        ({"selector": "tier=t0-t1"}, "selector: 'tier=t0-t1' is no table"),
        ({"selector": {"tier": "t0-t1", "title": "x"}}, "selector: has no title"),
        ({"title": "x" * 10_000}, "fault.title: 'x{80}' will not do"),
        ({"title": 7}, "title: 7 is no text"),
        ({"figures": "1%"}, "figures: '1%' is no table"),
        ({"lasting_us": "50"}, "lasting_us: '50' is no length of time"),
        ({"lasting_us": float("inf")}, "lasting_us: inf us is no length of time"),
    ):
        with pytest.raises(ConfigError, match=said):
            await beside(actions.inject_fault, "loss", **(given | wrong))
    # Fabric time stands still where nothing happens, and then there is nothing to measure.
    await served.start("p2p", figures={"for_ns": 1 << 61})

    async def is_measured() -> bool:
        return await beside(probes.measure, "data_packets", of="h000", configuration=configuration) is not None

    await eventually_true(is_measured, DEADLINE_S)
    with pytest.raises(ConfigError, match="at_least: '90%' is no bound"):
        await beside(actions.await_measure, "goodput", at_least="90%", configuration=configuration)


async def test_work_is_started_and_waited_for(served: Fabric, configuration: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"'sums' is no workload of this experiment \(start_workload starts one\)"):
        await beside(actions.await_workload, "sums", DEADLINE_S, configuration)
    figures = {"steps": 3, "bucket_bytes": 1 << 16}
    record = await beside(
        actions.start_workload, "ring_all_reduce", "sums", figures=figures, configuration=configuration
    )
    assert (record["name"], record["kind"], record["ranks"]) == ("sums", "ring_all_reduce", [0, 1])
    seen = await beside(actions.await_measure, "completed", at_least=1, of=["sums"], configuration=configuration)
    assert seen["observed"] == 1
    done = await beside(actions.await_workload, "sums", DEADLINE_S, configuration)
    assert done["ranks"] == 2
    assert done["bytes_verified"] > 0
    assert done["bytes_wrong"] == 0
    for probe in (probes.workload_state, probes.bytes_wrong):
        with pytest.raises(ConfigError, match=r"'sum' is no workload of this experiment \(there are sums\)"):
            await beside(probe, "sum", configuration=configuration)


async def test_an_empty_word_heals_no_fault_without_a_title(served: Fabric, configuration: dict[str, Any]) -> None:
    given = {"title": "", "configuration": configuration}
    fault = await beside(actions.inject_fault, "loss", "p0-t0-0~p0-t1-0", **given)
    with pytest.raises(RefusedError, match="there is no fault"):
        await beside(actions.heal_fault, "", configuration)
    for other in (5, None, [fault["id"]]):
        with pytest.raises(ConfigError, match=r"fault_id: .* is no text"):
            await beside(actions.heal_fault, other, configuration)
    assert [one.id for one in served.faults()] == [fault["id"]]
    with pytest.raises(ConfigError, match=r"name: \[\] is no text"):
        await beside(actions.await_workload, [], DEADLINE_S, configuration)
    with pytest.raises(ConfigError, match=r"counter: \[\] is no text"):
        await beside(probes.total, [], configuration)
