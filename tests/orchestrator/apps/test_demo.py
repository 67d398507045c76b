"""The demonstration over a small fabric of real daemons, and its parts."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.apps.demo import Demo, DemoSettings
from tests.support.fabrics import SMALL
from tests.support.shares import Machine, nothing_left

LEASE_S = 10.0


def test_the_tensor_is_rounded_down_to_whole_chunks() -> None:
    assert DemoSettings().shape(8).elements == 4 << 20
    assert DemoSettings(tensor_mib=1, buckets=3).shape(8).elements == (1 << 18) // 24 * 24


@pytest.mark.parametrize(
    "settings",
    [DemoSettings(tensor_mib=0), DemoSettings(buckets=0), DemoSettings(buckets=5000), DemoSettings(tensor_mib=1025)],
)
def test_impossible_sizes_are_refused(settings: DemoSettings) -> None:
    with pytest.raises(ConfigError, match="tensor-mib"):
        Demo(Topology.demo(), settings)


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.parametrize(("nics_per_t0", "wall_s"), [(1, 100), pytest.param(2, 600, marks=pytest.mark.long)])
async def test_a_small_demonstration_keeps_every_byte_and_every_step_on_three_hosts(
    tmp_path: Path, nics_per_t0: int, wall_s: float
) -> None:
    small = replace(SMALL, nics_per_t0=nics_per_t0)
    places = {node: number % 3 for number, node in enumerate(small.node_names())}
    machine = Machine(tmp_path, 3, places, LEASE_S)
    # Switches share processes, but for those that are to die.
    machine.cluster.sites = replace(machine.cluster.sites, nodes_per_process=4)
    demo = Demo(small, DemoSettings(tensor_mib=2, buckets=8), machine.cluster)
    data = await asyncio.wait_for(demo.run(tmp_path / "vm0"), wall_s)
    held = {check["name"]: check["holds"] for check in data["checks"]}
    # Two planes are too few for the share of one port to be 7/8 of anything; all else must hold.
    wanted = {"every byte right", "no QP failed", "no rank failed", "no step lost", "the whole timetable took place"}
    wanted.add("every EV GOOD or SKIP at the end")
    assert all(held[name] for name in wanted), data["reasons"]
    assert data["fidelity"]["valid"]
    assert [fault["kind"] for fault in data["faults"]] == ["link", "crash", "nic-port", "crash"]
    assert all(fault["goodput_before_gbps"] > 0 for fault in data["faults"])
    assert sum(fault["evs_retired"] for fault in data["faults"]) > 0
    assert data["steps"]["finished"] == data["steps"]["begun"] >= 2
    assert data["totals"]["bytes_verified"] == data["steps"]["finished"] * small.nics * data["steps"]["tensor_bytes"]
    assert data["timeline"]["planes_gbps"]
    # Every rank was a process of its NIC's host.
    assert hosts_of_ranks(tmp_path) == {f"rank-{nic}": f"vm{places[nic]}" for nic in small.nic_names()}
    assert nothing_left(tmp_path, machine, [])


def hosts_of_ranks(folder: Path) -> dict[str, str]:
    """Rank -> the host on which it has a log."""
    return {path.stem: path.relative_to(folder).parts[0] for path in folder.rglob("rank-*.log")}
