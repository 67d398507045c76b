"""What faults about hosts come to, by the placement of the nodes."""

import json

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.faults.fault import once
from orchestrator.faults.host_map import ONE_HOST, HostMap
from orchestrator.hosts.placement.site import Site, Sites

TOPOLOGY = Topology(planes=2, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=4, reserve_evs_per_qp=2)
SITES = Sites(
    (Site("vm1"), Site("vm2", labels=("rack=a", "big=yes")), Site("vm3", labels=("rack=a",))),
    {"h001": 1, "p0-t1-0": 2, "p1-t0-0": 2, "p1-t1-0": 2},
)
HOSTS = SITES.host_map(TOPOLOGY)
FIRST = "h000", "p0-t0-0"


def parts(kind: str, *targets: str) -> tuple[str, ...]:
    return HOSTS.settled(TOPOLOGY, once(kind, *targets, at_ns=5)).parts


def test_a_crash_is_that_of_all_nodes_placed_there() -> None:
    assert HOSTS.nodes == {"vm1": FIRST, "vm2": ("h001",), "vm3": ("p0-t1-0", "p1-t0-0", "p1-t1-0")}
    assert parts("host_crash", "vm3") == HOSTS.nodes["vm3"]
    assert parts("host_crash", "vm3", "vm2") == ("h001", *HOSTS.nodes["vm3"])


def test_links_between_hosts_are_cut_and_those_within_one_are_not() -> None:
    assert set(parts("host_cut_off", "vm2")) == {"h001~p0-t0-0", "h001~p1-t0-0"}
    assert set(parts("host_cut_off", "vm3")) == {"h000~p1-t0-0", "h001~p1-t0-0", "p0-t0-0~p0-t1-0"}
    assert parts("host_partition", "vm2~vm3") == parts("host_partition", "vm3~vm2") == ("h001~p1-t0-0",)
    assert set(parts("host_partition", "vm1~vm2", "vm1~vm3")) == {"h001~p0-t0-0", "h000~p1-t0-0", "p0-t0-0~p0-t1-0"}


def test_other_faults_are_as_they_were() -> None:
    fault = once("nic_crash", "h001", at_ns=5)
    assert HOSTS.settled(TOPOLOGY, fault) == fault


def test_the_leader_may_be_a_host_without_nodes_which_is_none() -> None:
    places = {node: 1 + (node[0] == "p") for node in TOPOLOGY.node_names()}
    found = Sites((Site("orchestrator"), Site("a"), Site("b")), places).host_map(TOPOLOGY)
    assert (list(found.nodes), found.leader) == (["a", "b"], "")
    assert HostMap.of_record(json.loads(json.dumps(found.record()))) == found
    assert HostMap.of_record(json.loads(json.dumps(HOSTS.record()))) == HOSTS


@pytest.mark.parametrize(
    ("kind", "target", "complaint"),
    [
        ("host_crash", "vm4", "host vm4: carries no node of this fabric, or is none of its hosts .there are vm1, vm2"),
        ("host_crash", "vm1", "host vm1: is the one that leads"),
        ("host_partition", "vm1", "is no pair of hosts .wanted: two of them, as vm1~vm2"),
        ("host_partition", "vm1~vm1", "is no pair of hosts"),
        ("host_partition", "vm1~vm9", "host vm9: carries no node"),
    ],
)  # fmt: skip
def test_what_cannot_be(kind: str, target: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        parts(kind, target)


def test_hosts_without_a_link_between_them_cannot_be_parted() -> None:
    places = {"h001": 1, "p1-t1-0": 2}
    hosts = Sites(SITES.sites, places).host_map(TOPOLOGY)
    with pytest.raises(ConfigError, match="host vm2~vm3: no link of the fabric leads across"):
        hosts.settled(TOPOLOGY, once("host_partition", "vm2~vm3", at_ns=5))
    assert hosts.linked(TOPOLOGY) == {"vm1", "vm2", "vm3", "vm1~vm2", "vm1~vm3"}


def test_on_one_host_there_are_none_by_name() -> None:
    assert Sites().host_map(TOPOLOGY) is ONE_HOST
    with pytest.raises(ConfigError, match=r"is about hosts, and this fabric has none by name .needs --inventory FILE"):
        ONE_HOST.settled(TOPOLOGY, once("host_crash", "vm1", at_ns=5))
