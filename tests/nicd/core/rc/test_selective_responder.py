"""The receiving half with selective recovery: packets are placed as they come, and completed in order."""

from itertools import permutations
from typing import Any

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
from tests.nicd.core.rc.lone import ACK, MTU, NAK, PSN_RECEIVE, SIZE, LoneNic

LENGTH = 2 * MTU + 100


def selective_nic(**nic: Any) -> LoneNic:
    return LoneNic(rc_recovery="selective", rc_ack_every=0, **nic)


def packets(lone: LoneNic) -> list[bytearray]:
    """Two messages: three packets, the last with immediate 5; and one packet with immediate 6."""
    return [
        lone.packet(RC_WRITE_FIRST, 0, MTU, 0, LENGTH, byte=1),
        lone.packet(RC_WRITE_MIDDLE, 1, MTU, MTU, LENGTH, byte=2),
        lone.packet(RC_WRITE_LAST_IMM, 2, 100, 2 * MTU, LENGTH, imm=5, byte=3),
        lone.packet(RC_WRITE_ONLY_IMM, 3, 7, 3 * MTU, imm=6, byte=4, ask=True),
    ]


def test_whatever_the_order_bytes_and_completions_are_right() -> None:
    for order in permutations(range(4)):
        lone = selective_nic()
        expected, there = 0, set()
        for number in order:
            answers = lone.arrive(packets(lone)[number])
            there.add(number)
            was, expected = expected, min({*range(5)} - there)
            done = (expected > 2) + (expected > 3)
            if expected == was:
                assert answers == [(RC_ACK, PSN_RECEIVE + expected, NAK, done, PSN_RECEIVE + number)]
            elif expected - was > 1 or number == 3 or len(there) > expected:
                assert answers == [(RC_ACK, PSN_RECEIVE + expected - 1, ACK, done, PSN_RECEIVE + number)]
        assert lone.memory()[: 3 * MTU + 7] == (b"\1" * MTU + b"\2" * MTU + b"\3" * 100 + bytes(MTU - 100) + b"\4" * 7)
        assert [(done.imm, done.byte_len, done.wr_id) for done in lone.told(Completion)] == [(5, LENGTH, 0), (6, 7, 1)]
        counters = lone.nic.counters()
        assert counters["bytes_placed"] == LENGTH + 7
        assert counters["rc"]["early_packets"] == 0
        assert not lone.drops()


def test_duplicates_are_answered_and_placed_once() -> None:
    lone = selective_nic()
    first, second, third, _ = packets(lone)
    assert lone.arrive(bytearray(third)) == [(RC_ACK, PSN_RECEIVE, NAK, 0, PSN_RECEIVE + 2)]
    assert lone.arrive(third) == [(RC_ACK, PSN_RECEIVE - 1, ACK, 0, PSN_RECEIVE + 2)]
    lone.arrive(bytearray(first))
    assert lone.arrive(first) == [(RC_ACK, PSN_RECEIVE, ACK, 0, PSN_RECEIVE)]
    lone.arrive(second)
    counters = lone.nic.counters()
    assert (counters["duplicates"], counters["bytes_placed"]) == (2, LENGTH)


def test_what_is_kept_is_bounded() -> None:
    lone = selective_nic(rc_psns_max=8)
    for number in range(1, 20):
        lone.arrive(lone.packet(RC_WRITE_ONLY, number, 4, 8 * number))
    assert lone.nic.qp_table()[0]["out_of_order"] == 7
    assert lone.drops() == {"psn_window": 12}


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
    lone = selective_nic()
    answers = lone.arrive(lone.packet(opcode, number, size, 0, length))
    assert answers == [(RC_ACK, PSN_RECEIVE, NAK_INVALID_REQUEST, 0, PSN_RECEIVE + number)]
    assert lone.state() == "error"
    assert lone.drops() == {"message_mismatch": 1}


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
    lone = selective_nic()
    rows = [(RC_WRITE_FIRST, MTU, LENGTH), *rest]
    made = [lone.packet(opcode, place, size, 0, length) for place, (opcode, size, length) in enumerate(rows)]
    for packet in reversed(made) if backwards else made:
        lone.arrive(packet)
    assert lone.state() == "error"
    assert lone.drops() == {"message_mismatch": 1}


def test_memory_that_is_not_the_peers_ends_the_qp() -> None:
    lone = selective_nic()
    assert lone.arrive(lone.packet(RC_WRITE_ONLY, 5, 4, SIZE))[0][2] == NAK_REMOTE_ACCESS
    assert lone.state() == "error"
    assert lone.memory() == bytes(SIZE)
