"""Inventories for tests: hosts without a file, files as text, and what is said of a bad one."""

from collections.abc import Sequence

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.placement.inventory import Host, Inventory, Rules
from orchestrator.hosts.placement.inventory_file import parsed

WHOLE = """\
hosts:
  vm1: 10.0.0.1
  vm2:
    data: 10.0.0.2
    control: 192.168.0.2
    cores: 8
    memory_bytes: 16GiB
    labels: {rack: a, kind: big, row: 7}
    python: python3.12
    run_dir: runs
    mtu: 9000
    bandwidth_bps: 25G
    ssh: {address: gate.example, port: 2222, user: ubuntu, key: keys/vm2, known_hosts: ~/.ssh/known}
    service: {address: 192.168.7.2, port: 4791, key: keys/cluster}
  vm3: {data: 10.0.0.3, labels: {rack: b}}
rules:
  nics: cores
  switches: spread
  pin:
    - {nodes: "p0-*", host: vm1}
    - {nodes: [tier=t1, plane=1], host: "rack=a,kind=big"}
  exclude:
    - {nodes: [tier=nic], host: rack=b}
    - {host: vm3}
  nodes_per_process: 4
  orchestrator: vm1
"""


def hosts(*cores: int | None) -> tuple[Host, ...]:
    """vm1, vm2, ... with so many cores."""
    return tuple(Host.at(f"vm{at}", f"10.0.0.{at}", count) for at, count in enumerate(cores, 1))


def inventory(cores: Sequence[int | None] = (4, 4, 4), rules: Rules | None = None) -> Inventory:
    """Hosts with so many cores, under rules."""
    return Inventory(hosts(*cores), rules or Rules())


def complaint(text: str) -> str:
    """What is said of a bad file."""
    with pytest.raises(ConfigError) as caught:
        parsed("hosts.yaml", text)
    return str(caught.value)
