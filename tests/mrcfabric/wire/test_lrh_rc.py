"""RC packets behind an LRH: built, judged and read; every byte string gets an answer, the same from both parsers."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire import lrh
from mrcfabric.wire.fastpath import (
    BAD_LENGTH,
    BAD_OPCODE,
    BAD_TVER,
    FOREIGN_ADDRESS,
    FOREIGN_PARTITION,
    LINK_CONTROL,
    TRUNCATED,
)
from mrcfabric.wire.flow_control import NORMAL, encode
from mrcfabric.wire.lrh import lrh_icrc_ok, vcrc_ok
from mrcfabric.wire.lrh_headers import dissect_lrh
from mrcfabric.wire.lrh_rc import LRH_PEEK_REASONS, LrhControlTemplate, LrhDataTemplate, LrhPeeker
from mrcfabric.wire.roce import read_rc_aeth, read_rc_imm, read_reth
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
from tests.support.lrh_packets import IBTA_SAMPLE, one_of_each_lrh


def data(migrated: bool = True) -> LrhDataTemplate:
    return LrhDataTemplate(0x17, 0x2E, 0x123, sl=2, vl=1, migrated=migrated)


def test_a_middle_packet_by_hand() -> None:
    packet = data().make(RC_WRITE_MIDDLE, 0xABCDEF, b"12345", ack_request=True)
    assert packet[:8].hex() == "10" + "22" + "002e" + "0008" + "0017"
    assert packet[8:20].hex() == "0770ffff" + "00000123" + "80abcdef"
    assert packet[20:28] == b"12345\0\0\0"
    assert len(packet) == 8 * 4 + 2
    assert lrh_icrc_ok(packet)
    assert vcrc_ok(packet)


@pytest.mark.parametrize("opcode", sorted(RC_DATA_OPCODES))
def test_what_is_built_is_read(opcode: int) -> None:
    peek = LrhPeeker(0x2E)
    imm = 0xFEEDBEEF if opcode in RC_IMM_OPCODES else None
    for size, ask, migrated in itertools.product((0, 1, 2, 3, 4, 1_021, 4_096), (False, True), (False, True)):
        payload = bytes(index * 7 & 0xFF for index in range(size))
        packet = data(migrated).make(opcode, 0xFFFFFF, payload, 1 << 63, 0xFFFFFFFE, 123_456, ask, imm)
        reason, mark, found, qp, psn, flags, start, length, slid, migration = peek(packet)
        assert (reason, mark, found, qp, psn) == (None, 0, opcode, 0x123, 0xFFFFFF)
        assert (bool(flags & FLAG_ACK_REQUEST), slid, migration) == (ask, 0x17, migrated)
        assert packet[start : start + length] == payload
        assert lrh_icrc_ok(packet)
        assert vcrc_ok(packet)
        if opcode in RC_STARTS:
            assert read_reth(packet, opcode, start) == (1 << 63, 0xFFFFFFFE, 123_456)
        if imm is not None:
            assert read_rc_imm(packet, start) == imm


def test_acknowledgements_are_read() -> None:
    template = LrhControlTemplate(0x2E, 0x17, 9, sl=2)
    for psn, msn, syndrome in itertools.product((0, 0xFFFFFF), (0, 0xFFFFFF), (RC_ACK_SYNDROME, NAK_SEQUENCE)):
        packet = template.ack(psn, msn, syndrome)
        reason, _, opcode, qp, found, _, start, size, _, _ = LrhPeeker(0x17)(packet)
        assert (reason, opcode, qp, found, size) == (None, RC_ACK, 9, psn, 0)
        assert read_rc_aeth(packet, start) == (syndrome, msn)
        assert lrh_icrc_ok(packet)


def test_a_port_answers_to_all_its_lids() -> None:
    packet = data().make(RC_WRITE_ONLY, 1, b"")
    assert LrhPeeker(0x2C, 2)(packet)[0] is None
    assert LrhPeeker(0x2C, 1)(packet)[0] == FOREIGN_ADDRESS
    assert LrhPeeker(0x2E, 0)(packet)[0] is None


def test_a_mark_of_a_switch_is_told() -> None:
    packet = data().make(RC_WRITE_ONLY, 1, b"")
    packet[12] |= 0x80
    assert LrhPeeker()(packet)[1] == 3
    assert lrh_icrc_ok(packet), "it may change on the way"


def test_every_fault_has_its_reason() -> None:
    good = data().make(RC_WRITE_ONLY, 5, bytes(63), 1, 2, 3)

    def changed(place: int, value: int) -> str | None:
        packet = bytearray(good)
        packet[place] = value
        return LrhPeeker(0x2E)(packet)[0]

    assert changed(0, 0x11) == lrh.BAD_LVER
    assert changed(1, 0x23) == lrh.BAD_LNH
    assert changed(3, 0x2F) == FOREIGN_ADDRESS
    assert changed(5, good[5] + 1) == TRUNCATED
    assert changed(5, good[5] - 1) == BAD_LENGTH
    assert changed(8, 0x04) == changed(8, CNP) == BAD_OPCODE
    assert changed(9, 0x11) == BAD_TVER
    assert changed(8, RC_ACK) == BAD_LENGTH
    assert changed(11, 0x01) == FOREIGN_PARTITION
    assert LrhPeeker()(good[:25])[0] == TRUNCATED
    assert LrhPeeker()(encode(NORMAL, 0, 0, 0))[0] == LINK_CONTROL


@given(st.sampled_from([IBTA_SAMPLE, *one_of_each_lrh()]), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 255))),
       st.integers(-40, 8))  # fmt: skip
def test_both_parsers_judge_any_bytes_alike(good: bytes, changes: list[tuple[int, int]], longer: int) -> None:
    packet = bytearray(good) + bytes(max(0, longer))
    for place, value in changes:
        packet[place % len(packet)] = value
    if longer < 0:
        del packet[longer:]
    reason, *_, start, size, _, _ = LrhPeeker()(packet)
    whole, other = dissect_lrh(packet)
    assert reason is None or reason in LRH_PEEK_REASONS
    if reason != FOREIGN_PARTITION:
        assert reason == other
    if other is None and reason is None:
        assert whole.payload == packet[start : start + size]
        assert whole.icrc_good == lrh_icrc_ok(packet)
