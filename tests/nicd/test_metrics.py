"""The metrics of a NIC come out of a real core's counters."""

from mrcfabric.topology import Topology
from nicd.compose import nic_config
from nicd.core.nic import Nic
from nicd.metrics import DEFINITIONS, render
from tests.support.counters import PROCESS, samples_of


def test_a_fresh_nic() -> None:
    counters = PROCESS | {"core": Nic(nic_config(Topology.demo(), "h003")).counters(), "verbs": {"clients": 2}}
    samples = samples_of(render("demo", "h003", counters))
    node = 'fabric="demo",node="h003"'
    assert samples[f'mrc_nic_payload_bytes_total{{{node},plane=""}}'] == 0
    assert samples[f'mrc_nic_port_up{{{node},plane="7"}}'] == 1
    assert samples[f'mrc_nic_evs{{{node},plane="0",state="assumed_bad"}}'] == 0
    assert samples[f'mrc_nic_retransmits_total{{cause="trim",{node},plane=""}}'] == 0
    assert samples[f'mrc_nic_applications{{{node},plane=""}}'] == 2
    assert samples[f'mrc_control_drops_total{{{node},plane="",reason="bad_mac"}}'] == 2
    assert samples[f'mrc_fabric_time_seconds_total{{{node},plane=""}}'] == 0.005


def test_transitions_have_state_and_cause() -> None:
    core = Nic(nic_config(Topology.demo(), "h000")).counters()
    core["ev_transitions"] = {"assumed_bad:timeout:5": 3}
    samples = samples_of(render("demo", "h000", PROCESS | {"core": core}))
    name = 'mrc_nic_ev_transitions_total{cause="timeout",fabric="demo",node="h000",plane="5",state="assumed_bad"}'
    assert samples[name] == 3


def test_no_counter_of_the_core_is_left_out() -> None:
    core = Nic(nic_config(Topology.demo(), "h000")).counters()
    read: set[str] = set()

    class Spy(dict[str, object]):
        def __getitem__(self, key: str) -> object:
            read.add(key)
            return super().__getitem__(key)

    for definition in DEFINITIONS:
        list(definition.read({**PROCESS, "core": Spy(core), "verbs": {"clients": 0}, "programs": []}))
    assert core.keys() - read == set()
