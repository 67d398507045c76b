"""UET packets as the packet path reads them: every byte string gets an answer, and faults have their reasons."""

import random

import pytest

from mrcfabric.naming import port_mac
from mrcfabric.wire import fastpath
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.pfc import encode
from mrcfabric.wire.trim import trim
from mrcfabric.wire.uet import (
    SUMS,
    UET_PEEK_REASONS,
    AckCc,
    read_ack_cc,
    read_credit_target,
    read_payload_word,
    read_response,
    read_target,
    read_write,
    uet_peeker,
    uet_sum_ok,
)
from mrcfabric.wire.uet_layout import (
    ACK_CC,
    CC_CREDIT,
    CC_NSCC,
    CONTROL,
    FLAG_MARKED,
    FLAG_SYN,
    NACK,
    RC_OK,
    REQUESTS,
    RESPONSE,
    RUD_CC_REQUEST,
    RUD_REQUEST,
)
from mrcfabric.wire.uet_templates import UetTemplate, credit_state, nscc_state
from tests.support.uet_packets import FAR, FIRST, LAST, NEAR, UET_PAYLOAD, one_of_each_uet

THERE = UetTemplate(NEAR, FAR)
SUM = pytest.mark.parametrize("crc", SUMS)


@SUM
@pytest.mark.parametrize("kind", sorted(REQUESTS))
def test_requests_are_read(kind: int, crc: str) -> None:
    peek = uet_peeker(FAR, crc=crc)
    for flags, ses in ((0, FIRST), (FLAG_SYN, LAST)):
        for size in (0, 1, 61, 4_096, 8_192):
            payload = bytes(size)
            template = UetTemplate(NEAR, FAR, crc=crc)
            packet = template.request(0xFFFF, kind, flags, -5, 0xFFFFFFFE, 7, 9, ses, payload, 0x12345678)
            (reason, traffic, found, following, got_flags, field, psn, spdcid, dpdcid, place, start, length, source,
             sport) = peek(packet)  # fmt: skip
            assert (reason, traffic, found, following, got_flags) == (None, 4 << 2 | 2, kind, 3, flags)
            assert (field, psn, spdcid, dpdcid, length, source, sport) == (0xFFFB, 0xFFFFFFFE, 7, 9, size, NEAR, 0xFFFF)
            assert read_write(packet, place) == ses
            assert read_target(packet, place) == (0x123, 0x456)
            assert packet[start : start + length] == payload
            assert uet_sum_ok(packet, crc)
            if kind >= RUD_CC_REQUEST:
                assert read_credit_target(packet) == (0x12, 0x345678)


def test_answers_are_read() -> None:
    peek = uet_peeker(FAR)
    ack = THERE.ack(5, FLAG_MARKED, -3, 70, 7, 9, CC_NSCC, 32, -64, 1 << 63, nscc_state(3, 0xC0, 0x123456, 5))
    assert peek(ack)[:9] == (None, 46 << 2, ACK_CC, 0, FLAG_MARKED, 0xFFFD, 70, 7, 9)
    assert read_ack_cc(ack) == AckCc(0, 32, -64, 1 << 63, 3, 0xC0, 0x123456, 0, 5)
    ack = THERE.ack(5, 0, 3, 70, 7, 9, CC_CREDIT, 32, 64, 6, credit_state(0x123456, 5), (RESPONSE, RC_OK, 4, 1, 9_000))
    assert read_ack_cc(ack) == AckCc(1, 32, 64, 6, 0, 0, 0, 0x123456, 5)
    assert read_response(ack, peek(ack)[9]) == (RESPONSE, RC_OK, 4, 9_000)
    nack = THERE.nack(5, 0, 0x0D, 70, 7, 9, 0x89ABCDEF)
    assert peek(nack)[2:9] == (NACK, 0, 0, 0x0D00, 70, 7, 9)
    assert read_payload_word(nack) == 0x89ABCDEF
    control = THERE.control(5, 6, 0, 70, 7, 9, 3, 4)
    assert peek(control)[2:9] == (CONTROL, 6, 0, 4, 70, 7, 9)
    assert read_payload_word(control) == 3


def test_every_fault_has_its_reason() -> None:
    good = THERE.request(5, RUD_REQUEST, 0, 0, 1, 2, 3, LAST, UET_PAYLOAD)
    peek = uet_peeker(FAR)

    def changed(place: int, value: int) -> str | None:
        packet = bytearray(good)
        packet[place] = value
        return peek(packet)[0]

    assert changed(0, 0x46) == fastpath.NO_IPV6
    assert changed(6, 6) == fastpath.NO_UDP
    assert changed(39, good[39] ^ 1) == fastpath.FOREIGN_ADDRESS
    assert changed(43, 0) == fastpath.FOREIGN_PORT
    assert changed(45, good[45] ^ 4) == fastpath.BAD_LENGTH
    assert changed(48, 0x20) == fastpath.BAD_OPCODE, "a type of connectionless requests"
    assert changed(48, 0x13) == fastpath.BAD_OPCODE, "a response behind a request"
    assert changed(60, 0x02) == fastpath.BAD_OPCODE, "a read"
    assert changed(61, 0x42) == fastpath.BAD_TVER
    assert changed(60 + 35, 62) == fastpath.BAD_LENGTH, "payload length"
    assert {peek(good[:size])[0] for size in range(len(good))} == {fastpath.TRUNCATED}
    assert peek(good + b"1234")[0] == fastpath.BAD_LENGTH
    assert uet_peeker(NEAR)(good)[0] == fastpath.FOREIGN_ADDRESS
    assert uet_peeker()(good)[0] is None


def test_a_trimmed_packet_is_good_while_its_headers_are_there() -> None:
    roles = Dscp()
    for kind, least in ((RUD_REQUEST, 104), (RUD_CC_REQUEST, 108)):
        packet = THERE.request(5, kind, FLAG_SYN, 0, 1, 2, 3, FIRST, bytes(4096))
        peek = uet_peeker(FAR)
        for size in (128, 256):
            for dscp in (roles.trimmed, roles.trimmed_lasthop):
                cut = trim(packet, size, dscp)
                assert peek(cut)[0] is None
                assert (peek(cut)[1] >> 2, peek(cut)[11]) == (dscp, -1)
                assert read_write(cut, peek(cut)[9]) == FIRST
        assert peek(trim(packet, least, roles.trimmed))[0] is None
        assert peek(trim(packet, least - 1, roles.trimmed))[0] == fastpath.TRUNCATED
        assert peek(packet[:256])[0] == fastpath.TRUNCATED, "cut without saying so"


def test_a_link_control_frame_is_no_packet() -> None:
    pause = encode(port_mac("h003", 1), {3: 65_535})
    assert uet_peeker(FAR)(pause)[0] == fastpath.LINK_CONTROL


@SUM
def test_any_flipped_bit_behind_udp_is_noticed(crc: str) -> None:
    if crc == "none":
        return
    for packet in map(bytearray, one_of_each_uet(crc)[::5]):
        for bit in range(48 * 8, len(packet) * 8, 7):
            packet[bit // 8] ^= 1 << bit % 8
            assert not uet_sum_ok(packet, crc)
            packet[bit // 8] ^= 1 << bit % 8
        assert uet_sum_ok(packet, crc)


@SUM
def test_every_byte_string_gets_an_answer(crc: str) -> None:
    draw = random.Random(5)
    peek = uet_peeker(FAR, crc=crc)
    good = one_of_each_uet(crc)
    for _ in range(4_000):
        packet = bytearray(draw.choice(good))
        for _ in range(draw.randrange(4)):
            packet[draw.randrange(len(packet))] = draw.randrange(256)
        packet = packet[: draw.randrange(len(packet) + 1)] if draw.random() < 0.3 else packet
        reason, *rest = peek(packet)
        assert reason is None or reason in UET_PEEK_REASONS
        if reason is None and rest[10] >= 0:
            assert rest[9] + rest[10] <= len(packet)
    for _ in range(1_000):
        reason = peek(draw.randbytes(draw.randrange(200)))[0]
        assert reason in UET_PEEK_REASONS
