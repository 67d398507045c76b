"""What the agent reads of its fabric for `/metrics`, and that promtool finds no fault with any page."""

import subprocess

import pytest

from orchestrator.agent import metrics
from orchestrator.fabric import Fabric
from tests.orchestrator.running import SMALL, T1, broken
from tests.support.counters import samples_of
from tests.support.packages import program

pytestmark = pytest.mark.integration


def check(page: bytes) -> None:
    """promtool's opinion of a page."""
    done = subprocess.run([program("promtool"), "check", "metrics"], input=page, capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


async def page(fabric: Fabric) -> bytes:
    return metrics.render("small", await metrics.reading_of(fabric, {}))


async def test_the_fabric_as_a_whole(served: Fabric) -> None:
    samples = samples_of(await page(served))
    assert samples['mrc_agent_valid{fabric="small"}'] == 1
    assert samples['mrc_agent_time_running{fabric="small"}'] in (0, 1)
    assert samples[f'mrc_agent_node_up{{fabric="small",node="{T1}",plane="0",role="t1"}}'] == 1
    assert samples['mrc_agent_node_up{fabric="small",node="h000",plane="",role="nic"}'] == 1
    assert samples['mrc_agent_base_rtt_seconds{fabric="small"}'] == pytest.approx(SMALL.base_rtt_ns() * 1e-9)
    assert samples['mrc_agent_faults_active{fabric="small",kind="loss"}'] == 0
    assert not [name for name in samples if name.startswith("mrc_agent_fault_active")]


async def test_faults_by_kind_and_one_by_one(served: Fabric) -> None:
    fault_id = await broken(served, "link_down", f"p0-t0-0~{T1}")
    samples = samples_of(await page(served))
    assert samples['mrc_agent_faults_active{fabric="small",kind="link_down"}'] == 1
    assert samples['mrc_agent_faults_injected_total{fabric="small",kind="link_down"}'] == 1
    [one] = [name for name in samples if name.startswith("mrc_agent_fault_active")]
    assert f'fault="{fault_id}"' in one
    assert f'targets="p0-t0-0~{T1}"' in one


async def test_promtool_has_nothing_to_say(served: Fabric) -> None:
    check(await page(served))
    for node in ("h000", T1, "p0-t0-0"):
        check((await served.metrics(node)).encode())


def test_long_lists_of_targets_are_cut() -> None:
    assert metrics._shortened([T1]) == T1
    assert len(metrics._shortened([T1] * 40)) == metrics.TARGETS_CHARS_MAX
