"""Selectors: what a description means, what it cannot mean, and that chance comes from the seed alone."""

from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from orchestrator.faults.host_map import HostMap
from orchestrator.faults.selectors import Selector, hosts_named, nodes_meant, of_words, select

FABRIC = Topology(planes=2, t0_per_plane=2, t1_per_plane=3, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=4)


def chosen(kind: str, seed: str = "seed", **table: Any) -> tuple[str, ...]:
    return select(FABRIC, kind, Selector.of_table(table), Rng(seed))


@pytest.mark.parametrize(
    ("kind", "table", "meant"),
    [
        ("link_down", {"links": "p0-t0-1~p0-t1-2"}, ("p0-t0-1~p0-t1-2",)),
        ("link_down", {"links": "p0-t1-2~p0-t0-1"}, ("p0-t0-1~p0-t1-2",)),
        ("link_down", {"links": "p0-t1-2>p0-t0-1"}, ("p0-t1-2>p0-t0-1",)),
        ("link_down", {"links": "p1-t1-0~*"}, ("p1-t0-0~p1-t1-0", "p1-t0-1~p1-t1-0")),
        ("link_down", {"links": "p1-t1-0>*"}, ("p1-t1-0>p1-t0-0", "p1-t1-0>p1-t0-1")),
        ("loss", {"of": "h001", "direction": "up"}, ("h001>p0-t0-0", "h001>p1-t0-0")),
        ("loss", {"of": "h001", "plane": 1, "direction": "down"}, ("p1-t0-0>h001",)),
        ("gray", {"tier": "t0-t1", "plane": [0], "of": ["p0-t1-[01]"]},
         ("p0-t0-0~p0-t1-0", "p0-t0-0~p0-t1-1", "p0-t0-1~p0-t1-0", "p0-t0-1~p0-t1-1")),
        ("switch_crash", {"tier": "t1", "plane": 1}, ("p1-t1-0", "p1-t1-1", "p1-t1-2")),
        ("switch_freeze", {"nodes": ["p?-t0-1"]}, ("p0-t0-1", "p1-t0-1")),
        ("t0_down", {"plane": 0}, ("p0-t0-0", "p0-t0-1")),
        ("nic_crash", {"nodes": "h00[!0]"}, ("h001", "h002", "h003")),
        ("host_loss", {"of": "p1-t0-1"}, ("h002", "h003")),
        ("nic_port_down", {"nic_ports": "h003:1"}, ("h003:1",)),
        ("nic_port_down", {"nodes": "h000"}, ("h000:0", "h000:1")),
        ("nic_port_down", {"of": "p1-t0-1"}, ("h002:1", "h003:1")),
        ("plane_down", {"plane": 1}, ("1",)),
        ("control_cut", {"tier": "nic"}, ("h000", "h001", "h002", "h003")),
        ("session_down", {"of": "p0-t0-1"}, ("p0-t0-1~p0-t1-0", "p0-t0-1~p0-t1-1", "p0-t0-1~p0-t1-2")),
        ("session_flap", {"links": "p1-t1-0~*"}, ("p1-t0-0~p1-t1-0", "p1-t0-1~p1-t1-0")),
    ],
)  # fmt: skip
def test_what_is_meant(kind: str, table: dict[str, Any], meant: tuple[str, ...]) -> None:
    assert chosen(kind, **table) == meant


@pytest.mark.parametrize(
    ("kind", "table", "complaint"),
    [
        ("link_dawn", {}, "no such kind of fault .nearest is link_down"),
        ("link_down", {"links": "p0-t0-1~p0-t1-7"}, "no such node in fabric fabric .nearest is p0-t1-2"),
        ("link_down", {"links": "h000~p0-t0-1"}, "no such link"),
        ("link_down", {"links": "p7-*"}, "nothing in fabric fabric is meant"),
        ("link_down", {"links": "p0-t1-2>p0-t0-1", "direction": "up"}, "direction: up beside"),
        ("link_down", {"nodes": "h000"}, "selector.nodes: says nothing about a link_down"),
        ("switch_crash", {"direction": "up"}, "selector.direction: says nothing"),
        ("switch_crash", {"nodes": "h000"}, "nothing in fabric"),
        ("switch_crash", {"tier": "nic"}, "t0 or t1"),
        ("t0_down", {"tier": "t1"}, "nothing in fabric"),
        ("nic_port_down", {"nic_ports": "h003:9"}, "no such port"),
        ("nic_port_down", {"nic_ports": "h003"}, "is no port of a NIC"),
        ("plane_down", {"plane": 4}, "no such plane"),
        ("link_down", {"plane": 7}, r"^plane 7: no such plane \(0 to 1\)"),
        ("link_down", {"plane": [7, 9], "links": "*"}, r"^plane 7, 9: no such plane"),
        ("switch_crash", {"plane": 1, "tier": "t1", "of": "h000"}, "nothing in fabric"),
        ("link_down", {"links": "p0-t0-[0"}, "is no glob"),
        ("link_down", {"links": "p0-t0-[3-0]"}, "a range goes upwards"),
        ("link_down", {"links": "*" * 30}, "at most 6 stars"),
        ("link_down", {"mode": "fixed"}, "mode fixed needs a value"),
        ("link_down", {"mode": "one", "value": 2}, "takes no value"),
        ("link_down", {"mode": "fixed-percent", "value": 101}, "out of range"),
        ("t0_down", {"mode": "fixed", "value": 5}, "5 are wanted, 4 are meant"),
        ("link_down", {"mode": "some"}, "selector.mode: some will not do"),
        ("link_down", {"lnks": "*"}, "no such key"),
        ("link_down", {"links": []}, "a name, a glob or a list"),
        ("link_down", {"plane": "one"}, "a number"),
        ("link_down", {"plane": []}, "a number"),
        ("session_down", {"links": "h000~p0-t0-0"}, "sessions are between switches"),
        ("session_down", {"tier": "nic-t0"}, "sessions are between switches"),
    ],
)
def test_what_cannot_be_meant(kind: str, table: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        chosen(kind, **table)


def test_chance_comes_from_the_seed_alone_and_keeps_the_order_of_the_topology() -> None:
    drawn = {seed: chosen("link_down", seed, tier="t0-t1", mode="fixed", value=4) for seed in "abcdefgh"}
    everything = chosen("link_down", tier="t0-t1")
    assert len(set(drawn.values())) > 1
    for seed, names in drawn.items():
        assert names == chosen("link_down", seed, tier="t0-t1", mode="fixed", value=4)
        assert len(names) == 4
        assert list(names) == [name for name in everything if name in names]


def test_shares_are_of_what_is_meant_and_never_nothing() -> None:
    assert len(chosen("link_down", tier="t0-t1", mode="fixed-percent", value=50)) == 6
    assert len(chosen("link_down", tier="t0-t1", mode="fixed-percent", value=1)) == 1
    counts = {len(chosen("link_down", str(n), tier="t0-t1", mode="random-max-percent", value=50)) for n in range(40)}
    assert counts == {1, 2, 3, 4, 5, 6}
    assert len(chosen("link_down", mode="one")) == 1


def test_words_of_a_command_line() -> None:
    assert of_words("link_down", ["p0-*", "plane=0,1", "direction=up"]) == Selector(
        links=("p0-*",), plane=(0, 1), direction="up"
    )
    assert of_words("nic_port_down", ["h003:1"], mode="one") == Selector(nic_ports=("h003:1",), mode="one")
    assert of_words("link_down", ["tier=t0-t1", "mode=fixed", "value=2"]) == Selector(
        tier="t0-t1", mode="fixed", value=2
    )
    assert of_words("plane_down", ["1"]) == Selector(plane=(1,))
    assert of_words("nic_crash", ["of=p0-t0-1", "tier=nic"]) == Selector(of=("p0-t0-1",), tier="nic")
    with pytest.raises(ConfigError, match="no such key"):
        of_words("link_down", ["colour=red"])


@pytest.mark.parametrize(
    ("words", "others", "said"),
    [
        (("plane=0", "plane=1"), {}, "selector.plane: plane=1: plane is given already (all in one, as plane=A,B)"),
        (("of=h000", "of=h001"), {}, "all in one, as of=A,B"),
        (("tier=t0-t1", "tier=nic-t0"), {}, "selector.tier: tier=nic-t0: tier is given already (once)"),
        (("mode=one",), {"mode": "all"}, "mode is given already"),
        (("tier=t0-t1", "mode=fixed", "value=two"), {}, "value"),
    ],
)
def test_a_word_is_never_ignored_for_a_later_one(words: tuple[str, ...], others: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        of_words("link_down", words, **others)
    assert said in str(caught.value)


@pytest.mark.parametrize(("kind", "word"), [("link_down", "t0-t1"), ("switch_crash", "t1"), ("control_cut", "nic")])
def test_a_tier_is_no_name_and_what_to_say_instead_is_said(kind: str, word: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{word}: is a tier, and no name \(tier={word}\)$"):
        of_words(kind, [word])
    assert of_words(kind, [f"tier={word}"]).tier == word


def test_the_table_of_a_selector_is_its_inverse() -> None:
    selector = Selector(links=("a*",), plane=(1,), mode="fixed", value=2, direction="down")
    assert Selector.of_table(selector.table()) == selector
    assert Selector().table() == {}


def test_nodes_of_words_may_be_none_but_are_spelled_right() -> None:
    fabric = Topology.demo()
    assert nodes_meant(fabric, ["p1-*", "tier=t1"]) == tuple(f"p1-t1-{index}" for index in range(4))
    assert nodes_meant(fabric, ["tier=nic"]) == tuple(fabric.nic_names())
    assert nodes_meant(fabric, ["h00[1-2]", "p0-t0-0"]) == ("h001", "h002", "p0-t0-0")
    assert nodes_meant(fabric, ["p9-*"]) == ()
    for words in (["h012"], ["tier=t3"], ["mode=one"], ["direction=up"], ["links=x"]):
        with pytest.raises(ConfigError):
            nodes_meant(fabric, words)


HOSTS = HostMap(
    {
        "vm1": tuple(node for node in FABRIC.node_names() if node not in ("h003", "p1-t1-0")),
        "vm2": ("p1-t1-0",),
        "vm3": ("h003",),
    },
    "vm1",
    {"vm1": frozenset({"rack=a"}), "vm2": frozenset({"rack=a", "big=yes"}), "vm3": frozenset()},
)


@pytest.mark.parametrize(
    ("kind", "table", "meant"),
    [
        ("host_cut_off", {}, ("vm1", "vm2", "vm3")),
        ("host_cut_off", {"hosts": "vm[13]"}, ("vm1", "vm3")),
        ("host_cut_off", {"labels": "rack=a"}, ("vm1", "vm2")),
        ("host_cut_off", {"labels": ["rack=a", "big=yes"]}, ("vm2",)),
        ("host_crash", {}, ("vm2", "vm3")),
        ("host_crash", {"hosts": ["vm1"]}, ("vm1",)),
        ("host_partition", {}, ("vm1~vm2", "vm1~vm3")),
        ("host_partition", {"hosts": "vm3~vm2"}, ("vm2~vm3",)),
        ("host_partition", {"hosts": "vm3~vm1"}, ("vm1~vm3",)),
        ("host_partition", {"hosts": "vm3~*"}, ("vm1~vm3",)),
    ],
)
def test_hosts_are_meant_by_name_glob_and_label(kind: str, table: dict[str, Any], meant: tuple[str, ...]) -> None:
    assert select(FABRIC, kind, Selector.of_table(table), Rng("seed"), HOSTS) == meant


@pytest.mark.parametrize(
    ("kind", "table", "complaint"),
    [
        ("host_crash", {"hosts": "vm9"}, "host vm9: carries no node"),
        ("host_crash", {"nodes": "vm1"}, "selector.nodes: says nothing about a host_crash .there are hosts, labels"),
        ("host_partition", {"hosts": "vm1~vm9"}, "host vm9: carries no node"),
        ("host_partition", {"hosts": "vm1"}, "is no pair of hosts"),
        ("host_partition", {"labels": "rack=a"}, "says nothing about a host_partition"),
        ("host_cut_off", {"labels": "rack=z"}, "nothing in fabric fabric is meant by it .* about: host"),
    ],
)
def test_hosts_that_cannot_be_meant(kind: str, table: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        select(FABRIC, kind, Selector.of_table(table), Rng("seed"), HOSTS)


def test_without_hosts_none_are_meant_and_words_stand_for_themselves() -> None:
    for kind in ("host_crash", "host_partition"):
        with pytest.raises(ConfigError, match=f"{kind}: is about hosts, and this fabric has none by name"):
            chosen(kind, hosts="vm1")
    assert hosts_named("host_crash", of_words("host_crash", ["vm1", "vm*"])) == ("vm1", "vm*")
    assert hosts_named("host_crash", of_words("host_crash", ["labels=rack=a,big=yes"])) == ("rack=a", "big=yes")
    assert hosts_named("host_partition", Selector()) == ("*",)
    with pytest.raises(ConfigError, match="says nothing about"):
        hosts_named("host_crash", Selector(nodes=("h000",)))
