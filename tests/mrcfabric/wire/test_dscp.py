"""Traffic classes: roles, tables and the bits on a packet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from mrcfabric.wire import dscp as dscp_module
from mrcfabric.wire.dscp import CE, ECT_0, Dscp, traffic_class, traffic_class_of_dscp
from mrcfabric.wire.ipv6 import Ipv6

codes = st.integers(0, 63)
ecns = st.integers(0, 3)


@pytest.mark.spec("MRC 1.0", "1.8")
def test_each_role_has_its_class() -> None:
    roles = Dscp()
    assert [code for code in range(64) if roles.control_table()[code]] == [12, 16, 46]
    assert [code for code in range(64) if roles.trimmable_table()[code]] == [4, 8]
    assert [code for code in range(64) if roles.trimmed_table()[code]] == [12, 16]
    assert [roles.role(code) for code in (4, 0, 8, 12, 16, 46, 5)] == [
        "trimmable",
        "no_trim",
        "trimmable_retx",
        "trimmed",
        "trimmed_lasthop",
        "control",
        "other",
    ]


def test_a_code_point_says_which_of_eight_classes() -> None:
    table = traffic_class_of_dscp(Dscp())
    assert [table[code] for code in (26, 48, 0, 4, 8, 56, 63)] == [3, 6, 0, 0, 1, 7, 7]
    assert {table[code] for code in (12, 16, 46)} == {6}
    assert all(table[code] == code >> 3 for code in set(range(64)) - {12, 16, 46})
    moved = traffic_class_of_dscp(Dscp(control=26, trimmed=3, trimmed_lasthop=63))
    assert (len(moved), moved[26], moved[3], moved[63], moved[12], moved[46]) == (64, 6, 6, 6, 1, 5)


@pytest.mark.parametrize("bad", [{"control": 64}, {"control": -1}, {"trimmed": 4}, {"no_trim": True}])
def test_values_that_make_no_sense_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=r"dscp\."):
        Dscp(**bad)


@pytest.mark.spec("RFC 8200", "3")
@given(before=codes, ecn=ecns, after=codes, label=st.integers(0, 0xFFFFF))
def test_the_bits_on_a_packet(before: int, ecn: int, after: int, label: int) -> None:
    packet = bytearray(Ipv6(traffic_class=traffic_class(before, ecn), flow_label=label).emit())
    assert dscp_module.traffic_class_of(packet) == traffic_class(before, ecn)
    assert (dscp_module.dscp_of(packet), dscp_module.ecn_of(packet)) == (before, ecn)
    dscp_module.set_dscp(packet, after)
    assert Ipv6.parse(packet) == Ipv6(traffic_class=traffic_class(after, ecn), flow_label=label)
    dscp_module.mark_ce(packet)
    assert Ipv6.parse(packet) == Ipv6(traffic_class=traffic_class(after, CE), flow_label=label)
    dscp_module.set_traffic_class(packet, traffic_class(before, ECT_0))
    assert Ipv6.parse(packet) == Ipv6(traffic_class=traffic_class(before, ECT_0), flow_label=label)
