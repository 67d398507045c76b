"""Looking things up in a placement, and which nodes share a process."""

from array import array

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.hosts.inventory import Inventory, Rules
from orchestrator.hosts.placement import Placement
from orchestrator.layout import NICD_ENTRY, SWITCHD_ENTRY
from tests.support.inventories import hosts

SMALL = Topology(planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16, reserve_evs_per_qp=4)


def placed(nodes_per_process: int) -> Placement:
    """h000, plane 0 and half of plane 1 on vm1, the rest on vm2."""
    inventory = Inventory(hosts(4, 4), Rules(nodes_per_process=nodes_per_process))
    return Placement(SMALL, inventory, array("H", [0, 1, 0, 0, 0, 0, 0, 1, 0, 1]))


def test_nodes_and_hosts_find_each_other() -> None:
    placement = placed(1)
    assert placement.nodes_on("vm2") == ("h001", "p1-t0-1", "p1-t1-1")
    assert all(placement.host_of(node).name == host for host in ("vm1", "vm2") for node in placement.nodes_on(host))
    with pytest.raises(ConfigError, match="vm3: no such host"):
        placement.nodes_on("vm3")
    with pytest.raises(ConfigError, match="no such node"):
        placement.host_of("h002")


def test_a_process_per_daemon() -> None:
    plans = placed(1).processes_on("vm1")
    assert [(plan.name, plan.nodes) for plan in plans] == [(node, (node,)) for node in placed(1).nodes_on("vm1")]
    assert [plan.entry for plan in plans] == [NICD_ENTRY] + [SWITCHD_ENTRY] * 6


def test_switches_of_one_plane_share_a_process_and_nics_never() -> None:
    plans = {plan.name: plan.nodes for plan in placed(4).processes_on("vm1")}
    assert plans == {
        "h000": ("h000",),
        "p0": ("p0-t0-0", "p0-t0-1", "p0-t1-0", "p0-t1-1"),
        "p1-t0-0": ("p1-t0-0", "p1-t1-0"),
    }
    threes = {plan.name: len(plan.nodes) for plan in placed(3).processes_on("vm1")}
    assert threes == {"h000": 1, "p0-t0-0": 3, "p0-t1-1": 1, "p1-t0-0": 2}
