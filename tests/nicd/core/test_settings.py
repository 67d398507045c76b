"""Defaults, relations and mistakes of the NIC's knobs."""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.egress_config import EgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.paths import PathTable
from mrcfabric.topology import Topology
from nicd.core.settings import NicConfig, NicSettings


def test_times_follow_the_base_rtt() -> None:
    settings = NicSettings(base_rtt_ns=10_000)
    assert (settings.rto_ns, settings.reorder_ns, settings.probe_period_ns) == (80_000, 50_000, 50_000)
    assert replace(settings, rto_ns=99_000).rto_ns == 99_000


def test_a_loss_is_judged_later_than_any_queue_below_its_trim_threshold_can_explain() -> None:
    """Queues of 1.0, 1.0 and 1.5 plane BDP on the way make 3.5 base RTT; the SACK may wait a little too."""
    settings = NicSettings(base_rtt_ns=10_000)
    assert settings.reorder_ns > 35_000 + settings.sack_delay_ns
    assert settings.rto_ns > settings.base_rtt_ns + 35_000 + settings.sack_delay_ns


@pytest.mark.parametrize(
    ("knobs", "where"),
    [
        ({"base_rtt_ns": 0}, "nic.base_rtt_ns"),
        ({"mtu_bytes": 4098}, "nic.mtu_bytes"),
        ({"mtu_bytes": 100}, "nic.mtu_bytes"),
        ({"rto_ns": 10_000}, "nic"),
        ({"rto_ns": -1}, "nic.rto_ns"),
        ({"reorder_ns": 9_000}, "nic.base_rtt_ns"),
        ({"ev_min_active": 200}, "nic.ev_min_active"),
        ({"mpr_units": 256}, "nic.mpr_units"),
        ({"max_wimm": 8}, "nic.max_wimm"),
        ({"retry_linear": 8}, "nic.retry_linear"),
        ({"trim_nack": 1}, "nic.trim_nack"),
        ({"sack_bytes": 1.5}, "nic.sack_bytes"),
        ({"sack_delay_ns": 40_000}, "nic.sack_delay_ns"),
        ({"transport": "tcp"}, "nic.transport"),
        ({"rc_recovery": "go_back_1"}, "nic.rc_recovery"),
        ({"rc_timeout": 32}, "nic.rc_timeout"),
        ({"rc_retry_cnt": 8}, "nic.rc_retry_cnt"),
        ({"rc_psns_max": 7}, "nic.rc_psns_max"),
        ({"rc_psns_max": (1 << 22) + 1}, "nic.rc_psns_max"),
        ({"rc_ack_dscp": 64}, "nic.rc_ack_dscp"),
        ({"rc_window_bytes": -1}, "nic.rc_window_bytes"),
        ({"rc_path": "usid"}, "nic.rc_path"),
        ({"cc": "timely"}, "nic.cc"),
        ({"rp_profile": "400g"}, "nic.rp_profile"),
        ({"rp_dce_tcp_g_shift": 17}, "nic.rp_dce_tcp_g_shift"),
        ({"np_min_time_between_cnps_ns": -1}, "nic.np_min_time_between_cnps_ns"),
    ],
)
def test_a_wrong_knob_is_named(knobs: dict[str, Any], where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        NicSettings(**knobs)
    assert caught.value.where.startswith(where)


@pytest.mark.parametrize(
    ("knobs", "told"),
    [
        (
            {"rto_ns": 100},
            r"nic\.tail_probe_ns: \d+ is not below nic\.rto_ns, which is 100 \(.*, or raise nic\.rto_ns\)",
        ),
        ({"ev_min_active": 5000}, r"nic\.ev_min_active: 5000 is above evs_per_qp, which is \d+ \(lower "),
        ({"bins_max": 0}, r"nic\.bins_max: 0 is out of range \(at least 1\)"),
    ],
)
def test_a_mistake_names_both_settings_and_the_way_out(knobs: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=f"^{told}"):
        NicSettings(**knobs)


def config(**changes: Any) -> NicConfig:
    values: dict[str, Any] = {
        "name": "h000",
        "index": 0,
        "address": bytes(16),
        "ports": (EgressConfig(),) * 8,
        "paths": PathTable(Topology.demo(), 0),
    }
    return NicConfig(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"ports": ()}, "h000.ports"),
        ({"address": bytes(4)}, "h000.address"),
        ({"ports": (EgressConfig(),) * 3}, "nic.evs_active"),
        ({"settings": NicSettings(evs_reserve=12)}, "nic.evs_reserve"),
    ],
)
def test_a_nic_that_cannot_be_is_refused(changes: dict[str, Any], where: str) -> None:
    assert config().name == "h000"
    with pytest.raises(ConfigError) as caught:
        config(**changes)
    assert caught.value.where == where
