"""A topology's figures as the knobs of a NIC."""

import dataclasses
from typing import Any

import pytest

from mrcfabric.class_egress_config import ClassEgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from nicd.compose import nic_config, nic_settings


def test_figures_of_the_topology_arrive() -> None:
    topology = Topology(planes=4, mtu_bytes=1024, evs_per_qp=64, reserve_evs_per_qp=8, rate_bps=25 * 10**9, seed="s")
    config = nic_config(topology, "h005")
    assert (config.name, config.index, config.address) == ("h005", 5, topology.nic_address(5))
    assert [(port.rate_bps, port.delay_ns, port.ecn, port.trim) for port in config.ports] == [
        (25 * 10**9, 1000, False, False)
    ] * 4
    assert config.settings.mtu_bytes == 1024
    assert config.settings.base_rtt_ns == topology.base_rtt_ns()
    assert (config.settings.evs_active, config.settings.evs_reserve) == (64, 8)
    assert config.settings.ev_min_active < config.settings.evs_active
    assert config.seed == "s"
    assert config.paths.towards(0).address == topology.nic_address(0)


def test_settings_win_over_derived_figures() -> None:
    assert nic_settings(Topology(nic={"base_rtt_ns": 20_000})).base_rtt_ns == 20_000


@pytest.mark.parametrize("knob", ["mtu_bytes", "evs_active", "evs_reserve"])
def test_figures_of_the_topology_have_one_source(knob: str) -> None:
    with pytest.raises(ConfigError, match=rf"nic\.{knob}.*instead"):
        nic_settings(Topology(nic={knob: 512}))


def test_a_port_never_drops_what_the_core_may_queue() -> None:
    config = nic_config(Topology(nic={"port_queue_bytes_max": 1 << 22}), "h000")
    assert all(port.data_bytes_max > 1 << 22 for port in config.ports)


@pytest.mark.parametrize(
    ("nic", "data_class"), [({}, 0), ({"transport": "rc"}, 3), ({"transport": "rc", "rc_data_dscp": 34}, 4)]
)
def test_in_a_lossless_fabric_ports_have_eight_classes_and_know_that_of_data(
    nic: dict[str, Any], data_class: int
) -> None:
    topology = Topology(nic=nic, switch={"lossless": "pfc"})
    plain = nic_config(dataclasses.replace(topology, switch={}), "h000").ports
    classed = nic_config(topology, "h000").ports
    for port, as_usual in zip(classed, plain, strict=True):
        assert isinstance(port, ClassEgressConfig)
        assert port.data_class == data_class
        assert not isinstance(as_usual, ClassEgressConfig)
        for item in dataclasses.fields(as_usual):
            assert getattr(port, item.name) == getattr(as_usual, item.name)


@pytest.mark.parametrize("nic", [{"rto": 1}, {"rto_ns": "soon"}, {"retry_linear": 99}])
def test_bad_settings_name_the_key(nic: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as refused:
        nic_config(dataclasses.replace(Topology.demo(), nic=nic), "h000")
    assert refused.value.where == f"nic.{next(iter(nic))}"


@pytest.mark.parametrize("name", ["p0-t0-0", "h008", "nonsense"])
def test_only_nics(name: str) -> None:
    with pytest.raises(ConfigError):
        nic_config(Topology.demo(), name)


@pytest.mark.parametrize(
    ("settings", "rates", "packets"),
    [
        ({"rc_recovery": "selective"}, {}, 256),
        ({"rc_recovery": "selective"}, {"h000~p0-t0-0": 10**9}, 256),
        ({"rc_recovery": "selective"}, {"p0-t0-0~p0-t1-0": 8 * 10**11}, 1024),
        ({"rc_recovery": "selective", "rc_window_bytes": 1 << 20}, {}, 1024),
        ({"rc_recovery": "selective", "rc_psns_max": 8}, {}, 8),
        ({"rc_recovery": "go_back_n"}, {}, 32_768),
        ({"rc_recovery": "selective", "transport": "mrc"}, {}, 32_768),
    ],
)
def test_the_table_of_selective_recovery_follows_its_window(
    settings: dict[str, Any], rates: dict[str, int], packets: int
) -> None:
    topology = Topology(nic={"transport": "rc", **settings}, switch={"forwarding": "ecmp"}, link_rates_bps=rates)
    assert nic_settings(topology).rc_psns_max == packets
