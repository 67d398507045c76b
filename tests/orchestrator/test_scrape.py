"""All nodes on one page: each with its series, the dead without."""

import pytest

from orchestrator.fabric import Fabric
from orchestrator.scrape import page_of_all
from tests.orchestrator.running import DEADLINE_S, SMALL, T1, broken
from tests.support.counters import samples_of
from tests.support.wait import eventually

pytestmark = pytest.mark.integration


async def test_every_node_that_lives_has_its_series(fabric: Fabric) -> None:
    await broken(fabric, "switch_crash", T1)
    await eventually(lambda: not fabric.alive(T1), DEADLINE_S)
    samples = samples_of(await page_of_all(fabric))
    told = {node for node in SMALL.node_names() if any(f'node="{node}"' in name for name in samples)}
    assert told == set(SMALL.node_names()) - {T1}
    assert any(name.startswith("mrc_nic_qps") for name in samples)
    assert any(name.startswith("mrc_switch_") for name in samples)
