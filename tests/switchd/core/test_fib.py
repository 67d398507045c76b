"""The packed table, held against the container's own functions."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.egress import CONTROL, DATA, TRIMMED, Egress
from mrcfabric.egress_config import EgressConfig
from mrcfabric.rng import Rng
from mrcfabric.wire.dscp import Dscp, traffic_class
from mrcfabric.wire.usid import CONTAINER_IN_PACKET, build, shift
from switchd.core.fib import (
    CLASS_SHIFT,
    END_BYTES,
    LOOK,
    SHIFTED,
    SHIFTED_OFFSET,
    classes,
    doors,
    route_key,
    routes,
    usid_bytes,
    usid_counters,
)
from switchd.core.settings import SwitchConfig

USID = st.integers(1, 0xFFFF)
BLOCK = 0xFD00_0001
# One byte per nanosecond.
SLOW = EgressConfig(rate_bps=8_000_000_000, overhead_bytes=0)
CONFIG = SwitchConfig("s", usid=7, block=BLOCK, fib={8: 1, 9: 0}, ports=(SLOW,) * 2)


def ports() -> tuple[Egress, ...]:
    return tuple(Egress(config, port, Rng("test")) for port, config in enumerate(CONFIG.ports))


@pytest.mark.spec("RFC 9800", "4.1.1")
@given(st.integers(0, (1 << 32) - 1), st.lists(USID, min_size=2, max_size=6), st.integers(0, 255))
def test_a_look_and_a_shift_agree_with_the_container(block, usids, hop_limit):
    container = build(block, usids)
    packet = bytearray(b"\x60" + bytes(6) + bytes([hop_limit]) + bytes(16) + container + b"payload")
    _, seen, key, rest = LOOK.unpack_from(packet)
    assert (seen, key) == (hop_limit, route_key(block, usids[0], usids[1]))
    SHIFTED.pack_into(packet, SHIFTED_OFFSET, usid_bytes(usids[1]), rest, END_BYTES)
    assert packet[CONTAINER_IN_PACKET] == shift(container)
    assert packet[40:] == b"payload"


def test_a_route_names_port_and_next_usid():
    egress = ports()
    found = routes(CONFIG, doors(CONFIG, egress))
    assert found == {
        route_key(BLOCK, 7, 8): (egress[1], usid_bytes(8)),
        route_key(BLOCK, 7, 9): (egress[0], usid_bytes(9)),
    }


def test_entries_that_share_a_port_count_one_by_one():
    config = replace(CONFIG, fib={8: 1, 9: 1, 10: 0})
    egress = ports()
    by_usid = doors(config, egress)
    for usid, sizes in ((8, (100, 200)), (9, (50,)), (10, (70,))):
        for size in sizes:
            by_usid[usid].offer(5, bytearray(size), False, [])
    assert by_usid[9].run(5, []) == 105
    assert usid_counters(by_usid) == {
        8: {"packets": 2, "bytes": 300},
        9: {"packets": 1, "bytes": 50},
        10: {"packets": 1, "bytes": 70},
    }
    assert (egress[1].offered_packets, egress[1].offered_bytes) == (3, 350)


def test_what_a_port_refused_has_followed_its_entry_too():
    config = replace(CONFIG, ports=(replace(SLOW, data_bytes_max=500, control_bytes_max=200, trim=True),) * 2)
    by_usid = doors(config, tuple(Egress(port, number, Rng("test")) for number, port in enumerate(config.ports)))
    trimmable = bytearray((6 << 12 | 4 << 6).to_bytes(2, "big") + bytes(398))
    for _ in range(5):
        by_usid[8].offer(5, bytearray(trimmable), False, [])
    by_usid[8].offer(5, bytearray(300), True, [])
    assert usid_counters(by_usid)[8] == {"packets": 6, "bytes": 5 * 400 + 300}


def test_classes_are_those_of_the_code_points_and_of_ipv6_only():
    found = classes(CONFIG)
    control, trimmed = Dscp().control_table(), Dscp().trimmed_table()
    assert len(found) == 64
    for dscp in range(64):
        for ecn in range(4):
            head = 6 << 12 | traffic_class(dscp, ecn) << 4 | 0xF
            assert found[head >> CLASS_SHIFT] == (TRIMMED if trimmed[dscp] else CONTROL if control[dscp] else DATA)
    assert (4 << 12) >> CLASS_SHIFT not in found
