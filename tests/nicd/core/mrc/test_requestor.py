"""The sending half: packets of a message, windows, acknowledgements, losses."""

import pytest

from mrcfabric.wire.fastpath import read_data_ts
from mrcfabric.wire.layout import (
    FLAG_A,
    FLAG_TS,
    PSN_MASK,
    SYNDROME_ACK,
    SYNDROME_INVALID_REQUEST,
    WRITE_FIRST,
    WRITE_LAST,
    WRITE_LAST_IMM,
    WRITE_MIDDLE,
    WRITE_ONLY,
    WRITE_ONLY_IMM,
)
from nicd.core.events import Completion
from tests.nicd.core.bench import PSN_SEND, R_KEY, VA, Bench

LATER = 100_000
"""Long enough for every port to be free again."""


def all_packets(bench: Bench, until: int = LATER) -> list[bytearray]:
    """Pump until nothing more leaves."""
    packets: list[bytearray] = []
    now = 0
    while now < until:
        if bench.board.scheduler.busy:
            bench.board.scheduler.pump(now)
        packets += bench.packets(now)
        now += 500
    return packets


@pytest.mark.spec("MRC 1.0", "7.5")
@pytest.mark.parametrize(
    ("length", "imm", "opcodes"),
    [
        (1, None, [WRITE_ONLY]),
        (4096, 5, [WRITE_ONLY_IMM]),
        (4097, None, [WRITE_FIRST, WRITE_LAST]),
        (12_289, 5, [WRITE_FIRST, WRITE_MIDDLE, WRITE_MIDDLE, WRITE_LAST_IMM]),
    ],
)
def test_every_packet_says_where_it_belongs(length: int, imm: int | None, opcodes: list[int]) -> None:
    bench = Bench()
    bench.post(0, length, imm=imm)
    packets = sorted(all_packets(bench), key=lambda packet: (int.from_bytes(packet[97:100], "big") + 2) & PSN_MASK)
    assert [packet[88] for packet in packets] == opcodes
    for number, packet in enumerate(packets):
        # MRC 1.0: MSN on every packet, VA of this packet, DMALen of the whole message.
        rqmsn, msn, _, _, *reth = read_data_ts(packet)
        assert (rqmsn, msn, *reth) == (0, 0, VA + 4096 * number, R_KEY, length)
        assert int.from_bytes(packet[97:100], "big") == (PSN_SEND + number) & PSN_MASK
    assert packets[-1][96] & FLAG_A


@pytest.mark.spec("MRC 1.0", "3")
def test_the_peers_tracking_window_binds() -> None:
    bench = Bench(mpr_units=1, max_cwnd_bytes=1 << 30)
    bench.post(0, 200 * 4096)
    assert len(all_packets(bench)) == 127
    assert bench.link.requestor.on_sack(LATER, (PSN_SEND + 9) & PSN_MASK, None, 1, 0, False)
    assert bench.link.requestor.can_send()


@pytest.mark.spec("UEC", "CMS")
def test_the_congestion_window_binds_for_all_qps_to_a_peer() -> None:
    bench = Bench(cwnd_bytes=10 * 4096)
    bench.post(0, 100 * 4096)
    assert len(all_packets(bench)) == 10
    assert bench.link.requestor.windows.inflight_bytes == 10 * 4096


@pytest.mark.spec("MRC 1.0", "3")
def test_messages_complete_by_transport_acks_alone() -> None:
    bench = Bench()
    for number in range(3):
        bench.post(0, 100, wr_id=number)
    all_packets(bench)
    requestor = bench.link.requestor
    assert requestor.on_sack(LATER, (PSN_SEND + 2) & PSN_MASK, None, 1, 0, False)
    assert (requestor.inflight_packets, requestor.unfinished) == (0, 3)
    assert requestor.on_ack(LATER, (PSN_SEND + 2) & PSN_MASK, SYNDROME_ACK, 2)
    assert [event.wr_id for event in bench.told(Completion)] == [0, 1]
    # An older one, overtaken on the way.
    assert requestor.on_ack(LATER, PSN_SEND, SYNDROME_ACK, 1)
    assert len(bench.told(Completion)) == 2
    assert not requestor.on_ack(LATER, PSN_SEND, SYNDROME_ACK, 9)
    assert requestor.on_ack(LATER, (PSN_SEND + 2) & PSN_MASK, SYNDROME_ACK, 3)
    assert requestor.unfinished == 0


@pytest.mark.spec("MRC 1.0", "3")
def test_an_ack_of_one_message_alone_completes_that_one_and_frees_its_packets() -> None:
    bench = Bench()
    for number in range(3):
        bench.post(0, 5_000, wr_id=number)
    all_packets(bench)
    requestor = bench.link.requestor
    last = [(PSN_SEND + place) & PSN_MASK for place in (1, 3, 5)]
    assert requestor.on_ack(LATER, last[1], SYNDROME_ACK, 2, True)
    assert [event.wr_id for event in bench.told(Completion)] == [1]
    assert (requestor.unfinished, requestor.inflight_packets) == (2, 4)
    # Once more, of no message, of another PSN than the message's last: nothing more.
    assert requestor.on_ack(LATER, last[1], SYNDROME_ACK, 2, True)
    assert not requestor.on_ack(LATER, last[2], SYNDROME_ACK, 9, True)
    assert not requestor.on_ack(LATER, last[1], SYNDROME_ACK, 3, True)
    assert len(bench.told(Completion)) == 1
    # The one whose turn it is takes those that were early along.
    assert requestor.on_ack(LATER, last[0], SYNDROME_ACK, 1, True)
    assert requestor.on_ack(LATER, last[2], SYNDROME_ACK, 3)
    assert [event.wr_id for event in bench.told(Completion)] == [1, 0, 2]
    assert (requestor.unfinished, requestor.inflight_packets, requestor.windows.inflight_bytes) == (0, 0, 0)


@pytest.mark.spec("MRC 1.0", "3")
def test_an_immediate_or_an_unsent_message_is_never_complete_alone() -> None:
    bench = Bench(max_wimm=32)
    bench.post(0, 10, wr_id=0)
    bench.post(0, 10, wr_id=1, imm=1)
    all_packets(bench)
    bench.post(LATER, 10, wr_id=2)
    requestor = bench.link.requestor
    assert not requestor.on_ack(LATER, (PSN_SEND + 1) & PSN_MASK, SYNDROME_ACK, 2, True)
    assert not requestor.on_ack(LATER, (PSN_SEND + 2) & PSN_MASK, SYNDROME_ACK, 3, True)
    assert bench.told(Completion) == []


@pytest.mark.spec("MRC 1.0", "3")
def test_an_invalid_request_ends_the_qp() -> None:
    bench = Bench()
    bench.post(0, 100, wr_id=1)
    bench.post(0, 100, wr_id=2)
    bench.pump(0)
    requestor = bench.link.requestor
    # Of what this QP has not sent only one that had its number before can be told.
    assert not requestor.on_ack(9, PSN_SEND - 2, SYNDROME_INVALID_REQUEST, 0)
    assert not requestor.on_ack(9, (PSN_SEND + 1) & PSN_MASK, SYNDROME_INVALID_REQUEST, 0)
    assert not requestor.on_ack(9, PSN_SEND - 1, SYNDROME_INVALID_REQUEST, 3)
    assert requestor.on_ack(10, PSN_SEND - 1, SYNDROME_INVALID_REQUEST, 0)
    statuses = [(event.wr_id, event.status) for event in bench.told(Completion)]
    assert statuses == [(1, "remote_invalid_request"), (2, "flushed")]


@pytest.mark.spec("MRC 1.0", "3")
def test_immediates_wait_for_room_at_the_peer() -> None:
    bench = Bench(max_wimm=32)
    for number in range(40):
        bench.post(0, 10, wr_id=number, imm=number)
    assert len(all_packets(bench)) == 32
    bench.link.requestor.on_ack(LATER, (PSN_SEND + 9) & PSN_MASK, SYNDROME_ACK, 10)
    assert bench.link.requestor.can_send()


def test_an_acknowledgement_that_comes_late_stops_the_retransmission() -> None:
    bench = Bench()
    bench.post(0, 100)
    bench.pump(0)
    bench.fire(bench.board.settings.rto_ns)
    bench.link.requestor.on_sack(bench.board.settings.rto_ns, PSN_SEND, None, 1, 0, False)
    assert not bench.link.requestor.can_send()
    assert bench.board.stats.taken_back == 1


@pytest.mark.spec("MRC 1.0", "7.5")
def test_a_packet_is_stamped_with_the_instant_its_port_begins_with_it() -> None:
    bench = Bench()
    bench.post(0, 6 * 4096)
    bench.board.scheduler.pump(1_000)
    bench.board.ports.depart(1_000)
    bench.board.scheduler.pump(1_000)
    packets = bench.packets(10_000)
    # Two ports, each sends one packet and holds another: 4,262 bytes at 100 Gb/s are 341 ns.
    assert sorted(read_data_ts(packet)[2] for packet in packets) == [1_000 // 128] * 2 + [1_341 // 128] * 2


@pytest.mark.spec("UEC", "CMS")
@pytest.mark.parametrize(("tries", "rtx", "counts"), [(0, 0, 1), (0, 1, 0), (1, 1, 1), (1, 0, 0), (2, 1, 0)])
def test_a_round_trip_counts_when_packet_and_sack_agree_on_retransmission(tries: int, rtx: int, counts: int) -> None:
    bench = Bench()
    bench.post(0, 100)
    bench.pump(0)
    requestor = bench.link.requestor
    (sent,) = requestor._inflight.by_psn.values()
    sent.tries = tries
    requestor.on_sack(20_000, PSN_SEND, 0, 1, 0, False, stamp=10_000 // 128, rtx=bool(rtx))
    stats = bench.board.stats
    assert (stats.rtt.count, stats.rtt.sum_ns) == (counts, counts * (20_000 - 10_000 // 128 * 128))


@pytest.mark.spec("MRC 1.0", "7.5")
def test_without_stamps_the_sender_reckons_with_its_own_times() -> None:
    bench = Bench(timestamps=False)
    bench.post(0, 100)
    (packet,) = bench.pump(500)
    assert packet[3] & FLAG_TS == 0
    bench.link.requestor.on_sack(20_000, PSN_SEND, 0, 1, 0, False)
    assert bench.board.stats.rtt.sum_ns == 20_000 - 500
