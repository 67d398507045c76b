"""Forwarding as an operator tests it: uSIDs shift, segments follow, dead links are silent, and the table stays."""

from collections import Counter

import pytest

from mrcfabric.impairment import Impairment
from mrcfabric.naming import adjacency_usid
from mrcfabric.wire.layout import HOP_LIMIT_OFFSET, NEXT_HEADER_IPV6, NEXT_HEADER_ROUTING
from mrcfabric.wire.packet import dissect
from mrcfabric.wire.usid import CONTAINER_IN_PACKET, build
from switchd.core.commands import SetImpairment
from tests.support.switch_bench import DOWNLINK, UPLINK, SwitchBench

pytestmark = pytest.mark.spec("MRC 1.0", "5")


def with_segment(packet: bytearray, *usids: int, block: int, left: int = 1) -> bytearray:
    """The packet with a routing header of one segment behind its outer header."""
    srh = bytes([NEXT_HEADER_IPV6, 2, 4, left, 0, 0, 0, 0]) + build(block, usids)
    length = int.from_bytes(packet[4:6], "big") + len(srh)
    head = packet[:4] + length.to_bytes(2, "big") + bytes([NEXT_HEADER_ROUTING]) + packet[7:40]
    return bytearray(head + srh + packet[40:])


def towards(bench: SwitchBench, port: int) -> int:
    """The uSID that leads to a port."""
    return next(usid for usid, found in bench.config.fib.items() if found == port)


def test_each_next_usid_has_its_port_and_is_counted():
    bench = SwitchBench()
    for port in range(8):
        bench.offer(port, port + 1)
    bench.run()
    assert [len(bench.out(port)) for port in range(8)] == list(range(1, 9))
    size = len(bench.data(0))
    expected = {towards(bench, port): {"packets": port + 1, "bytes": (port + 1) * size} for port in range(8)}
    assert bench.counters["usids"] == expected


def test_a_dead_link_is_silence_and_nobody_takes_its_place():
    bench = SwitchBench()
    bench.command(SetImpairment(1, UPLINK, Impairment(up=False)))
    bench.offer(UPLINK, 5, at_ns=11)
    bench.run()
    assert bench.sent == []
    assert bench.drops == {"link_down": 5}
    assert bench.counters["usids"][towards(bench, UPLINK)]["packets"] == 5


def test_what_is_not_for_this_switch_is_dropped_by_name():
    bench = SwitchBench()
    own, block = bench.config.usid, bench.config.block
    for where, usids in ((block + 1, (own, 0x8002)), (block, (0x4444, 2)), (block, (own, 0x7777)), (block, (own,))):
        packet = bench.data(UPLINK)
        packet[CONTAINER_IN_PACKET] = build(where, usids)
        bench.take(packet)
    old = bench.data(UPLINK)
    old[HOP_LIMIT_OFFSET] = 1
    bench.take(old)
    bench.run()
    assert bench.sent == []
    reasons = ("unknown_block", "not_own_usid", "unknown_usid", "no_usid_left", "hop_limit")
    assert bench.drops == dict.fromkeys(reasons, 1)


@pytest.mark.spec("RFC 8754", "4.3.1.1")
def test_a_used_up_container_goes_on_with_the_next_segment():
    bench = SwitchBench()
    packet = with_segment(bench.data(UPLINK), towards(bench, DOWNLINK), 0x7002, block=bench.config.block)
    packet[CONTAINER_IN_PACKET] = build(bench.config.block, (bench.config.usid,))
    bench.take(packet)
    bench.run()
    (left,) = bench.out(DOWNLINK)
    assert left[CONTAINER_IN_PACKET] == build(bench.config.block, (towards(bench, DOWNLINK), 0x7002))
    assert (left[43], left[HOP_LIMIT_OFFSET]) == (0, 63)
    assert dissect(left)[0].icrc_good


@pytest.mark.spec("RFC 8754", "4.3.1.1")
def test_a_routing_header_waits_until_the_container_is_used_up():
    bench = SwitchBench()
    bench.take(with_segment(bench.data(UPLINK), 0x7001, block=bench.config.block))
    bench.run()
    (left,) = bench.out(UPLINK)
    assert left[43] == 1
    assert bench.drops == {}


@pytest.mark.spec("RFC 8986", "4.1")
def test_a_routing_header_that_makes_no_sense_is_a_named_drop():
    bench = SwitchBench()
    for left in (0, 2):
        packet = with_segment(bench.data(UPLINK), towards(bench, DOWNLINK), block=bench.config.block, left=left)
        packet[CONTAINER_IN_PACKET] = build(bench.config.block, (bench.config.usid,))
        bench.take(packet)
    bench.run()
    assert bench.drops == {"no_usid_left": 1, "bad_srh": 1}


@pytest.mark.spec("RFC 9800", "4.1.2")
def test_an_adjacency_names_the_port_whoever_is_next():
    bench = SwitchBench(adjacency=True)
    packet = bench.data(UPLINK)
    packet[CONTAINER_IN_PACKET] = build(bench.config.block, (bench.config.usid, adjacency_usid(6), 0x9999))
    bench.take(packet)
    bench.run()
    (left,) = bench.out(6)
    assert left[CONTAINER_IN_PACKET] == build(bench.config.block, (0x9999,))
    counted = {usid: entry["packets"] for usid, entry in bench.counters["usids"].items() if entry["packets"]}
    assert counted == {adjacency_usid(6): 1}


def test_nothing_that_happens_changes_the_table():
    bench = SwitchBench()
    before = dict(bench.config.fib)
    for port in range(8):
        bench.command(SetImpairment(port, port, Impairment(up=False)))
        bench.offer(port, 3, at_ns=20)
    bench.run()
    assert dict(bench.config.fib) == before
    assert {usid: door.port for usid, door in bench.switch.doors.items()} == before
    assert Counter(before.values()) == Counter(range(8))
