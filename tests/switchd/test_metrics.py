"""The metrics of a switch come out of a real core's counters, summed by what its ports lead to."""

from mrcfabric.topology import Topology
from switchd.compose import switch_config
from switchd.core.switch import Switch
from switchd.metrics import render
from tests.support.counters import PROCESS, samples_of


def test_ports_are_summed_by_what_they_lead_to() -> None:
    core = Switch(switch_config(Topology.demo(), "p3-t0-1")).counters()
    for port, found in core["ports"].items():
        found |= {"packets": 10**port, "data_bytes_peak": port}
    samples = samples_of(render("demo", "p3-t0-1", PROCESS | {"core": core}))
    node = 'fabric="demo",node="p3-t0-1",plane="3"'
    assert samples[f'mrc_switch_sent_packets_total{{{node},towards="nic"}}'] == 1111
    assert samples[f'mrc_switch_sent_packets_total{{{node},towards="t1"}}'] == 11110000
    assert samples[f'mrc_switch_data_queue_bytes_max{{{node},towards="nic"}}'] == 3
    assert samples[f'mrc_switch_drops_total{{{node},reason="unknown_usid"}}'] == 0
    assert samples[f'mrc_switch_drops_total{{{node},reason="link_down"}}'] == 0
    assert samples[f"mrc_incarnation{{{node}}}"] == 1


def test_a_t1_has_nothing_towards_nics() -> None:
    counters = PROCESS | {"core": Switch(switch_config(Topology.demo(), "p0-t1-0")).counters()}
    rendered = render("demo", "p0-t1-0", counters)
    assert b'towards="t0"' in rendered
    assert b'towards="nic"' not in rendered


def test_a_switch_has_as_many_series_whatever_its_size() -> None:
    """Nothing per uSID and nothing per port: those are asked for on the control channel."""
    counts = set()
    for uplinks in (4, 256):
        topology = Topology(
            planes=8, t0_per_plane=2, t1_per_plane=uplinks, nics_per_t0=4, evs_per_qp=128, reserve_evs_per_qp=32
        )
        core = Switch(switch_config(topology, "p3-t0-1")).counters()
        counts.add(len(samples_of(render("demo", "p3-t0-1", PROCESS | {"core": core}))))
    assert len(counts) == 1
