"""Latency of nodes: what it adds to which direction of which link, and what follows for round trips."""

from dataclasses import replace
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.latency import NAMES, check_latency, delay_ns
from mrcfabric.latency import PUBLISHED as PUBLISHED_NS
from mrcfabric.topology import Topology
from mrcfabric.topology_file import load
from nicd.compose import nic_config
from studies.flows import Flow
from studies.trial import Trial
from switchd.compose import switch_config
from tests.checks.source import ROOT

DEMO = Topology.demo()
ALL = {"nic_send_ns": 1, "nic_receive_ns": 20, "t0_ns": 300, "t1_ns": 4000}
PUBLISHED = ROOT / "examples/topologies/latency.yaml"
TURNS = 60


def half_round_trip_ns(topology: Topology, target: int) -> float:
    """From the post of 2 bytes to their completion at the far end, on average, as a ping-pong measures it."""
    there, back = Flow(0, target, 2, TURNS, after=1), Flow(target, 0, 2, TURNS, after=0)
    outcome = Trial(topology, (there, back), deadline_ns=10_000_000).run()
    ends = [flow.done_ns for flow in outcome.flows]
    assert None not in ends
    last, first = max(end for end in ends if end), outcome.flows[0].start_ns
    # Two chains of answers side by side, each as long as a flow; a trial answers one link delay after it was asked.
    return (last - first) / TURNS - topology.link_delay_ns


def test_each_direction_has_what_its_ends_add() -> None:
    assert delay_ns(ALL, "nic", "t0") == 301
    assert delay_ns(ALL, "t0", "nic") == 20
    assert delay_ns(ALL, "t0", "t1") == 4000
    assert delay_ns(ALL, "t1", "t0") == 300
    assert delay_ns({}, "nic", "t0") == 0


def test_both_ends_of_a_cable_agree_on_both_directions() -> None:
    topology = replace(DEMO, latency=ALL)
    for name in ("h000", "p0-t0-0", "p3-t1-2"):
        for end in topology.ports(name):
            far = topology.ports(end.peer)[end.peer_port]
            assert (end.delay_ns, end.incoming_delay_ns) == (far.incoming_delay_ns, far.delay_ns)
            assert topology.link_delay_ns <= end.delay_ns <= topology.link_delay_ns_max
    assert topology.link_delay_ns_max == DEMO.link_delay_ns + 4000
    assert nic_config(topology, "h000").ports[0].delay_ns == DEMO.link_delay_ns + 301
    assert [port.delay_ns - DEMO.link_delay_ns for port in switch_config(topology, "p0-t0-0").ports] == [20] * 4 + [
        4000
    ] * 4


@pytest.mark.parametrize("same_t0", [False, True])
def test_the_base_rtt_has_every_node_on_the_way_twice(same_t0: bool) -> None:
    more = replace(DEMO, latency=ALL).base_rtt_ns(same_t0) - DEMO.base_rtt_ns(same_t0)
    assert more == 2 * (1 + 20 + (300 if same_t0 else 300 + 4000 + 300))


@pytest.mark.parametrize(
    "latency", [{"t2_ns": 5}, {"t0_ns": -1}, {"t0_ns": True}, {"t1_ns": 1.5}, {"nic_send_ns": 1 << 30}]
)
def test_what_is_no_latency_is_named(latency: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=f"^topology.latency.{next(iter(latency))}"):
        check_latency(latency)


def test_a_file_has_units_and_a_flag_may_change_one() -> None:
    topology = load(PUBLISHED, ["latency.t1_ns=1us"])
    assert topology.latency == {"t0_ns": 250, "t1_ns": 1000, "nic_send_ns": 315, "nic_receive_ns": 315}
    assert set(topology.latency) == set(NAMES)


def test_a_small_write_takes_the_sum_of_its_causes_and_the_published_ratio_follows() -> None:
    topology = load(PUBLISHED)
    inside, across = half_round_trip_ns(topology, 1), half_round_trip_ns(topology, topology.nics_per_t0)
    # Serialization of some 170 bytes per link, and the ticks of a trial, are what is left.
    assert inside == pytest.approx(1830 + 2 * 100 + 250, abs=100)
    assert across == pytest.approx(1830 + 4 * 100 + 3 * 250, abs=150)
    assert across / inside == pytest.approx(1.28, rel=0.05)
    assert half_round_trip_ns(DEMO, 4) / half_round_trip_ns(DEMO, 1) > 1.8


@pytest.mark.parametrize("latency", [{}, ALL])
def test_latency_takes_nothing_from_the_rate(latency: dict[str, int]) -> None:
    topology = replace(DEMO, planes=2, evs_per_qp=16, reserve_evs_per_qp=4, latency=latency,
                       nic={"host_post_ns": 2_000, "host_complete_ns": 3_000})  # fmt: skip
    begin = 10_000 + 5 * topology.base_rtt_ns()
    window = begin, begin + 20 * topology.base_rtt_ns()
    outcome = Trial(topology, (Flow(0, 4, 1 << 22, 8),), deadline_ns=window[1] + 1, window_ns=window).run()
    rate = outcome.flows[0].window_bytes * 8e9 / (window[1] - window[0])
    assert rate == pytest.approx(2 * topology.rate_bps * 0.961, rel=0.02)
    assert outcome.nics["packets_lost"] == 0


def test_one_word_means_the_published_figures(tmp_path: Path) -> None:
    """In a file and as a flag, beneath what is said beside it, for any shape and any system."""
    whole = load(PUBLISHED)
    for shown in (load(None, ["latency=published"]), load(_file(tmp_path, "latency: published\n"))):
        assert (shown.latency, shown.link_delay_ns) == (whole.latency, whole.link_delay_ns)
        assert shown.nic == whole.nic
    changed = load(
        _file(tmp_path, "latency: published\nlink_delay_ns: 200ns\nnic: {host_post_ns: 1us, rto_ns: 1ms}\n"),
        ["latency.t1_ns=1us"],
    )
    assert changed.latency == {**PUBLISHED_NS, "t1_ns": 1000}
    assert changed.link_delay_ns == 200
    assert changed.nic == {"host_post_ns": 1000, "host_complete_ns": 600, "rto_ns": 1_000_000}
    assert load(None, ["latency.t1_ns=1us", "latency=published"]).latency == PUBLISHED_NS
    assert load(None, ["latency=published", "system=roce"]).nic["host_post_ns"] == 600
    assert Topology.from_dict(changed.to_dict()) == changed


@pytest.mark.parametrize("word", ["measured", "0", "true"])
def test_no_other_word_stands_for_latencies(tmp_path: Path, word: str) -> None:
    with pytest.raises(ConfigError, match=r"latency is a table \(.* latency.KEY=value, or latency=published\)"):
        load(None, [f"latency={word}"])
    with pytest.raises(ConfigError, match=r"latency must be a table .* t0_ns, t1_ns; or `latency: published`"):
        load(_file(tmp_path, f"latency: {word}\n"))


@pytest.mark.parametrize("planes", [1, 8])
def test_the_published_ratio_of_small_writes_does_not_depend_on_the_shape(planes: int) -> None:
    topology = load(None, ["latency=published", f"planes={planes}", "t1_per_plane=2", "nics_per_t0=2"])
    inside, across = half_round_trip_ns(topology, 1), half_round_trip_ns(topology, topology.nics_per_t0)
    assert across / inside == pytest.approx(1.28, rel=0.05)


def _file(folder: Path, text: str) -> Path:
    path = folder / "topology.yaml"
    path.write_text(text)
    return path
