"""What only MRC NICs can do is refused in one line elsewhere."""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.planning.abilities import has_evs, has_usids, marks, need_mrc, pauses, transport_of, trims

DEMO = Topology.demo()


@pytest.mark.parametrize("topology", [DEMO, replace(DEMO, nic={"transport": "mrc"})])
def test_mrc_can(topology: Topology) -> None:
    assert transport_of(topology) == "mrc"
    assert has_evs(topology)
    need_mrc(topology, "h000", "only MRC has EVs", "nothing")


def test_rc_cannot() -> None:
    topology = replace(DEMO, nic={"transport": "rc"})
    assert transport_of(topology) == "rc"
    assert not has_evs(topology)
    with pytest.raises(ConfigError) as caught:
        need_mrc(topology, "h000", "only MRC has EVs", "look elsewhere")
    assert str(caught.value) == (
        "h000: only MRC has EVs, and the NICs of this fabric run nic.transport rc (look elsewhere)"
    )


@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        ({}, (True, True)),
        ({"trim": False, "ecn": False}, (True, False)),
        ({"trim": False, "trim_last_hop": False, "ecn": False, "ecn_last_hop": True}, (False, True)),
        ({"trim": False, "trim_last_hop": False, "p0-t0-0.1.trim": True}, (True, True)),
        ({"trim": False, "trim_last_hop": False, "ecn": False, "p0-t0-0.1.ecn": False}, (False, False)),
    ],
)
def test_whether_switches_trim_and_mark(switch: dict[str, Any], expected: tuple[bool, bool]) -> None:
    topology = Topology(switch=switch)
    assert (trims(topology), marks(topology)) == expected


def test_pinned_packets_have_usids_whatever_the_transport() -> None:
    assert has_usids(Topology())
    assert has_usids(Topology(nic={"transport": "rc", "rc_path": "pinned"}))
    assert not has_usids(Topology(nic={"transport": "rc"}))


@pytest.mark.parametrize(
    ("switch", "expected"), [({}, False), ({"lossless": "pfc"}, True), ({"lossless": "off"}, False)]
)
def test_whether_switches_pause(switch: dict[str, Any], expected: bool) -> None:
    assert pauses(Topology(name="any", switch=switch)) == expected
