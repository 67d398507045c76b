"""The plan's figures against hand-made ones and against enumeration; the largest fabric without enumeration."""

import json
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.planning.plan import check, fib_table, nic_table, render, summary

DEMO = Topology.demo()
LARGEST = Topology(name="paper", t0_per_plane=512, t1_per_plane=256, nics_per_t0=256, evs_per_qp=256)


def test_a_fabric_of_rc_has_neither_evs_nor_usids_in_its_plan() -> None:
    topology = replace(Topology.demo(), nic={"transport": "rc"}, switch={"forwarding": "ecmp"})
    text = render({**summary(topology), "nic": nic_table(topology, "h000", "h003")})
    for word in ("evs_", "usid", "mpr", "wimm", "outer_address", "fib_"):
        assert word not in text.lower(), word
    assert "nic.rc_psns_max.goodput_bps" in text
    with pytest.raises(ConfigError, match="has no table of uSIDs"):
        fib_table(topology, "p0-t0-0")


def test_sizes_of_the_largest_two_tier_fabric() -> None:
    plan = summary(LARGEST)
    sizes = plan["sizes"]
    assert (sizes["nics"], sizes["t0"], sizes["t1"]) == (131_072, 4_096, 2_048)
    assert (sizes["t0_ports"], sizes["t1_ports"]) == (512, 512)
    assert sizes["oversubscription"] == 1.0
    assert plan["paths"]["per_pair"] == 2_048
    assert plan["failures"]["t0_t1_link_of_a_t0_plane"] == pytest.approx(0.004, abs=1e-4)


@pytest.mark.parametrize("topology", [DEMO, Topology(planes=2, t0_per_plane=3, t1_per_plane=5)], ids=["demo", "odd"])
def test_sums_are_those_of_enumeration(topology: Topology) -> None:
    plan = summary(topology)
    switches = list(topology.switch_names())
    links = list(topology.links())
    assert plan["sizes"]["switches"] == len(switches)
    assert plan["sizes"]["links_nic_t0"] == sum(link.a.startswith("h") for link in links)
    assert plan["sizes"]["links_t0_t1"] == sum(link.a.startswith("p") for link in links)
    assert plan["tables"]["fib_entries"] == sum(len(topology.fib(switch)) for switch in switches)
    assert plan["launch"] == {
        "daemons": topology.nodes,
        "processes_packed_by_plane": topology.nics + topology.planes,
        "udp_sockets": sum(len(topology.ports(name)) for name in topology.node_names()),
    }


def test_a_t0_s_table() -> None:
    table = fib_table(DEMO, "p3-t0-1")
    assert (table["usid"], table["match"]) == ("5801", "fcbb:bb00:5801::/48")
    assert [entry["port"] for entry in table["entries"]] == list(range(8))
    assert table["entries"][0] == {"next_usid": "d800", "port": 0, "peer": "h004", "link": "h004~p3-t0-1"}
    assert table["entries"][7] == {"next_usid": "9803", "port": 7, "peer": "p3-t1-3", "link": "p3-t0-1~p3-t1-3"}


def test_a_nic_s_table() -> None:
    table = nic_table(DEMO, "h000", "h005")
    assert (table["address"], table["paths"]) == ("fd6d:7263:6661:6272::1", 32)
    assert [port["plane"] for port in table["ports"]] == list(range(8))
    assert table["ports"][3]["outer_address"] == "fcbb:bb00:5800:9800:5801:d801::"
    assert nic_table(DEMO, "h000", "h001")["paths"] == 8


def test_text_has_every_section_and_column() -> None:
    document = summary(DEMO)
    document["fib"] = fib_table(DEMO, "p0-t1-0")
    text = render(document)
    assert all(f"\n{section}\n" in text for section, figures in document.items() if isinstance(figures, dict))
    assert "800 Gb/s" in text
    assert "9,424 ns" in text
    assert "    4001       1     p0-t0-1  p0-t0-1~p0-t1-0\n" in text + "\n"
    assert json.loads(json.dumps(document)) == document


def test_the_largest_plan_costs_no_enumeration() -> None:
    tracemalloc.start()
    document = summary(LARGEST)
    document["fib"] = fib_table(LARGEST, "p7-t0-511")
    document["nic"] = nic_table(LARGEST, "h131071")
    render(document)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize(
    "bad", [{"nic": {"rto": 1}}, {"switch": {"ecn_max": 0.1}}, {"nic": {"evs_active": 12}}], ids=str
)
def test_settings_are_checked_without_a_start(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        check(Topology(**bad))


def test_tables_of_unknown_nodes() -> None:
    for refused in (lambda: fib_table(DEMO, "h000"), lambda: nic_table(DEMO, "p0-t0-0"), lambda: fib_table(DEMO, "x")):
        with pytest.raises(ConfigError):
            refused()


@pytest.mark.parametrize(
    ("ports", "gbps", "classes", "headroom"),
    [(512, 100, "3", 512 * 62_841), (128, 400, "3,4", 256 * 217_941), (64, 800, "3,4", 128 * 424_741)],
)
def test_a_lossless_plan_shows_what_headroom_takes_of_the_buffer(
    ports: int, gbps: int, classes: str, headroom: int
) -> None:
    """As drivers reserve it: 32 MB of 512 ports at 100 Gb/s, 56 MB for two classes of 128 ports at 400 Gb/s."""
    topology = Topology(
        planes=1, t0_per_plane=ports, t1_per_plane=ports // 2, nics_per_t0=ports // 2, rate_bps=gbps * 10**9,
        nic={"transport": "rc", "cc": "none"},
        switch={
            "forwarding": "ecmp", "lossless": "pfc", "pfc_classes": classes, "pfc_headroom": "deployed",
            "buffer_bytes": 256_000_000, "trim": False, "trim_last_hop": False,
        },
    )  # fmt: skip
    buffers = summary(topology)["buffers"]
    assert buffers["t0"]["headroom_bytes"] == buffers["t1"]["headroom_bytes"] == headroom
    assert buffers["t0"]["buffer_bytes"] - headroom > buffers["t0"]["pool_bytes"] > buffers["t0"]["xoff_bytes"]
    assert "buffers" not in summary(Topology.demo())
