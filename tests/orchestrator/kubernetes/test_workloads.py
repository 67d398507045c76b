"""Workloads of a placement: who gets a pod, and what no cluster could carry."""

from collections.abc import Sequence

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.hosts.placement.budget import budget
from orchestrator.hosts.placement.inventory import Host, Inventory, Rules, Service
from orchestrator.hosts.placement.placing import place
from orchestrator.kubernetes.workloads import NODE_PORTS, PORT_BASE, Leading, Workloads

SMALL = Topology(name="small", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2)
KEPT = Leading("up", "topology.yaml", ())


def workloads(
    hosts: Sequence[Host],
    orchestrator: str = "",
    base: int = PORT_BASE,
    does: Leading = KEPT,
    path: str = "hosts.yaml",
) -> Workloads:
    inventory = Inventory(tuple(hosts), Rules(orchestrator=orchestrator), path)
    return Workloads(budget(place(SMALL, inventory)), does, base)


def three(*names: str) -> list[Host]:
    return [Host.at(name, f"10.0.0.{number}", 4) for number, name in enumerate(names or ("vm1", "vm2", "vm3"), 1)]


def test_the_orchestrators_host_has_no_share_beside_it() -> None:
    with_leader, without = workloads(three(), "vm2"), workloads(three())
    assert [one["metadata"]["name"] for one in with_leader.shares()] == ["share-vm1", "share-vm3"]
    assert [one["metadata"]["name"] for one in without.shares()] == ["share-vm1", "share-vm2", "share-vm3"]
    assert with_leader.orchestrator()["spec"]["template"]["spec"]["hostNetwork"] is True
    assert "hostNetwork" not in without.orchestrator()["spec"]["template"]["spec"]


def test_addresses_of_ipv6_and_of_the_service() -> None:
    hosts = [
        Host("a", "fd00::1", "fd00::1", Host.at("a", "fd00::1").ssh),
        Host("b", "fd00::2", "fd00::2", Host.at("b", "fd00::2").ssh, service=Service("fd00::9", 4791)),
    ]
    shares = workloads(hosts).shares()
    containers = [one["spec"]["template"]["spec"]["containers"][0] for one in shares]
    assert [one["args"][2] for one in containers] == ["[fd00::1]:4790", "[fd00::9]:4791"]
    assert [one["livenessProbe"]["tcpSocket"]["host"] for one in containers] == ["fd00::1", "fd00::9"]


def test_a_run_has_no_metrics_and_is_not_repeated_for_its_verdict() -> None:
    job = workloads(three(), does=Leading("run", "scenario.yaml", ("seed=7",))).orchestrator()
    assert job["kind"] == "Job"
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][:2] == ["run", "/etc/mrcfabric/scenario.yaml"]
    assert "--metrics-address" not in container["args"]


def test_ports_stay_below_those_of_the_cluster() -> None:
    last = NODE_PORTS.start - workloads(three()).layout.port_count
    workloads(three(), base=last)
    for base in (9_999, last + 1):
        with pytest.raises(ConfigError, match="below the node ports of a cluster"):
            workloads(three(), base=base)


def test_hosts_that_would_have_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"host vm_1: and VM\.1 would both be share-vm-1"):
        workloads(three("vm_1", "VM.1", "vm2"))
