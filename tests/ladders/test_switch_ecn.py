"""ECN as an operator tests it: marks follow the queue a packet leaves behind, in shares of the plane's BDP."""

from dataclasses import replace

import pytest

from mrcfabric.topology import Topology
from mrcfabric.wire.dscp import ECT_0, ecn_of
from switchd.core.commands import SetEcn
from tests.support.switch_bench import AT_NS, DOWNLINK, UPLINK, SwitchBench, marks_of

pytestmark = pytest.mark.spec("MRC 1.0", "5")


def left_behind(bench: SwitchBench, count: int) -> list[float]:
    """What each of so many packets, there at once, leaves waiting, as a share of the BDP."""
    size = len(bench.offered[0])
    return [(count - 1 - number) * size / bench.bdp_bytes for number in range(count)]


# Where the thresholds are.


@pytest.mark.spec("UEC", "3.6.17")
def test_nothing_up_to_a_fifth_of_the_bdp_and_everything_from_four_fifths():
    bench = SwitchBench()
    count = bench.fill(UPLINK)
    bench.run()
    marks = marks_of(bench.out(UPLINK))
    left = left_behind(bench, count)
    assert all(mark for mark, share in zip(marks, left, strict=True) if share >= 0.8)
    assert not any(mark for mark, share in zip(marks, left, strict=True) if share <= 0.2)
    assert bench.row(UPLINK)["data"]["marked"] == sum(marks)


@pytest.mark.parametrize(("rate_bps", "link_delay_ns"), [(25 * 10**9, 4_000), (400 * 10**9, 1_000)])
def test_they_follow_the_plane(rate_bps, link_delay_ns):
    topology = replace(Topology.demo(), rate_bps=rate_bps, link_delay_ns=link_delay_ns)
    assert topology.plane_bdp_bytes != Topology.demo().plane_bdp_bytes
    row = SwitchBench(topology=topology).row(UPLINK)
    assert row["ecn_min_bytes"] == int(0.2 * topology.plane_bdp_bytes)
    assert row["ecn_max_bytes"] == int(0.8 * topology.plane_bdp_bytes)


def test_a_step_is_both_thresholds_in_one_place():
    bench = SwitchBench(ecn_min=0.5, ecn_max=0.5)
    count = bench.fill(UPLINK)
    bench.run()
    assert marks_of(bench.out(UPLINK)) == [share > 0.5 for share in left_behind(bench, count)]


def test_between_them_the_probability_rises_in_a_straight_line():
    marked: dict[int, list[bool]] = {}
    for seed in range(40):
        bench = SwitchBench(seed=f"bench {seed}")
        count = bench.fill(UPLINK)
        bench.run()
        for share, mark in zip(left_behind(bench, count), marks_of(bench.out(UPLINK)), strict=True):
            # Five classes between 0.2 and 0.8.
            if 0.2 < share < 0.8:
                marked.setdefault(int((share - 0.2) / 0.12), []).append(mark)
    for step, marks in marked.items():
        assert abs(sum(marks) / len(marks) - (step + 0.5) / 5) < 0.15


# When it is decided.


@pytest.mark.spec("UEC", "CMS")
def test_the_queue_at_departure_counts_and_not_the_one_at_arrival():
    """The first packet found an empty queue and is marked, the last one found a long one and is not."""
    bench = SwitchBench(ecn_min=0.5, ecn_max=0.5)
    bench.offer(UPLINK)
    count = bench.fits(UPLINK) - 1
    bench.offer(UPLINK, count)
    bench.run()
    marks = marks_of(bench.out(UPLINK))
    assert (marks[0], marks[-1]) == (True, False)


# Where and whom.


def test_the_last_hop_never_marks():
    """So that a mark always means the path and never the receiver."""
    bench = SwitchBench()
    bench.fill(DOWNLINK)
    bench.run()
    assert not any(marks_of(bench.out(DOWNLINK)))


@pytest.mark.spec("RFC 3168", "5")
def test_who_does_not_speak_ecn_is_never_marked():
    bench = SwitchBench()
    bench.fill(UPLINK, capable=False)
    bench.run()
    assert {ecn_of(packet) for packet in bench.out(UPLINK)} == {0}


@pytest.mark.spec("MRC 1.0", "1.8")
def test_trimmed_and_control_packets_are_never_marked():
    bench = SwitchBench(ecn_min=0.0, ecn_max=0.001)
    bench.fill(UPLINK)
    bench.offer(UPLINK, 8)
    bench.acknowledge(UPLINK, 8)
    bench.run()
    trimmed = bench.out(UPLINK, bench.dscp.trimmed)
    assert [ecn_of(packet) for packet in trimmed] == [ECT_0] * 8
    assert not any(marks_of(bench.out(UPLINK, bench.dscp.control)))
    data = bench.out(UPLINK, bench.dscp.trimmable)
    assert marks_of(data) == [True] * (len(data) - 1) + [False]


# The toggle.


def test_one_port_is_off_and_its_neighbour_marks():
    bench = SwitchBench(port={4: {"ecn": False}})
    for port in (4, 5):
        bench.fill(port)
    bench.run()
    assert (bench.row(4)["data"]["marked"], bench.row(5)["data"]["marked"] > 0) == (0, True)


def test_a_down_link_marks_when_it_is_told_to():
    bench = SwitchBench(port={DOWNLINK: {"ecn": True}})
    bench.fill(DOWNLINK)
    bench.run()
    assert any(marks_of(bench.out(DOWNLINK)))


def test_it_goes_off_and_on_with_the_departures_of_that_instant():
    bench = SwitchBench(ecn_min=0.0, ecn_max=0.001)
    size = len(bench.data(UPLINK)) + 38
    step_ns = -(-size * 8 // 100)
    bench.offer(UPLINK, 9)
    bench.command(SetEcn(1, on=False, port=UPLINK), AT_NS + 3 * step_ns)
    bench.command(SetEcn(2, on=True, port=UPLINK), AT_NS + 5 * step_ns)
    bench.run()
    assert marks_of(bench.out(UPLINK)) == [True] * 3 + [False] * 2 + [True] * 3 + [False]
