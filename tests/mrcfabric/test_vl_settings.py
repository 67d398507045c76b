"""Knobs of VLs: texts and what they mean, what is refused, and the ports that come of them."""

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.vl_settings import CreditKnobs, credit_fault, credited_port, frame_blocks, life_ns, sl2vl, tables


def test_service_levels() -> None:
    assert sl2vl(CreditKnobs(vls=3)) == (0, 1, 2) * 5 + (0,)
    assert sl2vl(CreditKnobs(vl_of_sl="1" + ",0" * 14 + ", 15")) == (1, *(0,) * 14, 15)


def test_arbitration_tables() -> None:
    assert tables(CreditKnobs(vls=2)) == ((), ((0, 64), (1, 64)))
    assert tables(CreditKnobs(vls=3, vl_high="2:255")) == (((2, 255),), ((0, 64), (1, 64)))
    assert tables(CreditKnobs(vls=2, vl_high="0:4", vl_low="1:3, 0:2")) == (((0, 4),), ((1, 3), (0, 2)))
    assert tables(CreditKnobs(vls=1, vl_high="0:1", vl_low="none")) == (((0, 1),), ())


@pytest.mark.parametrize(
    ("knobs", "name"),
    [
        ({"vl_of_sl": "1,2"}, "vl_of_sl"),
        ({"vl_of_sl": "2" + ",0" * 15}, "vl_of_sl"),
        ({"vl_of_sl": "x" + ",0" * 15}, "vl_of_sl"),
        ({"vl_high": "2:1"}, "vl_high"),
        ({"vl_high": "0:256"}, "vl_high"),
        ({"vl_high": "0"}, "vl_high"),
        ({"vl_low": "0:1"}, "vl_low"),
        ({"vl_low": "0:1,1:0"}, "vl_low"),
        ({"vl_blocks": 100, "credit_update_blocks": 101}, "credit_update_blocks"),
    ],
)
def test_what_will_not_do(knobs: dict[str, str | int], name: str) -> None:
    found = credit_fault(CreditKnobs(**knobs))  # type: ignore[arg-type]
    assert found is not None
    assert found.where == f"switch.{name}"
    assert credit_fault(CreditKnobs()) is None


def test_a_port_of_a_switch_and_one_of_a_nic() -> None:
    knobs = CreditKnobs(vls=2, vl_blocks=100, vl_stall_count=3)
    port = credited_port(knobs, rate_bps=10**11, delay_ns=500, seed="x", mtu_bytes=4_096, head_life=18)
    assert (port.blocks, port.head_life_ns, port.stall_count, port.frame_blocks) == ((100, 100), 4_096 << 18, 3, 65)
    assert credited_port(knobs, rate_bps=10**11, delay_ns=500, seed="x", mtu_bytes=4_096, sl=3).data_vl == 1
    assert credited_port(knobs, rate_bps=10**11, delay_ns=500, seed="x", mtu_bytes=4_096).head_life_ns == 0
    with pytest.raises(ConfigError, match=r"switch.vl_blocks: 64 hold no packet of topology.mtu_bytes, which is 4096"):
        credited_port(CreditKnobs(vl_blocks=64), rate_bps=10**11, delay_ns=500, seed="x", mtu_bytes=4_096)


def test_lives_are_those_of_opensm() -> None:
    assert life_ns(0x12) == 1_073_741_824
    assert life_ns(0x10) == 268_435_456
    assert life_ns(20) == life_ns(31) == 0
    assert frame_blocks(4_096) == 65
