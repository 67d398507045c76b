"""Counters laid flat: labels behind a dot, ports summed, gauges left out."""

from dataclasses import replace

from mrcfabric.topology import Topology
from nicd.compose import nic_config
from nicd.core.ev_state import EV_STATES
from nicd.core.nic import Nic
from nicd.core.rc.rc_stats import COUNTERS
from orchestrator.runs.counting import flat_nic, flat_switch, plane_states, ports_of, rates_of
from switchd.compose import switch_config
from switchd.core.switch import Switch

TOPOLOGY = Topology(name="flat", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16)


def test_a_nic_is_laid_flat() -> None:
    core = Nic(nic_config(TOPOLOGY, "h000"), 0).counters()
    core["retransmits"]["gap"] = 3
    core["ev_transitions"] = {"assumed_bad:timeout": 2, "assumed_bad:gap": 1, "good:probe": 1}
    core["drops"]["no_carrier"] = 1
    for port in core["ports"].values():
        port["packets"] = 7
        port["drops"]["loss"] = 4
    counts = flat_nic(core)
    assert counts["retransmits.gap"] == 3
    assert (counts["ev_in.assumed_bad"], counts["ev_in.good"]) == (3, 1)
    assert (counts["drops.no_carrier"], counts["drops.loss"]) == (1, 8)
    assert (counts["sent.0"], counts["sent.1"]) == (7, 7)
    assert "rtt_min_ns" not in counts
    assert all(type(count) is int for count in counts.values())


def test_what_rc_alone_counts_has_its_prefix_and_gauges_are_no_counts() -> None:
    mrc = Nic(nic_config(TOPOLOGY, "h000"), 0).counters()
    assert not [name for name in flat_nic(mrc) if name.startswith("rc.")]
    assert rates_of(mrc) == {}
    core = Nic(nic_config(replace(TOPOLOGY, nic={"transport": "rc"}), "h000"), 0).counters()
    assert rates_of(core) == {}
    core["rc"] |= {"naks_sent": 3, "cnps_sent": 5, "rate_bps_mean": 7, "rate_bps_min": 6, "qps_slowed": 1}
    counts = flat_nic(core)
    assert (counts["rc.naks_sent"], counts["rc.cnps_sent"]) == (3, 5)
    assert {name.removeprefix("rc.") for name in counts if name.startswith("rc.")} == set(COUNTERS)
    assert rates_of(core) == {"mean": 7, "min": 6}


def test_gauges_of_a_nic_are_told_by_plane() -> None:
    core = Nic(nic_config(TOPOLOGY, "h000"), 0).counters()
    assert plane_states(core, 2) == [dict.fromkeys(EV_STATES, 0)] * 2
    assert ports_of(core) == [True, True]
    core["ports"]["1"]["carrier"] = 0
    assert ports_of(core) == [True, False]


def test_a_switch_is_laid_flat() -> None:
    core = Switch(switch_config(TOPOLOGY, "p0-t0-0"), 0).counters()
    core["drops"]["hop_limit"] = 2
    counts = flat_switch(core)
    assert counts["drops.hop_limit"] == 2
    assert {"packets", "marks", "trimmed"} <= counts.keys()
    assert all(type(count) is int for count in counts.values())


def test_pauses_are_summed_over_ports_and_classes_where_there_are_any() -> None:
    core = Switch(switch_config(TOPOLOGY, "p0-t0-0"), 0).counters()
    assert "pauses" not in flat_switch(core)
    for port in core["ports"].values():
        port["control_frames"] = 3
        port["classes"] = {cls: {"pauses": cls, "pause_ns": 10 * cls} for cls in (3, 4)}
    ports = len(core["ports"])
    counts = flat_switch(core)
    assert (counts["pause_frames"], counts["pauses"], counts["pause_ns"]) == (3 * ports, 7 * ports, 70 * ports)


def test_counters_of_the_rc_transport_have_its_name_in_front_and_rates_are_none() -> None:
    core = Nic(nic_config(TOPOLOGY, "h000"), 0).counters()
    core["rc"] = {"naks_sent": 4, "rate_bps_min": 7, "rate_bps_mean": 7.5}
    counts = flat_nic(core)
    assert counts["rc.naks_sent"] == 4
    assert not [name for name in counts if "rate_bps" in name]
