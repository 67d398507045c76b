"""Whose answers are: learned from requests, forgotten beyond a bound, never raised by anybody's bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.naming import nic_address
from mrcfabric.uet_ends import CONTEXTS_MAX, UNKNOWN_QPN, ContextEnds, is_uet
from mrcfabric.wire.uet_layout import CC_NSCC, CONTROL_CLOSE, CONTROL_CREDIT, FLAG_SYN, RUD_REQUEST
from mrcfabric.wire.uet_templates import UetTemplate
from tests.support.packets import one_of_each
from tests.support.roce_packets import one_of_each_rc
from tests.support.uet_packets import FIRST, one_of_each_uet

A, B = nic_address(1), nic_address(2)
THERE, BACK = UetTemplate(A, B), UetTemplate(B, A)


def request(context: int, initiator: int, target: int, flags: int = 0) -> bytearray:
    write = FIRST._replace(pid=target >> 12, resource=target & 0xFFF, initiator=initiator)
    return THERE.request(5, RUD_REQUEST, flags, 0, 77, context, 0, write, b"1234")


def qpn_of(ends: ContextEnds, packet: bytearray) -> int:
    seen = ends.see(packet)
    assert seen is not None
    return seen.qpn


def test_only_its_own_packets_are_taken_for_uet() -> None:
    assert all(is_uet(packet) for packet in one_of_each_uet())
    assert not any(is_uet(bytes(packet)) for packet in one_of_each().values())
    assert not any(is_uet(bytes(packet)) for packet in one_of_each_rc(None, False))


@pytest.mark.parametrize("flags", [0, FLAG_SYN])
@pytest.mark.parametrize(("initiator", "target"), [(1, 0x2345), (0xFFFFFF, 0xFFF), (0x1000, 0x123456)])
def test_a_request_tells_whose_answers_are(initiator: int, target: int, flags: int) -> None:
    ends = ContextEnds()
    ack = BACK.ack(1, 0, 0, 77, 9, 7, CC_NSCC, 1, 0, 0, 0)
    assert qpn_of(ends, ack) == UNKNOWN_QPN
    assert qpn_of(ends, request(7, initiator, target, flags)) == target
    assert qpn_of(ends, ack) == initiator
    assert qpn_of(ends, BACK.nack(1, 0, 1, 77, 9, 7)) == initiator
    assert qpn_of(ends, BACK.control(1, CONTROL_CREDIT, 0, 0, 9, 7)) == initiator
    assert qpn_of(ends, THERE.control(1, CONTROL_CLOSE, 0, 0, 7, 9)) == target
    assert qpn_of(ends, BACK.nack(1, 0, 1, 77, 9, 8)) == UNKNOWN_QPN
    assert qpn_of(ends, request(7, initiator + 1, target)) == target
    assert qpn_of(ends, ack) == initiator + 1, "the number is used again"


def test_it_remembers_so_many() -> None:
    ends = ContextEnds()
    for context in range(CONTEXTS_MAX + 5):
        ends.see(request(context, 100_000 + context, 1))
    assert len(ends) == CONTEXTS_MAX
    known = [qpn_of(ends, BACK.nack(1, 0, 1, 77, 9, context)) != UNKNOWN_QPN for context in (0, 4, 5, CONTEXTS_MAX + 4)]
    assert known == [False, False, True, True]


@given(st.sampled_from(one_of_each_uet()), st.integers(0, 400), st.integers(0, 255))
def test_any_part_of_any_packet_is_seen(packet: bytes, place: int, value: int) -> None:
    harmed = bytearray(packet)
    harmed[place % len(harmed)] = value
    ends = ContextEnds()
    for part in (harmed, harmed[: place + 1]):
        if is_uet(part):
            ends.see(part)
