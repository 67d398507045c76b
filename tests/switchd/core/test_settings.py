"""What a switch is made from, and which mistakes are named."""

from dataclasses import replace

import pytest

from mrcfabric.class_egress_config import ClassEgressConfig
from mrcfabric.egress_config import EgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.entropy import EvOrder
from switchd.core.buffer import BufferConfig
from switchd.core.forwarding.ecmp import EcmpConfig
from switchd.core.settings import LosslessConfig, SwitchConfig, SwitchSettings

CONFIG = SwitchConfig("p0-t1-0", usid=2, block=0xFD000000, fib={1: 0, 3: 1}, ports=(EgressConfig(),) * 2)

LOSSLESS = LosslessConfig(BufferConfig(1 << 20, (0, 0), (3,), 4_000), 100)


def egress(settings: SwitchSettings, towards) -> EgressConfig:
    return settings.egress(
        towards, 100_000, rate_bps=100_000_000_000, delay_ns=1_000, dscp=Dscp(trimmed=13, trimmed_lasthop=17),
        ev_order=EvOrder.PORT_HIGH, seed="s",
    )  # fmt: skip


@pytest.mark.spec("MRC 1.0", "5")
@pytest.mark.parametrize("towards", ["t0", "t1"])
def test_shares_become_bytes(towards):
    config = egress(SwitchSettings(), towards)
    assert (config.ecn, config.ecn_min_bytes, config.ecn_max_bytes) == (True, 20_000, 80_000)
    assert (config.data_bytes_max, config.control_bytes_max) == (100_000, 100_000)
    assert (config.trim, config.trim_bytes, config.trim_dscp, config.trimmable_dscps) == (True, 256, 13, (4, 8))
    assert (config.rate_bps, config.delay_ns, config.seed) == (100_000_000_000, 1_000, "s")


@pytest.mark.parametrize("towards", ["nic", "t1"])
def test_thresholds_may_be_given_in_bytes(towards):
    config = egress(SwitchSettings(ecn_min_bytes=400_000, ecn_max_bytes=1_600_000), towards)
    assert (config.ecn_min_bytes, config.ecn_max_bytes) == (400_000, 1_600_000)
    assert egress(SwitchSettings(ecn_max_bytes=30_000), towards).ecn_min_bytes == 20_000
    of_both = r"^switch\.ecn_min_bytes: 90000 is above switch\.ecn_max, which is 0\.8 \(80000 of 100000 bytes\) \(lower"
    with pytest.raises(ConfigError, match=of_both):
        egress(SwitchSettings(ecn_min_bytes=90_000), towards)


@pytest.mark.spec("MRC 1.0", "5")
def test_the_last_hop_does_not_mark_and_trims_later_under_its_own_code_point():
    config = egress(SwitchSettings(), "nic")
    assert (config.ecn, config.data_bytes_max, config.trim, config.trim_dscp) == (False, 150_000, True, 17)


def test_every_direction_has_its_toggles():
    settings = SwitchSettings(ecn=False, trim=False, ecn_last_hop=True, trim_last_hop=False)
    assert (egress(settings, "t1").ecn, egress(settings, "t1").trim) == (False, False)
    assert (egress(settings, "nic").ecn, egress(settings, "nic").trim) == (True, False)


@pytest.mark.parametrize(
    "wrong",
    [
        {"data": 0},
        {"control": -1.0},
        {"data_last_hop": 101},
        {"ecn_max": float("nan")},
        {"ecn_min": 0.9},
        {"ecn_max_ppm": 1_000_001},
        {"trim_bytes": 127},
        {"trim_bytes": 256.0},
        {"control_share": 0.0},
        {"control_share": 1.01},
        {"control_burst_bytes": -1},
        {"control_reserve": 1.0},
        {"ecn": 1},
        {"lossless": "credit"},
        {"lossless": True},
        {"pfc_classes": "8"},
        {"pfc_classes": "3,3"},
        {"pfc_classes": ""},
        {"pfc_classes": "3,,4"},
        {"pfc_classes": 3},
        {"class_strict": ""},
        {"class_strict": "8"},
        {"class_strict": "6,6"},
        {"class_strict": "None"},
        {"class_weights": "1"},
        {"class_weights": "1,1,1,0,1,1,1,1"},
        {"class_weights": "1,1,1,1001,1,1,1,1"},
        {"class_weights": "1,1,1,-1,1,1,1,1"},
        {"class_weights": "1,1,1,1.5,1,1,1,1"},
        {"class_weights": "1,1,1,1,1,1,1,1,1"},
        {"pfc_classes": "7", "lossless": "pfc"},
        {"pfc_classes": "3,7", "lossless": "pfc"},
        {"class_strict": "3", "lossless": "pfc"},
        {"class_strict": "7,6 ", "lossless": "pfc", "pfc_classes": "3,7"},
        {"class_strict": "5,7", "lossless": "pfc", "pfc_classes": "5"},
        {"buffer_bytes": 0},
        {"pfc_threshold": "none"},
        {"pfc_xoff_bytes": 0},
        {"pfc_alpha_shift": 17},
        {"pfc_reserved_bytes": -1},
        {"pfc_xon_offset_bytes": -1},
        {"pfc_headroom": "plenty"},
        {"pfc_headroom": "-1"},
        {"pfc_cable_metres": -1},
        {"pfc_quanta": 65_536},
        {"pfc_quanta": 0},
        {"pfc_watchdog_ns": -1},
        {"pfc_watchdog_restore_ns": -1},
        {"ecn_min_bytes": -1},
        {"ecn_max_bytes": 1.5},
        {"forwarding": "hash"},
        {"forwarding": 1},
        {"ecmp_seed": "none"},
        {"ecmp_hash": "md5"},
        {"ecmp_resilient": "yes"},
        {"ecmp_failover_ns": -1},
        {"ecmp_failover_ns": 10_000_000_001},
        {"data": "1.0"},
        {"data": True},
    ],
)
def test_a_wrong_setting_is_named(wrong):
    with pytest.raises(ConfigError, match=r"^switch\." + next(iter(wrong))):
        SwitchSettings(**wrong)


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"usid": 0}, "usid"),
        ({"usid": 1 << 16}, "usid"),
        ({"block": 1 << 32}, "block"),
        ({"block": 0xFF02_0000}, "block"),
        ({"adjacency": {5: 9}}, "adjacency"),
        ({"ecmp": EcmpConfig(4, 0, (0, 2), 2)}, "ecmp"),
        ({"lossless": LOSSLESS}, "ports"),
        ({"ports": (ClassEgressConfig(),) * 2}, "ports"),
        ({"ports": (ClassEgressConfig(), EgressConfig())}, "ports"),
        ({"ports": (ClassEgressConfig(),) * 3, "lossless": LOSSLESS}, "lossless"),
        ({"adjacency": {1: 0}}, "adjacency"),
        ({"fib": {0: 0}}, "fib"),
        ({"fib": {2: 0}}, "fib"),
        ({"fib": {1: 2}}, "fib"),
        ({"towards": ("t0",)}, "towards"),
    ],
)
def test_a_wrong_configuration_is_named(wrong, where):
    with pytest.raises(ConfigError, match=f"^p0-t1-0: {where}"):
        replace(CONFIG, **wrong)
