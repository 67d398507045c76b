"""Hosts and rules as records."""

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.placement.inventory import Host, Inventory
from tests.support.inventories import inventory


def test_a_host_with_one_address_has_it_for_all() -> None:
    host = Host.at("vm1", "fd00::1", 4)
    assert (host.data, host.control, host.ssh.address, host.ssh.port) == ("fd00::1", "fd00::1", "fd00::1", 22)
    assert Inventory((host,)).ip_version == 6
    assert inventory().ip_version == 4


def test_hosts_by_name() -> None:
    hosts = inventory()
    assert hosts.host("vm2") is hosts.hosts[1]
    with pytest.raises(ConfigError, match=r"vm4: no such host \(there are vm1, vm2, vm3\)"):
        hosts.host("vm4")
