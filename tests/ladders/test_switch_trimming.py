"""Trimming as an operator tests it: one switch, overloaded on purpose, and both of its queues read afterwards."""

import pytest

from mrcfabric.wire.dscp import CE, dscp_of, ecn_of, mark_ce
from mrcfabric.wire.usid import CONTAINER_IN_PACKET, shift
from switchd.core.commands import SetEcn, SetTrim
from tests.support.switch_bench import AT_NS, DOWNLINK, UPLINK, SwitchBench, psn_of

pytestmark = pytest.mark.spec("MRC 1.0", "1.8")


# When.


def test_nothing_is_trimmed_that_the_queue_holds():
    bench = SwitchBench()
    count = bench.fill(UPLINK)
    bench.run()
    assert len(bench.out(UPLINK, bench.dscp.trimmable)) == count
    assert bench.row(UPLINK)["data"]["trimmed"] == 0
    assert bench.drops == {}


def test_the_packet_after_a_full_queue_is_trimmed_and_no_other():
    bench = SwitchBench()
    count = bench.fill(UPLINK)
    bench.offer(UPLINK)
    bench.run()
    (rest,) = bench.out(UPLINK, bench.dscp.trimmed)
    assert psn_of(rest) == count
    assert bench.drops == {}


@pytest.mark.spec("UEC", "3.6.17")
def test_the_queue_holds_one_bdp_and_one_and_a_half_on_the_last_hop():
    bench = SwitchBench()
    size = len(bench.data(UPLINK))
    assert bench.fits(UPLINK) == bench.bdp_bytes // size
    assert bench.fits(DOWNLINK) == int(1.5 * bench.bdp_bytes) // size


def test_what_has_begun_to_leave_makes_room():
    bench = SwitchBench()
    bench.fill(UPLINK)
    bench.offer(UPLINK, at_ns=AT_NS + 1)
    bench.run()
    assert bench.row(UPLINK)["data"]["trimmed"] == 0


# What is left.


@pytest.mark.parametrize("trim_bytes", [128, 192, 256, 1024])
def test_the_size_is_a_setting(trim_bytes):
    bench = SwitchBench(trim_bytes=trim_bytes)
    bench.fill(UPLINK)
    bench.offer(UPLINK)
    bench.run()
    assert [len(rest) for rest in bench.out(UPLINK, bench.dscp.trimmed)] == [trim_bytes]


@pytest.mark.parametrize("trim_bytes", [256, 257])
def test_a_packet_that_is_no_longer_than_the_size_is_only_marked_as_trimmed(trim_bytes):
    bench = SwitchBench(trim_bytes=trim_bytes)
    small = len(bench.data(UPLINK, payload=0))
    bench.fill(UPLINK)
    bench.offer(UPLINK, 1, payload=256 - small)
    # What found the queue full although it is small: 256 bytes do not fit any more.
    bench.offer(UPLINK, 20, payload=256 - small)
    bench.run()
    rests = bench.out(UPLINK, bench.dscp.trimmed)
    assert rests
    assert {len(rest) for rest in rests} == {256}


def test_nothing_inside_is_rewritten():
    """Lengths still say what the packet was, and the payload's beginning is there; only the outer header has changed
    as in any hop, and its code point says trimmed."""
    bench = SwitchBench()
    count = bench.fill(UPLINK)
    bench.offer(UPLINK)
    bench.run()
    (rest,) = bench.out(UPLINK, bench.dscp.trimmed)
    came = bench.offered[count]
    assert rest[40:] == came[40:256]
    assert rest[4:6] == came[4:6]  # the payload length of a whole packet
    assert (dscp_of(came), dscp_of(rest)) == (bench.dscp.trimmable, bench.dscp.trimmed)
    assert (ecn_of(rest), rest[7]) == (ecn_of(came), came[7] - 1)
    assert rest[CONTAINER_IN_PACKET] == shift(came[CONTAINER_IN_PACKET])


def test_a_mark_from_an_earlier_switch_is_still_there():
    bench = SwitchBench()
    bench.fill(UPLINK)
    packet = bench.data(UPLINK)
    mark_ce(packet)
    bench.take(packet)
    bench.run()
    (rest,) = bench.out(UPLINK, bench.dscp.trimmed)
    assert ecn_of(rest) == CE


# Under which code point.


def test_the_last_hop_says_so():
    bench = SwitchBench()
    for port in (UPLINK, DOWNLINK):
        bench.fill(port)
        bench.offer(port, 2)
    bench.run()
    assert len(bench.out(UPLINK, bench.dscp.trimmed)) == len(bench.out(DOWNLINK, bench.dscp.trimmed_lasthop)) == 2
    assert bench.out(UPLINK, bench.dscp.trimmed_lasthop) == bench.out(DOWNLINK, bench.dscp.trimmed) == []


def test_every_egress_port_has_a_code_point_of_its_own():
    bench = SwitchBench(port={1: {"trim_dscp": 12}})
    for port in (0, 1):
        bench.fill(port)
        bench.offer(port)
    bench.run()
    assert len(bench.out(0, bench.dscp.trimmed_lasthop)) == len(bench.out(1, bench.dscp.trimmed)) == 1


def test_the_code_point_can_be_changed_while_packets_are_under_way():
    bench = SwitchBench()
    bench.fill(DOWNLINK)
    bench.offer(DOWNLINK, at_ns=AT_NS)
    bench.command(SetTrim(1, on=True, port=DOWNLINK, dscp=bench.dscp.trimmed), AT_NS + 1)
    bench.offer(DOWNLINK, at_ns=AT_NS + 1)
    bench.run()
    assert len(bench.out(DOWNLINK, bench.dscp.trimmed_lasthop)) == len(bench.out(DOWNLINK, bench.dscp.trimmed)) == 1


# Which packets.


def test_retransmissions_are_trimmed_too():
    bench = SwitchBench()
    bench.fill(UPLINK)
    bench.offer(UPLINK, kind="retx")
    bench.run()
    assert len(bench.out(UPLINK, bench.dscp.trimmed)) == 1


def test_what_is_not_marked_as_trimmable_is_dropped():
    bench = SwitchBench()
    bench.fill(UPLINK)
    bench.offer(UPLINK, 2, kind="no_trim")
    bench.run()
    assert bench.out(UPLINK, bench.dscp.trimmed) == []
    assert bench.drops == {"data_full": 2}


def test_the_control_class_is_never_trimmed():
    bench = SwitchBench(control=0.001)  # one acknowledgement
    bench.acknowledge(UPLINK, 4)
    bench.run()
    assert [len(packet) for packet in bench.out(UPLINK)] == [len(bench.acknowledgement(UPLINK))]
    assert bench.drops == {"control_full": 3}
    assert bench.counters["trimmed"] == 0


def test_a_trimmed_packet_is_not_trimmed_again():
    """A second switch with no room left for it drops it."""
    bench = SwitchBench(trim_bytes=128, control=0.002, data=0.01, data_last_hop=0.01)
    packet = bytearray(bench.data(UPLINK)[:256])
    packet[0:2] = (6 << 12 | bench.dscp.trimmed << 6 | 2 << 4).to_bytes(2, "big")
    bench.take(packet)
    bench.run()
    assert bench.out(UPLINK) == []
    assert bench.drops == {"trimmed_full": 1}


def test_multicast_never_gets_as_far_as_a_queue():
    bench = SwitchBench()
    packet = bench.data(UPLINK)
    packet[24] = 0xFF
    bench.take(packet)
    bench.run()
    assert bench.drops == {"unknown_block": 1}


# Ahead of the data that it was cut from.


def test_the_sender_hears_of_it_before_the_queue_has_drained():
    bench = SwitchBench()
    count = bench.fill(UPLINK)
    bench.offer(UPLINK)
    bench.run()
    order = [psn_of(packet) for packet in bench.out(UPLINK)]
    assert order == [count, *range(count)]


# The books.


def test_trimmed_is_sent_plus_dropped_at_queue_port_and_switch():
    bench = SwitchBench(control=0.01, control_reserve=0.0)  # four trimmed packets of 256 bytes
    for port in (UPLINK, DOWNLINK):
        bench.fill(port)
        bench.offer(port, 10)
    bench.run()
    for port in (UPLINK, DOWNLINK):
        data, control = bench.row(port)["data"], bench.row(port)["control"]
        assert (data["trimmed"], control["trim_admitted"], control["trim_dropped"]) == (10, 4, 6)
        figures = bench.counters["ports"][port]
        assert (figures["trimmed"], figures["trim_admitted"], figures["trim_dropped"]) == (10, 4, 6)
        assert len(bench.out(port, bench.dscp.trimmed, bench.dscp.trimmed_lasthop)) == 4
    assert [bench.counters[name] for name in ("trimmed", "trim_admitted", "trim_dropped")] == [20, 8, 12]
    assert bench.drops == {"trim_full": 12}


def test_a_flood_of_trimmed_packets_leaves_room_for_acknowledgements():
    """Those cut here and those cut earlier fill three quarters of the queue; the rest is for what they compete with."""
    bench = SwitchBench(control=0.1)
    bench.fill(UPLINK)
    bench.offer(UPLINK, 60)
    for _ in range(5):
        packet = bytearray(bench.data(UPLINK)[:256])
        packet[0:2] = (6 << 12 | bench.dscp.trimmed << 6 | 2 << 4).to_bytes(2, "big")
        bench.take(packet)
    bench.acknowledge(UPLINK, 20)
    bench.run()
    assert bench.row(UPLINK)["control"]["trim_admitted"] == int(0.075 * bench.bdp_bytes) // 256
    assert len(bench.out(UPLINK, bench.dscp.control)) == 20
    assert bench.drops == {"trim_full": 60 - bench.counters["trim_admitted"], "trimmed_full": 5}


def test_a_packet_that_was_trimmed_is_no_drop_of_the_data_queue():
    bench = SwitchBench()
    bench.fill(UPLINK)
    bench.offer(UPLINK, 5)
    bench.run()
    assert bench.row(UPLINK)["data"]["dropped"] == 0
    assert bench.counters["received"] == bench.counters["packets"]


# Off.


def test_a_port_for_which_it_is_off_drops_and_its_neighbours_trim():
    bench = SwitchBench(port={5: {"trim": False}})
    for port in (4, 5):
        bench.fill(port)
        bench.offer(port, 3)
    bench.run()
    assert bench.row(5)["data"]["dropped"] == 3
    assert bench.row(4)["data"]["trimmed"] == 3
    assert bench.out(5, bench.dscp.trimmed) == []


def test_it_goes_off_and_on_at_its_instant():
    bench = SwitchBench()
    bench.fill(UPLINK)
    for number, on in enumerate((False, True, False)):
        bench.command(SetTrim(number, on=on, port=UPLINK), AT_NS + number)
        bench.offer(UPLINK, 3, at_ns=AT_NS + number)
    bench.run()
    # Of the second three one takes the place of the packet that began to leave.
    assert (bench.row(UPLINK)["data"]["dropped"], bench.row(UPLINK)["data"]["trimmed"]) == (6, 2)


def test_marking_does_not_care_whether_trimming_is_on():
    bench = SwitchBench()
    bench.command(SetTrim(1, on=False))
    bench.command(SetEcn(2, on=False))
    bench.fill(UPLINK)
    bench.offer(UPLINK, 3)
    bench.run()
    assert (bench.row(UPLINK)["data"]["marked"], bench.drops) == (0, {"data_full": 3})
