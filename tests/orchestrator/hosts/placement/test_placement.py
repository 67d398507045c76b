"""Looking things up in a placement."""

from array import array

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.hosts.placement.inventory import Inventory, Rules
from orchestrator.hosts.placement.placement import Placement
from tests.support.inventories import hosts

SMALL = Topology(planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16, reserve_evs_per_qp=4)


def test_nodes_and_hosts_find_each_other() -> None:
    placement = Placement(SMALL, Inventory(hosts(4, 4), Rules()), array("H", [0, 1, 0, 0, 0, 0, 0, 1, 0, 1]))
    assert placement.nodes_on("vm2") == ("h001", "p1-t0-1", "p1-t1-1")
    assert all(placement.host_of(node).name == host for host in ("vm1", "vm2") for node in placement.nodes_on(host))
    with pytest.raises(ConfigError, match="vm3: no such host"):
        placement.nodes_on("vm3")
    with pytest.raises(ConfigError, match="no such node"):
        placement.host_of("h002")
