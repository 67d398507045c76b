"""All nodes on one page: each with its series, the dead without."""

from typing import Any

import pytest

from mrcfabric.units import NEVER
from orchestrator.agent import scrape
from orchestrator.agent.scrape import page_of_all
from orchestrator.fabric import Fabric
from tests.orchestrator.running import DEADLINE_S, SMALL, T1, broken
from tests.support.counters import samples_of
from tests.support.wait import eventually, eventually_true

pytestmark = pytest.mark.integration


async def test_every_node_that_lives_has_its_series(fabric: Fabric) -> None:
    await broken(fabric, "switch_crash", T1)
    await eventually(lambda: not fabric.alive(T1), DEADLINE_S)
    samples = samples_of(await page_of_all(fabric))
    told = {node for node in SMALL.node_names() if any(f'node="{node}"' in name for name in samples)}
    assert told == set(SMALL.node_names()) - {T1}
    assert any(name.startswith("mrc_nic_qps") for name in samples)
    assert any(name.startswith("mrc_switch_") for name in samples)


@pytest.mark.parametrize("pack", ["cores", "none"])
async def test_the_page_of_all_has_the_series_of_every_single_page(fabric: Fabric) -> None:
    def told(page: bytes) -> dict[str, float]:
        moving = ("mrc_cpu_seconds", "mrc_control_")
        return {name: 0 if name.startswith(moving) else figure for name, figure in samples_of(page).items()}

    async def is_the_same() -> bool:
        """Once the fabric is at rest."""
        whole = await page_of_all(fabric)
        single: dict[str, float] = {}
        for node in SMALL.node_names():
            single |= told((await fabric.metrics(node)).encode())
        heads = [line.split()[2] for line in whole.decode().splitlines() if line.startswith("# TYPE")]
        assert len(heads) == len(set(heads)), "each family once"
        assert told(whole).keys() == single.keys()
        return told(whole) == single

    await eventually_true(is_the_same, DEADLINE_S)


async def test_a_process_that_does_not_get_done_gives_what_it_has(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrape, "RENDER_WALL_S", -1.0)
    alone = [plan.nodes[0] for plan in fabric.layout.processes if len(plan.nodes) == 1]
    samples = samples_of(await page_of_all(fabric))
    assert sum(name.startswith("mrc_incarnation{") for name in samples) == len(alone)


@pytest.mark.parametrize("pack", ["none"])
@pytest.mark.parametrize("crowd", [False, True])
async def test_time_stands_still_while_a_crowd_is_asked(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch, crowd: bool
) -> None:
    await fabric.start("permutation", figures={"for_ns": 1 << 61})
    monkeypatch.setattr(scrape, "is_crowd", lambda processes: crowd and processes == SMALL.nodes)
    asked, limits = fabric.counters, list[int]()

    async def counters(*args: Any, **more: Any) -> dict[str, dict[str, Any]]:
        limits.append(fabric.time.page.limit)
        return await asked(*args, **more)

    monkeypatch.setattr(fabric, "counters", counters)
    samples = samples_of(await page_of_all(fabric))
    assert sum(name.startswith("mrc_incarnation{") for name in samples) == SMALL.nodes
    assert [limit < NEVER for limit in limits] == [crowd]
    assert fabric.time.page.limit == NEVER
    seen_ns = fabric.now_ns()
    await eventually(lambda: fabric.now_ns() > seen_ns, DEADLINE_S)
