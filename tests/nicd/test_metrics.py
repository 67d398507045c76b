"""The metrics of a NIC come out of a real core's counters."""

import re

import pytest

from mrcfabric import bundles
from mrcfabric.topology import Topology
from mrcfabric.topology_file import with_system
from nicd.compose import nic_config
from nicd.core.nic import Nic
from nicd.metrics import DEFINITIONS, render
from orchestrator.planning.abilities import has_evs
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
    assert sum(count for name, count in samples.items() if "ev_transitions" in name) == 3


def test_every_way_out_of_use_and_back_is_there_from_the_start() -> None:
    """A series that is born with its first burst has no rate of it."""
    core = Nic(nic_config(Topology.demo(), "h000")).counters()
    samples = samples_of(render("demo", "h000", PROCESS | {"core": core}))
    found = {
        (match["state"], match["cause"])
        for name in samples
        if (
            match := re.match(
                r'mrc_nic_ev_transitions_total{cause="(?P<cause>.*?)",.*plane="7",state="(?P<state>.*?)"', name
            )
        )
    }
    bad = {("assumed_bad", cause) for cause in ("gap", "timeout", "path", "always_skip")}
    back = {("good", "probed_clear"), ("skip", "probed_marked")}
    assert found == {*bad, *back, ("denied", "deny"), ("good", "allow")}


def test_answers_to_probes_have_the_purpose_of_the_probe() -> None:
    core = Nic(nic_config(Topology.demo(), "h000")).counters()
    core |= {"probe_replies": 5, "probe_rtt_count": 7}
    samples = samples_of(render("demo", "h000", PROCESS | {"core": core}))
    name = 'mrc_nic_probe_replies_received_total{{fabric="demo",node="h000",plane="",purpose="{}"}}'
    assert [samples[name.format(purpose)] for purpose in ("ev", "reverse")] == [5, 2]


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


@pytest.mark.parametrize("system", bundles.names())
def test_series_of_evs_are_of_nics_that_have_some(system: str) -> None:
    topology = with_system(Topology.demo(), system)
    core = Nic(nic_config(topology, "h000")).counters()
    found = [name for name in samples_of(render("demo", "h000", PROCESS | {"core": core})) if "mrc_nic_ev" in name]
    assert bool([name for name in found if "mrc_nic_events" not in name]) == has_evs(topology)
