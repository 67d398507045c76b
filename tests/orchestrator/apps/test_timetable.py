"""The faults of the demonstration, for fabrics of any shape."""

from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.apps.timetable import OUTAGE_RTTS, spread, timetable


def test_the_demo_breaks_what_it_promises() -> None:
    topology = Topology.demo()
    flaps, kills, port, death = timetable(topology)
    assert (flaps.kind, len(flaps.targets), len(flaps.pulses)) == ("link", 2, 3)
    planes = {topology.parse_node(name).plane for name in kills.targets}
    assert (kills.kind, len(kills.targets), len(planes)) == ("crash", 4, 4)
    assert OUTAGE_RTTS >= 20
    assert kills.pulses == ((0, OUTAGE_RTTS),)
    assert kills.share == pytest.approx(7 / 8)
    assert (port.kind, port.targets, port.plane, port.share) == ("nic-port", ("h002",), 5, 7 / 8)
    assert (death.kind, death.targets) == ("crash", ("p3-t0-1",))


def test_pulses_follow_one_another() -> None:
    for episode in timetable(Topology.demo()):
        instants = [instant for pulse in episode.pulses for instant in pulse]
        assert instants == sorted(set(instants))
        assert episode.length_rtts == instants[-1]


def small(**sizes: Any) -> Topology:
    return Topology(**{"planes": 2, "t0_per_plane": 2, "t1_per_plane": 2, "nics_per_t0": 1, "evs_per_qp": 16} | sizes)


@pytest.mark.parametrize("sizes", [{}, {"planes": 5, "evs_per_qp": 40, "reserve_evs_per_qp": 10}, {"t1_per_plane": 7}])
def test_every_target_exists_in_every_shape(sizes: dict[str, int]) -> None:
    topology = small(**sizes)
    for episode in timetable(topology):
        for target in episode.targets:
            (topology.parse_link if "~" in target else topology.parse_node)(target)
        assert episode.plane is None or episode.plane < topology.planes
        assert 0 < episode.share <= 1


@pytest.mark.parametrize("key", ["planes", "t0_per_plane", "t1_per_plane"])
def test_a_fabric_with_nothing_to_lose_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        timetable(small(**{key: 1}))


@pytest.mark.parametrize(
    ("topology", "t0", "share"),
    [
        (small(nics_per_t0=3), "p0-t0-0", "67%"),
        (small(nics_per_t0=2, link_rates_bps={"p1-t0-1~p1-t1-0": 10**10}), "p1-t0-1", "55%"),
    ],
)
def test_a_fabric_that_is_congested_by_itself_is_refused(topology: Topology, t0: str, share: str) -> None:
    with pytest.raises(ConfigError, match=f"{t0} has uplinks for {share}"):
        timetable(topology)


def test_slow_ports_of_nics_need_no_more_uplinks() -> None:
    rates = {"p1-t0-1~p1-t1-0": 10**10, "h002~p1-t0-1": 10**10}
    assert timetable(Topology(planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, link_rates_bps=rates))


def test_spread_is_even_and_distinct() -> None:
    assert spread(4, 8) == [0, 2, 4, 6]
    assert spread(4, 4) == [0, 1, 2, 3]
    assert spread(3, 8) == [0, 2, 5]
