"""The receiving half with selective recovery: packets are placed as they come, and completed in order."""

from itertools import permutations

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
from nicd.core.events import Completion
from tests.nicd.core.rc.bed import ACK, MTU, NAK, PSN_RECEIVE, SIZE, Bed

LENGTH = 2 * MTU + 100


def bed_of(**nic: int) -> Bed:
    return Bed(rc_recovery="selective", rc_ack_every=0, **nic)


def packets(bed: Bed) -> list[bytearray]:
    """Two messages: three packets, the last with immediate 5; and one packet with immediate 6."""
    return [
        bed.packet(RC_WRITE_FIRST, 0, MTU, 0, LENGTH, byte=1),
        bed.packet(RC_WRITE_MIDDLE, 1, MTU, MTU, LENGTH, byte=2),
        bed.packet(RC_WRITE_LAST_IMM, 2, 100, 2 * MTU, LENGTH, imm=5, byte=3),
        bed.packet(RC_WRITE_ONLY_IMM, 3, 7, 3 * MTU, imm=6, byte=4, ask=True),
    ]


def test_whatever_the_order_bytes_and_completions_are_right() -> None:
    for order in permutations(range(4)):
        bed = bed_of()
        expected, there = 0, set()
        for number in order:
            answers = bed.arrive(packets(bed)[number])
            there.add(number)
            was, expected = expected, min({*range(5)} - there)
            done = (expected > 2) + (expected > 3)
            if expected == was:
                assert answers == [(RC_ACK, PSN_RECEIVE + expected, NAK, done, PSN_RECEIVE + number)]
            elif expected - was > 1 or number == 3 or len(there) > expected:
                assert answers == [(RC_ACK, PSN_RECEIVE + expected - 1, ACK, done, PSN_RECEIVE + number)]
        assert bed.memory()[: 3 * MTU + 7] == (b"\1" * MTU + b"\2" * MTU + b"\3" * 100 + bytes(MTU - 100) + b"\4" * 7)
        assert [(done.imm, done.byte_len, done.wr_id) for done in bed.told(Completion)] == [(5, LENGTH, 0), (6, 7, 1)]
        counters = bed.nic.counters()
        assert counters["bytes_placed"] == LENGTH + 7
        assert counters["rc"]["early_packets"] == 0
        assert not bed.drops()


def test_duplicates_are_answered_and_placed_once() -> None:
    bed = bed_of()
    first, second, third, _ = packets(bed)
    assert bed.arrive(bytearray(third)) == [(RC_ACK, PSN_RECEIVE, NAK, 0, PSN_RECEIVE + 2)]
    assert bed.arrive(third) == [(RC_ACK, PSN_RECEIVE - 1, ACK, 0, PSN_RECEIVE + 2)]
    bed.arrive(bytearray(first))
    assert bed.arrive(first) == [(RC_ACK, PSN_RECEIVE, ACK, 0, PSN_RECEIVE)]
    bed.arrive(second)
    counters = bed.nic.counters()
    assert (counters["duplicates"], counters["bytes_placed"]) == (2, LENGTH)


def test_what_is_kept_is_bounded() -> None:
    bed = bed_of(rc_psns_max=8)
    for number in range(1, 20):
        bed.arrive(bed.packet(RC_WRITE_ONLY, number, 4, 8 * number))
    assert bed.nic.qp_table()[0]["out_of_order"] == 7
    assert bed.drops() == {"psn_window": 12}


@pytest.mark.parametrize(
    ("opcode", "size", "length"),
    [
        (RC_WRITE_FIRST, MTU, MTU),
        (RC_WRITE_FIRST, 8, LENGTH),
        (RC_WRITE_MIDDLE, MTU - 4, LENGTH),
        (RC_WRITE_LAST, 0, LENGTH),
        (RC_WRITE_LAST, 8, 8),
        (RC_WRITE_ONLY, 8, 9),
        (RC_WRITE_ONLY, 0, 0),
    ],
)
@pytest.mark.parametrize("number", [0, 3])
def test_what_can_be_no_packet_of_a_message_ends_the_qp(number: int, opcode: int, size: int, length: int) -> None:
    bed = bed_of()
    answers = bed.arrive(bed.packet(opcode, number, size, 0, length))
    assert answers == [(RC_ACK, PSN_RECEIVE, NAK_INVALID_REQUEST, 0, PSN_RECEIVE + number)]
    assert bed.state() == "error"
    assert bed.drops() == {"message_mismatch": 1}


@pytest.mark.parametrize(
    "rest",
    [
        [(RC_WRITE_ONLY, 4, 4)],
        [(RC_WRITE_FIRST, MTU, LENGTH)],
        [(RC_WRITE_LAST, 100, LENGTH)],
        [(RC_WRITE_MIDDLE, MTU, LENGTH + 1)],
        [(RC_WRITE_MIDDLE, MTU, LENGTH), (RC_WRITE_MIDDLE, MTU, LENGTH)],
        [(RC_WRITE_MIDDLE, MTU, LENGTH), (RC_WRITE_LAST, 99, LENGTH)],
    ],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_packets_that_contradict_their_message_end_the_qp(rest: list[tuple[int, int, int]], backwards: bool) -> None:
    bed = bed_of()
    rows = [(RC_WRITE_FIRST, MTU, LENGTH), *rest]
    made = [bed.packet(opcode, place, size, 0, length) for place, (opcode, size, length) in enumerate(rows)]
    for packet in reversed(made) if backwards else made:
        bed.arrive(packet)
    assert bed.state() == "error"
    assert bed.drops() == {"message_mismatch": 1}


def test_memory_that_is_not_the_peers_ends_the_qp() -> None:
    bed = bed_of()
    assert bed.arrive(bed.packet(RC_WRITE_ONLY, 5, 4, SIZE))[0][2] == NAK_REMOTE_ACCESS
    assert bed.state() == "error"
    assert bed.memory() == bytes(SIZE)
