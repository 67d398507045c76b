"""The metrics of a switch come out of a real core's counters, port by port."""

from mrcfabric.egress import DROP_REASONS
from mrcfabric.topology import Topology
from switchd.compose import switch_config
from switchd.core.switch import Switch
from switchd.metrics import render
from tests.support.counters import PROCESS, samples_of


def test_a_port_has_a_number_a_peer_and_its_kind() -> None:
    core = Switch(switch_config(Topology.demo(), "p3-t0-1")).counters()
    for port, found in core["ports"].items():
        found |= {"packets": 10**port, "data_bytes_peak": port}
    core["ports"][4]["drops"]["link_down"] = 3
    samples = samples_of(render("demo", "p3-t0-1", PROCESS | {"core": core}))
    node = 'fabric="demo",node="p3-t0-1"'
    nic = f'{{{node},peer="h004",plane="3",port="0",towards="nic"}}'
    up = f'{{{node},peer="p3-t1-0",plane="3",port="4",towards="t1"}}'
    assert samples[f"mrc_switch_port_sent_packets_total{nic}"] == 1
    assert samples[f"mrc_switch_port_sent_packets_total{up}"] == 10_000
    assert samples[f"mrc_switch_port_data_queue_bytes_max{up}"] == 4
    assert samples[f"mrc_switch_port_rate_bytes_per_second{up}"] == 12.5e9
    assert samples[f"mrc_switch_port_up{up}"] == 1
    drops = {name: count for name, count in samples.items() if name.startswith("mrc_switch_port_drops")}
    lost = f'{{{node},peer="p3-t1-0",plane="3",port="4",reason="link_down",towards="t1"}}'
    assert [name for name, count in drops.items() if count] == [f"mrc_switch_port_drops_total{lost}"]
    assert len(drops) == len(core["ports"]) * len(DROP_REASONS), "a series born with its first burst would have no rate"
    assert samples[f'mrc_switch_drops_total{{{node},plane="3",reason="unknown_usid"}}'] == 0
    assert samples[f'mrc_incarnation{{{node},plane="3"}}'] == 1


def test_a_t1_has_nothing_towards_nics() -> None:
    counters = PROCESS | {"core": Switch(switch_config(Topology.demo(), "p0-t1-0")).counters()}
    rendered = render("demo", "p0-t1-0", counters)
    assert b'towards="t0"' in rendered
    assert b'towards="nic"' not in rendered


def test_there_are_so_many_series_per_port_and_none_per_usid() -> None:
    """Those are asked for on the control channel."""
    counts = {}
    for uplinks in (4, 8, 12):
        topology = Topology(
            planes=8, t0_per_plane=2, t1_per_plane=uplinks, nics_per_t0=4, evs_per_qp=128, reserve_evs_per_qp=32
        )
        core = Switch(switch_config(topology, "p3-t0-1")).counters()
        counts[uplinks] = len(samples_of(render("demo", "p3-t0-1", PROCESS | {"core": core})))
    assert counts[12] - counts[8] == counts[8] - counts[4] == 4 * (14 + len(DROP_REASONS))
