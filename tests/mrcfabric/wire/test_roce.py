"""RoCE packets, plain and pinned: built, judged and read; every byte string gets an answer."""

import itertools
import random

import pytest

from mrcfabric.naming import nic_address, port_mac
from mrcfabric.wire import fastpath, usid
from mrcfabric.wire.icrc import icrc, icrc_from
from mrcfabric.wire.options import WireOptions
from mrcfabric.wire.pfc import encode
from mrcfabric.wire.roce import (
    RC_PEEK_REASONS,
    CnpTemplate,
    RcControlTemplate,
    RcDataTemplate,
    rc_icrc_ok,
    rc_peeker,
    read_rc_aeth,
    read_rc_imm,
    read_reth,
    read_selective_aeth,
)
from mrcfabric.wire.roce_layout import (
    CNP,
    FLAG_ACK_REQUEST,
    NAK_SEQUENCE,
    RC_ACK,
    RC_ACK_SYNDROME,
    RC_DATA_OPCODES,
    RC_IMM_OPCODES,
    RC_STARTS,
    RC_WRITE_MIDDLE,
    RC_WRITE_ONLY,
)

SRC, DST = nic_address(3), nic_address(70_000)
CONTAINER = usid.build(0xFCBBBB00, (0x4001, 0x8002, 0x4003, 0xC004))
OUTERS = pytest.mark.parametrize("outer", [None, CONTAINER], ids=["plain", "pinned"])
SELECTIVE = pytest.mark.parametrize("selective", [False, True], ids=["rc", "selective"])


def data(outer: bytes | None = None, selective: bool = False, dest_qp: int = 0x123) -> RcDataTemplate:
    return RcDataTemplate(SRC, DST, dest_qp, 0xC0DE, dscp=26, outer=outer, selective=selective)


def test_a_middle_packet_by_hand() -> None:
    packet = data().make(RC_WRITE_MIDDLE, 0xABCDEF, b"12345", ack_request=True)
    assert packet[:8].hex() == "66a00000" + f"{8 + 12 + 8 + 4:04x}" + "1140"
    assert packet[8:40] == SRC + DST
    assert packet[40:48].hex() == "c0de12b7" + "0020" + "0000"
    assert packet[48:60].hex() == "0730ffff" + "00000123" + "80abcdef"
    assert packet[60:68] == b"12345\0\0\0"
    assert len(packet) == 72


def test_a_cnp_by_hand() -> None:
    packet = CnpTemplate(SRC, DST, 0x123, 0xC0DE, dscp=48).cnp()
    assert packet[:2].hex() == "6c00", "code point 48, not ECN-capable"
    assert packet[48:60].hex() == "8100ffff" + "40000123" + "00000000"
    assert packet[60:76] == bytes(16)
    assert len(packet) == 80


@SELECTIVE
@OUTERS
@pytest.mark.parametrize("opcode", sorted(RC_DATA_OPCODES))
def test_what_is_built_is_read(opcode: int, outer: bytes | None, selective: bool) -> None:
    template, peek = data(outer, selective), rc_peeker(DST, selective=selective)
    imm = 0xFEEDBEEF if opcode in RC_IMM_OPCODES else None
    for size, ask in itertools.product((0, 1, 2, 3, 4, 1_021, 4_096, 9_000), (False, True)):
        payload = bytes(index * 7 & 0xFF for index in range(size))
        packet = template.make(opcode, 0xFFFFFF, payload, 1 << 63, 0xFFFFFFFE, 123_456, ask, imm)
        reason, traffic, found, qp, psn, flags, start, length, source, sport = peek(packet)
        assert (reason, traffic, found, qp, psn) == (None, 26 << 2 | 2, opcode, 0x123, 0xFFFFFF)
        assert (bool(flags & FLAG_ACK_REQUEST), source, sport) == (ask, SRC, 0xC0DE)
        assert packet[start : start + length] == payload
        assert rc_icrc_ok(packet)
        if opcode in RC_STARTS or selective:
            assert read_reth(packet, opcode, start) == (1 << 63, 0xFFFFFFFE, 123_456)
        if imm is not None:
            assert read_rc_imm(packet, start) == imm


@SELECTIVE
@OUTERS
def test_acknowledgements_and_cnps_are_read(outer: bytes | None, selective: bool) -> None:
    template = RcControlTemplate(SRC, DST, 9, 0xFFFF, dscp=48, outer=outer, selective=selective)
    peek = rc_peeker(DST, selective=selective)
    for psn, msn, syndrome in itertools.product((0, 0xFFFFFF), (0, 0xFFFFFF), (RC_ACK_SYNDROME, NAK_SEQUENCE, 0x2A)):
        packet = template.ack(psn, msn, syndrome, 77)
        reason, traffic, opcode, qp, found, _, start, size, _, sport = peek(packet)
        assert (reason, traffic, opcode, qp, found, size, sport) == (None, 48 << 2, RC_ACK, 9, psn, 0, 0xFFFF)
        if selective:
            assert read_selective_aeth(packet, start) == (syndrome, msn, 77)
        else:
            assert read_rc_aeth(packet, start) == (syndrome, msn)
        assert rc_icrc_ok(packet)
    packet = CnpTemplate(SRC, DST, 9, 0xFFFF, dscp=40, outer=outer, selective=selective).cnp()
    assert peek(packet)[:5] == (None, 40 << 2, CNP, 9, 0)
    assert rc_icrc_ok(packet)


def test_a_pinned_packet_is_the_plain_one_behind_an_outer_header() -> None:
    plain = data().make(RC_WRITE_ONLY, 5, b"abc", 1, 2, 3)
    pinned = data(CONTAINER).make(RC_WRITE_ONLY, 5, b"abc", 1, 2, 3)
    assert pinned[40:] == plain
    assert pinned[24:40] == CONTAINER
    assert pinned[8:24] == SRC
    assert int.from_bytes(pinned[4:6], "big") == len(plain)
    assert icrc(pinned) == icrc_from(plain, 0) == icrc_from(pinned, 40)


def test_what_changes_in_flight_does_not_spoil_the_sum() -> None:
    for outer in (None, CONTAINER):
        packet = data(outer).make(RC_WRITE_ONLY, 5, bytes(64), 1, 2, 3)
        inner = 0 if outer is None else 40
        for place in {0: 0x0F, 1: 0xFF, 2: 0xFF, 3: 0xFF, 7: 0xFF}.items():
            packet[inner + place[0]] ^= place[1]
        packet[7] ^= 0xFF
        assert rc_icrc_ok(packet)
        for place in (inner + 6, inner + 40, inner + 48, inner + 60, len(packet) - 5):
            packet[place] ^= 1
            assert not rc_icrc_ok(packet) or place == inner + 6
            packet[place] ^= 1


@OUTERS
def test_every_fault_has_its_reason(outer: bytes | None) -> None:
    base = 0 if outer is None else 40
    good = data(outer).make(RC_WRITE_ONLY, 5, bytes(63), 1, 2, 3)
    peek = rc_peeker(DST)

    def changed(place: int, value: int) -> str | None:
        packet = bytearray(good)
        packet[base + place] = value
        return peek(packet)[0]

    assert changed(0, 0x46) == fastpath.NO_IPV6
    assert changed(6, 6) == (fastpath.NO_TUNNEL if outer is None else fastpath.NO_UDP)
    assert changed(39, good[base + 39] ^ 1) == fastpath.FOREIGN_ADDRESS
    assert changed(42, 0) == fastpath.FOREIGN_PORT
    assert changed(45, good[base + 45] ^ 4) == fastpath.BAD_LENGTH
    assert changed(48, 0x04) == fastpath.BAD_OPCODE
    assert changed(48, 0xC6) == fastpath.BAD_OPCODE, "MRC's"
    assert changed(49, 0x11) == fastpath.BAD_TVER
    odd = bytearray(good) + b"x"
    for place in (base + 5, base + 45, 5 if base else base + 5):
        odd[place] = good[place] + 1
    assert peek(odd)[0] == fastpath.BAD_PADDING
    assert changed(50, 0x12) == fastpath.FOREIGN_PARTITION
    assert {peek(good[:size])[0] for size in range(len(good))} <= {fastpath.TRUNCATED, fastpath.BAD_LENGTH}
    assert peek(good + b"1234")[0] == fastpath.BAD_LENGTH
    assert rc_peeker(SRC)(good)[0] == fastpath.FOREIGN_ADDRESS
    assert rc_peeker()(good)[0] is None


def test_a_link_control_frame_is_no_packet() -> None:
    pause = encode(port_mac("h003", 1), {3: 65_535})
    assert rc_peeker(DST)(pause)[0] == fastpath.LINK_CONTROL
    assert rc_peeker(DST)(bytes(pause))[0] == fastpath.NO_IPV6


def test_a_peer_with_options_of_its_own() -> None:
    options = WireOptions(p_key=0x8001, hop_limit=7)
    packet = RcDataTemplate(SRC, DST, 1, 0xC000, dscp=26, options=options).make(RC_WRITE_MIDDLE, 5, b"abcd")
    assert packet[7] == 7
    assert rc_peeker(DST, options=options)(packet)[0] is None
    assert rc_peeker(DST)(packet)[0] == fastpath.FOREIGN_PARTITION


@SELECTIVE
def test_every_byte_string_gets_an_answer(selective: bool) -> None:
    draw = random.Random(5)
    peek = rc_peeker(DST, selective=selective)
    good = [
        data(outer, selective).make(opcode, 5, bytes(20), imm=1 if opcode in RC_IMM_OPCODES else None)
        for outer in (None, CONTAINER)
        for opcode in RC_DATA_OPCODES
    ]
    for _ in range(4_000):
        packet = bytearray(draw.choice(good))
        for _ in range(draw.randrange(4)):
            packet[draw.randrange(len(packet))] = draw.randrange(256)
        packet = packet[: draw.randrange(len(packet) + 1)] if draw.random() < 0.3 else packet
        reason, *rest = peek(packet)
        assert reason is None or reason in RC_PEEK_REASONS
        if reason is None:
            assert rest[5] + rest[6] + 4 <= len(packet)


def test_a_template_remembers_few_lengths() -> None:
    template = data()
    for size in range(200):
        template.make(RC_WRITE_MIDDLE, 5, bytes(size * 4))
    assert len(template._known) <= 16
