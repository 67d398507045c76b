"""Parts of pods: names that Kubernetes takes, resources that follow from a plan."""

from dataclasses import replace

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.placement.inventory import Host
from orchestrator.kubernetes import pods

VM = Host.at("vm1", "10.0.0.1")


@pytest.mark.parametrize(
    ("name", "spelled"), [("vm1", "vm1"), ("Rack_A.7", "rack-a-7"), ("a-", "a"), ("x" * 64, "x" * 50)]
)
def test_hosts_are_spelled_as_objects_are(name: str, spelled: str) -> None:
    assert pods.plain(name) == spelled


def test_a_host_is_the_node_of_its_name_or_of_its_label() -> None:
    assert pods.node_of(VM) == {"kubernetes.io/hostname": "vm1"}
    labelled = replace(VM, labels={"kubernetes.io/hostname": "ip-10-0-0-1.example"})
    assert pods.node_of(labelled) == {"kubernetes.io/hostname": "ip-10-0-0-1.example"}
    with pytest.raises(ConfigError, match="is no name of a node"):
        pods.node_of(Host.at("vm1_", "10.0.0.1"))


@pytest.mark.parametrize(
    ("cores", "memory_bytes", "most", "expected"),
    [
        (4, 2**30 + 1, None, {"requests": {"cpu": "4", "memory": "1025Mi"}}),
        (None, 2**20, 2**30, {"requests": {"cpu": "1", "memory": "1Mi"}, "limits": {"memory": "1024Mi"}}),
        (1, 2**30, 2**20, {"requests": {"cpu": "1", "memory": "1024Mi"}, "limits": {"memory": "1024Mi"}}),
    ],
    ids=["rounded up", "limited where a host tells its memory", "never below what is asked"],
)
def test_resources(cores: int | None, memory_bytes: int, most: int | None, expected: pods.Object) -> None:
    assert pods.resources(cores, memory_bytes, most) == expected


def test_only_hosts_of_the_inventory_have_the_network_of_a_node() -> None:
    container = pods.container("share", ["share"], {})
    assert pods.pod(container, VM, [])["hostNetwork"] is True
    elsewhere = pods.pod(container, None, [])
    assert not {"hostNetwork", "nodeSelector"} & elsewhere.keys()
