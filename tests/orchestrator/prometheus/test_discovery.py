"""Targets of a fabric: one per node and the agent, with the labels that boards and rules count on."""

from mrcfabric.topology import Topology
from orchestrator.hosts.placement.layout import Layout
from orchestrator.hosts.placement.site import Site, Sites
from orchestrator.prometheus.discovery import targets

TOPOLOGY = Topology(name="lab", planes=2, t0_per_plane=1, t1_per_plane=1, nics_per_t0=1)


def test_every_node_and_the_agent_is_a_target() -> None:
    layout = Layout(TOPOLOGY, "none", port_base=12_000)
    found = targets(layout, "rack7")
    assert [target["labels"]["instance"] for target in found] == [*TOPOLOGY.node_names(), "agent"]
    assert {tuple(target["targets"]) for target in found} == {(f"127.0.0.1:{layout.http_port}",)}
    rows = {target["labels"]["node"]: target["labels"] for target in found}
    assert rows["p1-t0-0"] == {
        "__metrics_path__": "/metrics/p1-t0-0",
        "fabric": "lab",
        "plane": "1",
        "role": "t0",
        "node": "p1-t0-0",
        "host": "rack7",
        "instance": "p1-t0-0",
    }
    assert {node: (row["role"], row["plane"], row["__metrics_path__"]) for node, row in rows.items()} == {
        "h000": ("nic", "", "/metrics/h000"),
        "p0-t0-0": ("t0", "0", "/metrics/p0-t0-0"),
        "p0-t1-0": ("t1", "0", "/metrics/p0-t1-0"),
        "p1-t0-0": ("t0", "1", "/metrics/p1-t0-0"),
        "p1-t1-0": ("t1", "1", "/metrics/p1-t1-0"),
        "agent": ("agent", "", "/metrics"),
    }


def test_of_several_hosts_each_has_the_name_that_the_inventory_gives_it() -> None:
    sites = Sites((Site("vm1"), Site("vm2")), {"h000": 0, "p0-t0-0": 1})
    rows = {target["labels"]["node"]: target["labels"] for target in targets(Layout(TOPOLOGY, "none", sites), "rack7")}
    assert {node: rows[node]["host"] for node in ("h000", "p0-t0-0", "agent")} == {
        "h000": "vm1",
        "p0-t0-0": "vm2",
        "agent": "vm1",
    }


def test_an_ipv6_address_stands_in_brackets() -> None:
    layout = Layout(TOPOLOGY, "none", host="fd00::1", port_base=12_000)
    assert targets(layout, "rack7")[0]["targets"] == [f"[fd00::1]:{layout.http_port}"]


def test_labels_are_texts() -> None:
    for target in targets(Layout(TOPOLOGY, "plane", port_base=12_000), "rack7"):
        assert all(isinstance(value, str) for value in target["labels"].values())
