"""Every system that ships: its settings go together, alone it fills a link, and two flows share one evenly.

A system that is slow by itself says nothing about any other, so this comes before every comparison.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from mrcfabric import bundles
from mrcfabric.topology import Topology
from mrcfabric.topology_file import with_system
from orchestrator.measures.judge import verdict
from orchestrator.planning.plan import check
from orchestrator.scenario.resolve import load
from tests.support.runs import simulated

ALONE_SHARE_MIN = 0.95
FAIRNESS_MIN = 0.95
FABRIC = """
name: gate
fabric: {planes: 1, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 4, evs_per_qp: 16, reserve_evs_per_qp: 8}
seed: one
length: 3000rtt
"""
ALONE = f"""{FABRIC}
workload: [{{name: alone, kind: p2p, ranks: [h000, h004], message_bytes: 1MiB, window: 8, messages: 12}}]
expect:
  - {{measure: completed, at_least: 1}}
  - {{measure: goodput, from: 10rtt, to: 100rtt, at_least: {ALONE_SHARE_MIN}}}
"""
TWO = f"""{FABRIC}
workload:
  - {{name: one, kind: p2p, ranks: [h000, h004], message_bytes: 256KiB, window: 16, messages: 24}}
  - {{name: other, kind: p2p, ranks: [h001, h004], message_bytes: 256KiB, window: 16, messages: 24}}
expect:
  - {{measure: completed, at_least: 1}}
  - {{measure: fairness, at_least: {FAIRNESS_MIN}}}
  - {{measure: qp_errors, at_most: 0}}
"""


@pytest.mark.parametrize("system", bundles.names())
def test_its_settings_are_known_and_go_together(system: str) -> None:
    check(with_system(Topology.demo(), system))


@pytest.mark.long
@pytest.mark.parametrize("setting", ["fabric.rate_bps=100G", "fabric.rate_bps=25G"])
@pytest.mark.parametrize("system", bundles.names())
async def test_alone_it_fills_a_link(system: str, setting: str, tmp_path: Path) -> None:
    await held(ALONE, [setting, f"system={system}"], tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("system", bundles.names())
async def test_two_flows_share_a_link_evenly(system: str, tmp_path: Path) -> None:
    await held(TWO, [f"system={system}"], tmp_path)


async def held(scenario: str, settings: Sequence[str], folder: Path) -> None:
    file = folder / "s.yaml"
    file.write_text(scenario)
    plan = load(str(file), settings)
    judged = verdict(plan.expectations, await simulated(plan))
    assert judged.outcome == "held", judged.reasons
