"""Tracking windows: what a requestor may send, what a responder keeps, and what it says of the rest."""

import pytest

from mrcfabric.wire.layout import NACK, NACK_UNEXP_EVENT, PSN_MASK, SACK
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp, PostWrite
from tests.support.ladder import R_KEY, SOURCE_REGION, SOURCE_VA, TARGET_VA, Ladder
from tests.support.wire import AB, BA, DATA, Seen

WIDE = 1 << 30
"""A congestion window that never binds."""
FAST = 100_000_000_000
"""Bits per second: hundreds of packets leave within a round trip."""


@pytest.mark.spec("MRC 1.0", "3")
def test_no_psn_is_sent_beyond_the_peers_window() -> None:
    """PSN <= cack + MPR - 1: of 128 PSNs one is always free."""
    ladder = Ladder(reorder_path_packets=0, max_cwnd_bytes=WIDE, connect_a={"peer_mpr": 1})
    ladder.wire.drop(direction=BA)
    ladder.write(300)
    ladder.run_for(6)
    assert max(seen.number for seen in ladder.data()) == 126


@pytest.mark.spec("MRC 1.0", "3")
def test_the_window_moves_with_the_cumulative_point_over_the_wrap() -> None:
    ladder = Ladder(reorder_path_packets=0, max_cwnd_bytes=WIDE, mpr_units=1, rate_bps=FAST)
    # Until it is sent again, nothing behind 3 + 127 can leave.
    ladder.wire.drop(direction=AB, number=3, nth=1)
    ladder.write(400)
    ladder.run_for(5)
    assert max(seen.number for seen in ladder.data()) == 129
    assert ladder.run()
    ladder.verify()
    assert ladder.a.count("retransmits") == 1


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("nack", [True, False])
def test_a_psn_outside_the_window_is_answered_as_set(nack: bool) -> None:
    """A requestor that was told of a wider window than there is."""
    ladder = Ladder(
        reorder_path_packets=0, max_cwnd_bytes=WIDE, b={"mpr_units": 1, "window_nack": nack}, connect_a={"peer_mpr": 2}
    )
    ladder.wire.drop(direction=AB, number=0, nth=1)
    ladder.write(200)
    assert ladder.run()
    ladder.verify()
    assert ladder.b.drops["psn_window"] > 0
    assert {seen.reason for seen in ladder.sent(BA, opcode=NACK)} == ({"PSN_OOR_WINDOW"} if nack else set())


@pytest.mark.spec("MRC 1.0", "7.5")
def test_without_dynamic_mpr_a_sack_advertises_nothing_and_nothing_is_obeyed() -> None:
    ladder = Ladder(reorder_path_packets=0, max_cwnd_bytes=WIDE, rate_bps=FAST)

    def advertise_one_unit(packet: bytearray) -> None:
        packet[117] = 1

    ladder.wire.change(advertise_one_unit, direction=BA, opcode=SACK)
    ladder.wire.drop(direction=AB, number=0, nth=1)
    ladder.write(300)
    ladder.run_for(5)
    assert {seen.sack[5] for seen in ladder.sent(BA, opcode=SACK)} == {0}
    assert max(seen.number for seen in ladder.data()) > 200


@pytest.mark.spec("MRC 1.0", "3")
def test_under_dynamic_mpr_the_window_shrinks_with_the_room_and_grows_again() -> None:
    ladder = Ladder(
        reorder_path_packets=0, max_cwnd_bytes=WIDE, dynamic_mpr=True, mpr_units=4, b={"ooo_packets_max": 256}
    )
    ladder.wire.drop(direction=AB, number=10, nth=1)
    ladder.write(900)
    assert ladder.run()
    ladder.verify()
    advertised = [seen.sack[5] for seen in ladder.sent(BA, opcode=SACK)]
    assert set(advertised) == {2}
    assert max(seen.number for seen in ladder.data()) == 899
    assert ladder.b.drops == {}
    assert ladder.a.count("retransmits") == 1
    assert ladder.b.qp["out_of_order"] == 0


@pytest.mark.spec("MRC 1.0", "3")
def test_what_other_qps_hold_shrinks_the_window_of_this_one() -> None:
    """Two QPs share a bound of 256 packets out of order; the first one's gap takes what the second may not have."""
    ladder = Ladder(
        reorder_path_packets=0, max_cwnd_bytes=WIDE, dynamic_mpr=True, mpr_units=2, b={"ooo_packets_max": 256}
    )
    for end, peer in ((ladder.a, ladder.b), (ladder.b, ladder.a)):
        end.command(CreateQp(1, end.qpn + 1), 2)
        end.command(ConnectQp(2, end.qpn + 1, ladder.topology.nic_index(peer.name), peer.qpn + 1, 0, 0), 3)
        end.command(ModifyQp(3, end.qpn + 1, "rts"), 4)

    def of_first_qp(seen: Seen) -> bool:
        return int.from_bytes(seen.packet[93:96], "big") in (ladder.a.qpn, ladder.b.qpn)

    ladder.wire.drop(direction=AB, number=0, where=of_first_qp, nth=1)
    ladder.write(250)
    late_ns = 3 * ladder.base_rtt_ns
    work = PostWrite(9, 101, 900, SOURCE_REGION, SOURCE_VA, 300 * ladder.mtu, TARGET_VA, R_KEY)
    ladder.a.command(work, late_ns)
    ladder.posted += 1
    assert ladder.run()
    others = [seen.sack[5] for seen in ladder.sent(BA, opcode=SACK) if not of_first_qp(seen)]
    assert set(others) == {1, 2}
    assert others[-1] == 2
    assert ladder.b.drops == {}


@pytest.mark.spec("MRC 1.0", "3")
def test_a_smaller_window_does_not_make_what_is_in_flight_invalid() -> None:
    ladder = Ladder(reorder_path_packets=0, max_cwnd_bytes=WIDE, dynamic_mpr=True, mpr_units=4)

    def advertise_one_unit(packet: bytearray) -> None:
        packet[117] = 1

    ladder.wire.change(advertise_one_unit, direction=BA, opcode=SACK)
    ladder.wire.drop(direction=AB, number=0, nth=1)
    ladder.write(450)
    assert ladder.run()
    ladder.verify()
    assert ladder.b.drops == {}
    # 4 units less one PSN were out before the first SACK came.
    first_sack_ns = ladder.sent(BA, opcode=SACK)[0].at_ns
    before = [seen.number for seen in ladder.data() if seen.at_ns < first_sack_ns]
    after = [seen for seen in ladder.data(rtx=False) if seen.at_ns > first_sack_ns + 2 * ladder.base_rtt_ns]
    assert max(before) > 0
    for seen in after:
        sacks = [sack.sack[4] for sack in ladder.sent(BA, opcode=SACK) if sack.at_ns < seen.at_ns]
        acked = max((psn - ladder.psn(-1)) & PSN_MASK for psn in sacks)
        assert seen.number <= max(acked + 127, max(before) + 128)


@pytest.mark.spec("MRC 1.0", "7.5")
def test_what_the_bitmap_does_not_cover_is_asked_for_again() -> None:
    ladder = Ladder(reorder_path_packets=0, max_cwnd_bytes=WIDE, b={"bitmap_psns": 64})
    ladder.wire.drop(direction=AB, number=0, nth=1)
    ladder.write(80)
    assert ladder.run(2_000)
    ladder.verify()
    assert {seen.reason for seen in ladder.sent(BA, opcode=NACK)} == {"NO_BITMAP"}
    assert ladder.b.drops["no_bitmap"] == len(ladder.sent(BA, opcode=NACK))
    assert ladder.a.retransmits["nack"] == ladder.b.drops["no_bitmap"]
    # Only the lost one's EV is to blame.
    assert sum(count for name, count in ladder.a.counters["ev_transitions"].items() if "assumed_bad" in name) <= 1


@pytest.mark.spec("MRC 1.0", "7.5")
def test_what_finds_no_buffer_is_asked_for_again() -> None:
    ladder = Ladder(reorder_path_packets=0, max_cwnd_bytes=WIDE, b={"ooo_packets_max": 40})
    ladder.wire.drop(direction=AB, number=0, nth=1)
    ladder.write(60)
    assert ladder.run(2_000)
    ladder.verify()
    assert {seen.reason for seen in ladder.sent(BA, opcode=NACK)} == {"NO_PKT_BUFFER"}
    assert ladder.b.drops["no_pkt_buffer"] == len(ladder.sent(BA, opcode=NACK))
    assert ladder.b.nic._board.ooo_held == 0


@pytest.mark.spec("MRC 1.0", "7.5")
def test_what_finds_no_record_is_asked_for_again() -> None:
    ladder = Ladder(reorder_path_packets=0, b={"messages_open_max": 4})
    ladder.wire.drop(direction=AB, number=0, nth=1)
    for _ in range(12):
        ladder.write(1)
    assert ladder.run(2_000)
    ladder.verify()
    assert {seen.reason for seen in ladder.sent(BA, opcode=NACK)} == {"NO_RESOURCE"}
    assert ladder.b.drops["no_resource"] == len(ladder.sent(BA, opcode=NACK))
    # The one that is next in order has its place beside the four.
    assert ladder.b.nic.overfull() == []


@pytest.mark.spec("MRC 1.0", "7.5")
@pytest.mark.parametrize(
    ("what", "at", "value"), [("length", 119, 1), ("place", 111, 4), ("message number", 103, 9), ("key", 115, 3)]
)
def test_a_packet_that_contradicts_its_message_ends_the_qp_at_both_ends(what: str, at: int, value: int) -> None:
    ladder = Ladder(reorder_path_packets=0, timestamps=False)

    def lie(packet: bytearray) -> None:
        packet[at] ^= value

    ladder.wire.change(lie, direction=AB, number=5)
    ladder.write(20)
    assert ladder.run()
    assert ladder.b.errors == ["message_mismatch"], what
    assert ladder.b.drops["message_mismatch"] == 1
    (nack,) = ladder.sent(BA, opcode=NACK)
    assert nack.reason == "UNEXP_EVENT"
    assert ladder.a.errors == ["unexpected_event"]
    assert [event.status for event in ladder.a.completions] == ["flushed"]


@pytest.mark.spec("MRC 1.0", "7.5")
def test_an_unexpected_event_is_believed_at_once() -> None:
    ladder = Ladder(reorder_path_packets=0)

    def unexpected(packet: bytearray) -> None:
        packet[102] = NACK_UNEXP_EVENT

    ladder.wire.trim(direction=AB, number=3)
    ladder.wire.change(unexpected, direction=BA, opcode=NACK)
    ladder.write(20)
    assert ladder.run()
    assert ladder.a.errors == ["unexpected_event"]
    nack_ns = ladder.sent(BA, opcode=NACK)[0].at_ns
    last_ns = ladder.sent(AB, opcode=DATA)[-1].at_ns
    assert last_ns < nack_ns + ladder.base_rtt_ns
