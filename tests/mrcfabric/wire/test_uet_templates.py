"""Packets that templates build, against the tables of headers, for every kind and every sum."""

from zlib import crc32

import pytest

from mrcfabric.wire.crc32c import crc32c
from mrcfabric.wire.dscp import CE, ECT_0, Dscp, dscp_of, ecn_of
from mrcfabric.wire.uet_headers import (
    PdsAck,
    PdsAckCredit,
    PdsAckNscc,
    PdsControl,
    PdsNack,
    PdsRequest,
    PdsRequestCc,
    PdsSyn,
    SesFirst,
    SesResponse,
    SesStandard,
)
from mrcfabric.wire.uet_layout import (
    CC_CREDIT,
    CC_NSCC,
    CC_REQUESTS,
    CONTROL_PROBE,
    FLAG_RETX,
    FLAG_SYN,
    NACK_TRIMMED,
    REQUESTS,
    RESPONSE,
)
from mrcfabric.wire.uet_templates import UetTemplate, credit_state, nscc_state, request_overhead
from tests.support.uet_packets import FAR, FIRST, LAST, NEAR, UET_PAYLOAD

TARGET = {"pid_on_fep": 0x123, "resource_index": 0x456, "buffer_offset": 1 << 63, "ri_generation": 1, "job_id": 2}
THERE = UetTemplate(NEAR, FAR)


def test_a_request_by_hand() -> None:
    packet = THERE.request(0xC0DE, 2, 0, -5, 70, 7, 9, LAST, UET_PAYLOAD)
    length = 8 + 12 + 44 + 61 + 4
    assert packet[:8].hex() == "61200000" + f"{length:04x}" + "1140"
    assert packet[8:40] == NEAR + FAR
    assert packet[40:48].hex() == "c0de12b9" + f"{length:04x}" + "0000"
    assert packet[104:165] == UET_PAYLOAD
    assert int.from_bytes(packet[165:], "big") == crc32(packet[48:165])
    assert len(packet) == 61 + request_overhead(False, "crc32") == 40 + length


@pytest.mark.parametrize("kind", sorted(REQUESTS))
def test_requests_are_what_the_tables_say(kind: int) -> None:
    for flags, ses in ((0, FIRST), (FLAG_SYN, FIRST), (FLAG_RETX, LAST)):
        packet = THERE.request(5, kind, flags, -5, 0xFFFFFFFE, 7, 9, ses, UET_PAYLOAD, 0x12345678)
        if flags == FLAG_SYN:
            head = PdsSyn(kind, 3, flags, -5, 0xFFFFFFFE, 7, 0, 9).emit()
        else:
            head = PdsRequest(kind, 3, flags, -5, 0xFFFFFFFE, 7, 9).emit()
        if kind in CC_REQUESTS:
            head += PdsRequestCc(0x12, 0x345678).emit()
        named = {"message_id": 0xABCD, "initiator": 0xDEADBEEF, "memory_key": 0xFEDC, "request_length": 9_000, **TARGET}
        if ses is FIRST:
            head += SesFirst(header_data=FIRST.data, flags=FIRST.flags, **named).emit()
        else:
            head += SesStandard(payload_length=61, message_offset=8_939, flags=LAST.flags, **named).emit()
        assert packet[48:-4] == head + UET_PAYLOAD
        assert len(head) + 52 == request_overhead(kind in CC_REQUESTS, "crc32")
        assert (dscp_of(packet), ecn_of(packet)) == (8 if flags & FLAG_RETX else 4, ECT_0)


def test_answers_are_what_the_tables_say() -> None:
    ack = THERE.ack(5, 0x20, -3, 70, 7, 9, CC_NSCC, 32, -64, 6, nscc_state(3, 0xC0, 4, 5))
    nscc = PdsAckNscc(mpr=32, sack_psn_offset=-64, sack_bitmap=6, service_time=3, restore_cwnd=1, rcv_cwnd_pen=64,
                      rcvd_bytes=4, ooo_count=5)  # fmt: skip
    assert ack[48:-4] == PdsAck(8, 0, 0x20, -3, 70, 7, 9).emit() + nscc.emit()
    ack = THERE.ack(5, 0, 3, 70, 7, 9, CC_CREDIT, 32, 64, 6, credit_state(77, 5), (RESPONSE, 1, 4, 0x01000002, 9_000))
    credit = PdsAckCredit(mpr=32, sack_psn_offset=64, sack_bitmap=6, credit=77, ooo_count=5)
    response = SesResponse(message_id=4, ri_generation=1, job_id=2, modified_length=9_000)
    assert ack[48:-4] == PdsAck(8, 4, 0, 3, 70, 7, 9).emit() + credit.emit() + response.emit()
    assert THERE.nack(5, 0, NACK_TRIMMED, 70, 7, 9, 3)[48:-4] == PdsNack(10, 0, 0, 1, 70, 7, 9, payload=3).emit()
    probe = THERE.control(5, CONTROL_PROBE, 0, 70, 7, 9, 3, 4)
    assert probe[48:-4] == PdsControl(11, CONTROL_PROBE, 0, 70, 7, 9, 4, 3).emit()
    for packet in (ack, probe):
        assert (dscp_of(packet), ecn_of(packet)) == (46, 0)


def test_sums_and_code_points_are_settings() -> None:
    roles = Dscp(trimmable=10, trimmable_retx=11, control=40)
    for crc, size in (("crc32", 4), ("crc32c", 4), ("none", 0)):
        template = UetTemplate(NEAR, FAR, dscp=roles, crc=crc, hop_limit=7)
        packet = template.request(5, 2, FLAG_RETX, 0, 1, 2, 3, FIRST, UET_PAYLOAD)
        assert len(packet) == 61 + request_overhead(False, crc) == 165 + size
        assert (dscp_of(packet), packet[7]) == (11, 7)
        probe = template.control(5, CONTROL_PROBE, 0, 70, 7, 9, 3, 4)
        assert dscp_of(probe) == 40
        if crc == "crc32c":
            assert int.from_bytes(packet[-4:], "big") == crc32c(packet[48:-4])
            assert int.from_bytes(probe[-4:], "big") == crc32c(probe[48:-4])
    assert CE != ECT_0
