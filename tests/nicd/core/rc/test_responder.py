"""The receiving half of an RC QP: order, NAKs, acknowledgements, completions, and what it refuses."""

import pytest

from mrcfabric.wire.roce_layout import (
    NAK_INVALID_REQUEST,
    NAK_REMOTE_ACCESS,
    RC_ACK,
    RC_WRITE_FIRST,
    RC_WRITE_LAST,
    RC_WRITE_LAST_IMM,
    RC_WRITE_MIDDLE,
    RC_WRITE_ONLY,
    RC_WRITE_ONLY_IMM,
)
from nicd.core.events import RECV_WITH_IMM, Completion
from tests.nicd.core.rc.lone import ACK, MTU, NAK, PSN_RECEIVE, SIZE, LoneNic


def message(lone: LoneNic, first: int = 0, packets: int = 4, last: int = 100, **more: int) -> list[bytearray]:
    """The packets of a message, the last one of `last` bytes."""
    length = (packets - 1) * MTU + last
    opcodes = [RC_WRITE_FIRST, *[RC_WRITE_MIDDLE] * (packets - 2), RC_WRITE_LAST]
    sizes = [MTU] * (packets - 1) + [last]
    return [
        lone.packet(opcode, first + number, size, 0, length, byte=number + 1, ask=number == packets - 1)
        for number, (opcode, size) in enumerate(zip(opcodes, sizes, strict=True))
    ]


def psn(number: int) -> int:
    return PSN_RECEIVE + number


@pytest.mark.spec("IBTA", "9.7.4")
def test_packets_in_order_are_placed_one_behind_the_other() -> None:
    lone = LoneNic(rc_ack_every=0)
    answers = [lone.arrive(packet) for packet in message(lone)]
    assert answers == [[], [], [], [(RC_ACK, psn(3), ACK, 1)]]
    placed = b"".join(bytes([number + 1]) * MTU for number in range(3)) + b"\4" * 100
    assert lone.memory()[: len(placed) + 1] == placed + b"\0"
    counters = lone.nic.counters()
    assert counters["bytes_placed"] == len(placed)
    assert counters["messages_completed"] == 1
    assert counters["acks_sent"] == 1
    assert not lone.told(Completion), "a WRITE is nobody's business at the receiver"


@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_an_acknowledgement_comes_every_so_many_packets_and_when_asked(every: int) -> None:
    lone = LoneNic(rc_ack_every=every)
    acked = [number for number, packet in enumerate(message(lone, packets=11)) if lone.arrive(packet)]
    assert acked == sorted({*range(every - 1, 11, every), 10})


def test_immediates_complete_with_length_and_number() -> None:
    lone = LoneNic()
    lone.arrive(lone.packet(RC_WRITE_ONLY, 0, 1))
    lone.arrive(lone.packet(RC_WRITE_ONLY_IMM, 1, 5, imm=0xFFFFFFFF))
    lone.arrive(lone.packet(RC_WRITE_FIRST, 2, MTU, 0, MTU + 3))
    lone.arrive(lone.packet(RC_WRITE_LAST_IMM, 3, 3, imm=0))
    rows = [(done.opcode, done.wr_id, done.byte_len, done.imm, done.status) for done in lone.told(Completion)]
    assert rows == [(RECV_WITH_IMM, 1, 5, 0xFFFFFFFF, "ok"), (RECV_WITH_IMM, 2, MTU + 3, 0, "ok")]


@pytest.mark.spec("IBTA", "9.7.5.1")
def test_one_nak_per_gap_until_it_closes() -> None:
    lone = LoneNic(rc_ack_every=0)
    first, second, third, last = message(lone)
    assert lone.arrive(first) == []
    assert lone.arrive(third) == [(RC_ACK, psn(1), NAK, 0)]
    assert lone.arrive(last) == []
    assert lone.drops() == {"out_of_sequence": 2}
    assert lone.arrive(second) == []
    # A new gap gets a NAK of its own.
    assert lone.arrive(last) == [(RC_ACK, psn(2), NAK, 0)]
    assert lone.arrive(third) == []
    assert lone.arrive(last) == [(RC_ACK, psn(3), ACK, 1)]
    rc = lone.nic.counters()["rc"]
    assert rc["naks_sent"] == 2
    assert rc["out_of_sequence"] == 3


@pytest.mark.parametrize("passes", [True, False])
def test_a_packet_that_is_lost_again_is_asked_for_in_each_pass(passes: bool) -> None:
    lone = LoneNic(rc_ack_every=0, rc_nak_passes=passes)
    packets = message(lone, packets=8)
    naks = 0
    for _ in range(3):
        # The first of them is lost each time.
        answers = [lone.arrive(packet) for packet in packets[1:]]
        naks += sum(bool(answer) for answer in answers)
        assert not any(answers[1:])
    assert naks == (3 if passes else 1)
    # Going back to before the gap is a pass too.
    lone.arrive(packets[0])
    lone.arrive(packets[2])
    lone.arrive(packets[0])
    assert bool(lone.arrive(packets[4])) == passes


@pytest.mark.parametrize("interval", [5_000, 500_000])
def test_a_gap_that_stays_open_gets_another_nak_after_the_interval(interval: int) -> None:
    lone = LoneNic(rc_ack_every=0, rc_nak_interval_ns=interval)
    packets = message(lone, packets=20)
    at_ns = [lone.now for packet in packets[1:] if lone.arrive(packet, wait_ns=interval // 4)]
    assert [later - at_ns[0] for later in at_ns] == [interval // 4 * 4 * number for number in range(len(at_ns))]
    assert len(at_ns) == 5


def test_go_back_0_forgets_the_message_under_way() -> None:
    lone = LoneNic(rc_ack_every=0, rc_recovery="go_back_0")
    lone.arrive(lone.packet(RC_WRITE_ONLY, 0, 4))
    packets = message(lone, first=1, packets=5)
    lone.arrive(packets[0])
    lone.arrive(packets[1])
    assert lone.arrive(packets[3]) == [(RC_ACK, psn(1), NAK, 1)]
    assert lone.arrive(packets[4]) == []
    assert lone.nic.counters()["bytes_placed"] == 4
    # From the middle nothing goes on.
    assert lone.arrive(packets[2]) == [(RC_ACK, psn(1), NAK, 1)], "the sender is on another pass"
    assert [lone.arrive(packet) for packet in packets] == [[], [], [], [], [(RC_ACK, psn(5), ACK, 2)]]
    assert lone.nic.counters()["bytes_placed"] == 4 + 4 * MTU + 100


@pytest.mark.spec("IBTA", "9.7.5.1")
def test_a_duplicate_is_acknowledged_again_and_placed_once() -> None:
    lone = LoneNic(rc_ack_every=0)
    packet = lone.packet(RC_WRITE_ONLY, 0, 9, ask=True)
    assert lone.arrive(bytearray(packet)) == [(RC_ACK, psn(0), ACK, 1)]
    assert lone.arrive(bytearray(packet)) == [(RC_ACK, psn(0), ACK, 1)]
    assert lone.arrive(lone.packet(RC_WRITE_ONLY, 0, 9)) == []
    counters = lone.nic.counters()
    assert (counters["duplicates"], counters["bytes_placed"], counters["messages_completed"]) == (2, 9, 1)


@pytest.mark.spec("IBTA", "9.7.4")
@pytest.mark.parametrize(
    ("before", "opcode", "size", "length"),
    [
        (False, RC_WRITE_MIDDLE, MTU, 0),
        (False, RC_WRITE_LAST, 4, 0),
        (False, RC_WRITE_ONLY, 8, 9),
        (False, RC_WRITE_ONLY, 0, 0),
        (False, RC_WRITE_FIRST, MTU, MTU),
        (False, RC_WRITE_FIRST, MTU - 4, 4 * MTU),
        (True, RC_WRITE_ONLY, 4, 4),
        (True, RC_WRITE_FIRST, MTU, 2 * MTU),
        (True, RC_WRITE_MIDDLE, MTU - 4, 0),
        (True, RC_WRITE_LAST, 8, 0),
        (True, RC_WRITE_LAST, 0, 0),
    ],
)
def test_what_contradicts_its_message_ends_the_qp(before: bool, opcode: int, size: int, length: int) -> None:
    lone = LoneNic()
    if before:
        # Two more packets belong to it, of which the last has 100 bytes.
        lone.arrive(message(lone, packets=3)[0])
    ((_, at, syndrome, _),) = lone.arrive(lone.packet(opcode, int(before), size, 0, length))
    assert (at, syndrome) == (psn(int(before)), NAK_INVALID_REQUEST)
    assert lone.state() == "error"
    assert lone.drops() == {"message_mismatch": 1}
    lone.arrive(lone.packet(RC_WRITE_ONLY, 1, 4))
    assert lone.drops() == {"message_mismatch": 1, "qp_state": 1}


def test_a_middle_that_would_end_the_message_is_refused() -> None:
    lone = LoneNic()
    lone.arrive(lone.packet(RC_WRITE_FIRST, 0, MTU, 0, 2 * MTU))
    assert lone.arrive(lone.packet(RC_WRITE_MIDDLE, 1, MTU))[0][2] == NAK_INVALID_REQUEST


@pytest.mark.parametrize(("r_key", "offset"), [(8, 0), (7, SIZE - 3), (7, 1 << 40)])
def test_memory_that_is_not_the_peers_ends_the_qp_and_stays_as_it_is(r_key: int, offset: int) -> None:
    lone = LoneNic()
    ((_, at, syndrome, _),) = lone.arrive(lone.packet(RC_WRITE_ONLY, 0, 4, offset, r_key=r_key))
    assert (at, syndrome) == (psn(0), NAK_REMOTE_ACCESS)
    assert lone.state() == "error"
    assert lone.memory() == bytes(SIZE)
    assert lone.drops() == {"memory": 1}
    assert lone.nic.counters()["rc"]["access_naks_sent"] == 1
