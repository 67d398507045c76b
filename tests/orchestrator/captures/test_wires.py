"""Words of the command line become interfaces and filters."""

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.packet_filter import PacketFilter
from mrcfabric.topology import Topology
from orchestrator.captures.wires import Wire, filters_of, links_meant, wires_of

TOPOLOGY = Topology(planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2)


def names(*words: str, direction: str = "both", planes: tuple[int, ...] = ()) -> list[str]:
    return [wire.name for wire in wires_of(TOPOLOGY, links_meant(TOPOLOGY, words, direction, planes))]


def test_a_link_is_two_interfaces_and_one_way_is_one() -> None:
    assert names("p0-t1-1~p0-t0-0") == ["p0-t0-0>p0-t1-1", "p0-t1-1>p0-t0-0"]
    assert names("p0-t1-1>p0-t0-0") == ["p0-t1-1>p0-t0-0"]
    assert names("h000~p0-t0-0", direction="down") == ["p0-t0-0>h000"]


def test_links_are_named_as_for_faults() -> None:
    assert len(names()) == 2 * TOPOLOGY.link_count
    assert names("of=h003", "plane=1") == ["h003>p1-t0-1", "p1-t0-1>h003"]
    assert names("h003~*", planes=(1,)) == ["h003>p1-t0-1", "p1-t0-1>h003"]
    assert len(names("tier=t0-t1")) == 16


def test_what_means_nothing_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="no such link"):
        names("p0-t0-0~p1-t1-0")
    with pytest.raises(ConfigError, match="nothing in fabric"):
        names("h9*~*")
    with pytest.raises(ConfigError, match="direction"):
        names("h000~p0-t0-0", direction="sideways")


def test_a_capture_of_too_many_links_is_refused() -> None:
    large = Topology(planes=8, t0_per_plane=16, t1_per_plane=16, nics_per_t0=1)
    with pytest.raises(ConfigError, match="directions of links"):
        wires_of(large, [link.name for link in large.links()])


def test_an_interface_says_where_it_begins_and_ends() -> None:
    (wire,) = wires_of(TOPOLOGY, ["p0-t0-1>p0-t1-0"])
    described = "p0-t0-1 port 2 to p0-t1-0 port 1, link p0-t0-1~p0-t1-0"
    assert wire == Wire("p0-t0-1>p0-t1-0", "p0-t0-1", 2, described, TOPOLOGY.rate_bps)


def test_every_sender_is_asked_for_its_own_ports() -> None:
    wires = wires_of(TOPOLOGY, ["h000~p0-t0-0", "p0-t0-0>p0-t1-1"])
    wanted = PacketFilter(kinds=("data",), evs=(7,))
    assert filters_of(wires, wanted) == {
        "h000": PacketFilter(ports=(0,), kinds=("data",), evs=(7,)),
        "p0-t0-0": PacketFilter(ports=(0, 3), kinds=("data",), evs=(7,)),
    }


def test_links_that_nothing_is_meant_by_are_a_mistake() -> None:
    with pytest.raises(ConfigError, match=r"^links: nothing in fabric fabric is meant by it \(a link is .* 0 to 1\)$"):
        names("p0-t0-0~p0-t1-0", planes=(1,))
    with pytest.raises(ConfigError, match=r"^plane 7: no such plane \(0 to 1\)$"):
        names(planes=(7,))
