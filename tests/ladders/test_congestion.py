"""Congestion control seen from the wire: what moves the window, and what moves the path only."""

from itertools import pairwise

import pytest

from mrcfabric.units import Buffer
from mrcfabric.wire.dscp import ECT_0, ecn_of, mark_ce
from mrcfabric.wire.layout import SACK
from tests.support.ladder import Ladder
from tests.support.wire import AB, BA, DATA

SOME = 20_480
"""A window with room above and below: twenty packets."""


def cuts(ladder: Ladder) -> dict[str, int]:
    return {cause: count for cause, count in ladder.a.counters["cwnd_cuts"].items() if count}


@pytest.mark.spec("MRC 1.0", "4")
def test_marks_with_little_delay_change_paths_and_leave_the_window() -> None:
    ladder = Ladder(cwnd_bytes=SOME)
    ladder.wire.mark(direction=AB, opcode=DATA)
    ladder.write(400)
    ladder.run_for(12)
    assert ladder.a.completed == []
    assert ladder.a.count("ecn_echoed") > 100
    assert ladder.a.count("ev_skips") > 100
    assert (ladder.a.qp["cwnd_bytes"], cuts(ladder)) == (SOME, {})
    assert ladder.run()
    ladder.verify()


@pytest.mark.spec("MRC 1.0", "4")
def test_marks_with_much_delay_shrink_it_once_per_base_rtt() -> None:
    ladder = Ladder(cwnd_bytes=SOME, delay_avg_samples=1)
    ladder.wire.rule("marked late", lambda seen, wire: _late(seen.packet, 2 * ladder.base_rtt_ns), direction=AB)
    ladder.write(100)
    begun_ns = ladder.simulator.now_ns
    ladder.run_for(9)
    assert ladder.a.qp["cwnd_bytes"] < SOME // 2
    assert 1 < cuts(ladder)["delay"] <= 1 + (ladder.simulator.now_ns - begun_ns) // ladder.base_rtt_ns


def _late(packet: Buffer, by_ns: int) -> list[tuple[int, bytearray]]:
    late = bytearray(packet)
    if ecn_of(late) == ECT_0:
        mark_ce(late)
    return [(by_ns, late)]


@pytest.mark.spec("MRC 1.0", "4")
def test_delay_without_marks_grows_fairly_where_it_is_told_to() -> None:
    ladder = Ladder(cwnd_bytes=SOME, late_is_congestion=False)
    ladder.wire.delay(2 * ladder.base_rtt_ns, direction=AB, opcode=DATA)
    ladder.write(200)
    assert ladder.run()
    ladder.verify()
    assert cuts(ladder) == {}
    assert ladder.a.qp["cwnd_bytes"] > SOME


@pytest.mark.spec("MRC 1.0", "4")
def test_delay_without_marks_is_the_receivers_and_the_window_gives_way() -> None:
    ladder = Ladder(cwnd_bytes=SOME)
    ladder.wire.delay(3 * ladder.base_rtt_ns // 2, direction=AB, opcode=DATA)
    ladder.write(200)
    assert ladder.run()
    ladder.verify()
    assert cuts(ladder).keys() == {"delay"}
    assert ladder.a.qp["cwnd_bytes"] < SOME


@pytest.mark.spec("MRC 1.0", "4")
def test_every_trim_takes_its_packet_off_the_window() -> None:
    ladder = Ladder(cwnd_bytes=SOME)
    trims = ladder.wire.trim(direction=AB, opcode=DATA, first=5, times=4)
    ladder.write(40)
    ladder.run_for(1.2)
    assert trims.hits == 4
    assert cuts(ladder) == {"trim": 4}
    assert ladder.a.qp["cwnd_bytes"] < SOME
    assert ladder.run()
    ladder.verify()
    assert ladder.a.retransmits == {"trim": 4}


@pytest.mark.spec("MRC 1.0", "4")
def test_a_flood_of_trims_is_answered_by_what_arrives() -> None:
    """Nine packets of ten are trimmed: their sizes, then what arrives, and no cut for those already judged."""
    ladder = Ladder(cwnd_bytes_min=1024)
    turn = iter(range(1 << 30))
    ladder.wire.trim(direction=AB, opcode=DATA, where=lambda seen: next(turn) % 10 > 0, times=400)
    ladder.write(300)
    ladder.run_for(8)
    row = ladder.a.qp
    assert row["quick_adapts"] == cuts(ladder)["quick_adapt"] >= 2
    assert ladder.mtu <= row["cwnd_bytes"] < row["cwnd_bytes_max"] // 8
    assert ladder.run()
    ladder.verify()
    assert ladder.a.timeouts == 0


@pytest.mark.spec("MRC 1.0", "4")
def test_the_base_rtt_follows_the_shortest_round_trip_of_full_packets() -> None:
    """Back to back the way is shorter than the topology's longest: full packets show it, short ones do not."""
    ladder = Ladder(congestion_scope="destination", cwnd_spare_packets=0)
    ladder.write(length=10)
    ladder.run_for(3)
    assert ladder.a.qp["base_rtt_ns"] == ladder.base_rtt_ns
    ladder.write(1)
    ladder.run_for(3)
    row = ladder.a.qp
    assert ladder.base_rtt_ns // 2 < row["base_rtt_ns"] < ladder.base_rtt_ns
    assert row["base_rtt_ns"] == ladder.a.counters["rtt_max_ns"]
    # 1.5 x two ports of 10 Gb/s.
    assert row["cwnd_bytes_max"] == 2 * 10 * row["base_rtt_ns"] // 8 * 3 // 2


@pytest.mark.spec("MRC 1.0", "7.5")
def test_an_echo_from_the_future_is_no_round_trip() -> None:
    def shift(packet: bytearray) -> None:
        stamp = int.from_bytes(packet[128:130], "big")
        packet[128:130] = (stamp - 1_000 & 0xFFFF).to_bytes(2, "big")

    ladder = Ladder()
    ladder.wire.change(shift, direction=BA, opcode=SACK)
    ladder.write(40)
    assert ladder.run()
    ladder.verify()
    assert ladder.a.counters["rtt_count"] == 0
    assert ladder.a.qp["base_rtt_ns"] == ladder.base_rtt_ns


@pytest.mark.spec("UEC", "CMS")
def test_a_receiver_that_holds_too_much_slows_its_sender_and_lets_it_go() -> None:
    ladder = Ladder(b={"receiver_penalty": "ooo", "penalty_ooo_packets": 20})
    ladder.wire.drop(direction=AB, number=3, nth=1)
    ladder.write(300)
    assert ladder.run()
    ladder.verify()
    row = ladder.a.qp
    # Once for each of the two planes.
    assert (row["penalties"], row["restores"]) == (2, 2)
    assert ladder.b.count("penalties_sent") > 0
    assert cuts(ladder)["penalty"] == 2


@pytest.mark.spec("UEC", "CMS")
def test_a_full_window_asks_for_a_sack_twice_per_window() -> None:
    window = 8 * 1024
    ladder = Ladder(cwnd_bytes=window, max_cwnd_bytes=window)
    ladder.write(120)
    assert ladder.run()
    ladder.verify()
    asking = [seen.number for seen in ladder.data() if seen.a]
    assert asking[-1] == 119
    assert max(later - earlier for earlier, later in pairwise(asking)) <= 8
    assert len(ladder.sent(BA, opcode=SACK)) < 60


@pytest.mark.spec("UEC", "PDS")
def test_the_receivers_count_is_summed_up_over_its_24_bits() -> None:
    ladder = Ladder()
    ladder.write(100)
    assert ladder.run()
    # UDP length + 40 of each: 1024 and 88, in units of 256.
    counted = 100 * (1024 + 88)
    assert 0 <= ladder.a.qp["peer_received_bytes"] - counted < 256
    assert ladder.a.qp["peer_out_of_order"] == 0


@pytest.mark.spec("MRC 1.0", "7.5")
def test_probes_measure_round_trips_too() -> None:
    """A lost tail is asked after by a reliability probe; while data arrive the other end probes the way back."""
    ladder = Ladder()
    ladder.wire.drop(direction=AB, number=39, nth=1)
    ladder.write(40)
    assert ladder.run()
    assert ladder.a.counters["probe_rtt_count"] >= 1
    assert ladder.b.counters["probe_rtt_count"] >= 1
    for end in (ladder.a, ladder.b):
        # Short packets both ways: less than a full one's, more than the links' delay.
        mean_ns = end.counters["probe_rtt_sum_ns"] / end.counters["probe_rtt_count"]
        assert 8 * ladder.topology.link_delay_ns < mean_ns < ladder.base_rtt_ns + 255
