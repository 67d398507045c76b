"""Tables of UET's headers against bytes by hand."""

import random
from typing import Any

import pytest

from mrcfabric.wire import uet_headers
from mrcfabric.wire.header import Header, Kind
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
    SesMedium,
    SesResponse,
    SesSmall,
    SesStandard,
)

ALL = [
    kind for kind in vars(uet_headers).values()
    if isinstance(kind, type) and issubclass(kind, Header) and kind is not Header
]  # fmt: skip


def test_requests_by_hand() -> None:
    # Type 2, next header 3, flags SYN and AR: 00010 0011 0001100.
    syn = PdsSyn(type=2, next=3, flags=0x0C, clear_psn_offset=-1, psn=0x89ABCDEF, spdcid=0x1234, pdc_info=1,
                 psn_offset=0x567)  # fmt: skip
    assert syn.emit().hex() == "118c" + "ffff" + "89abcdef" + "1234" + "1567"
    request = PdsRequest(type=3, next=3, flags=0x10, clear_psn_offset=-2, psn=1, spdcid=2, dpdcid=3)
    assert request.emit().hex() == "1990" + "fffe" + "00000001" + "0002" + "0003"
    assert PdsRequestCc(ccc_id=0x78, credit_target=0x123456).emit().hex() == "78123456"


def test_answers_by_hand() -> None:
    ack = PdsAck(type=8, next=4, flags=0x20, ack_psn_offset=-3, cack_psn=10, spdcid=1, dpdcid=2)
    assert ack.emit().hex() == "4220" + "fffd" + "0000000a" + "0001" + "0002"
    nscc = PdsAckNscc(mpr=8, sack_psn_offset=1, sack_bitmap=1 << 63, service_time=0x1122, restore_cwnd=1,
                      rcv_cwnd_pen=64, rcvd_bytes=0x334455, ooo_count=0x6677)  # fmt: skip
    assert nscc.emit().hex() == "0008" + "0001" + "8000000000000000" + "1122" + "c0" + "334455" + "6677"
    credit = PdsAckCredit(mpr=8, credit=0x112233, ooo_count=0x4455)
    assert credit.emit().hex() == "1008" + "0000" + "00" * 8 + "112233" + "000000" + "4455"
    nack = PdsNack(type=10, next=0, flags=0, nack_code=0x0D, nack_psn=5, spdcid=1, dpdcid=2, payload=4)
    assert nack.emit().hex() == "5000" + "0d00" + "00000005" + "0001" + "0002" + "00000004"
    probe = PdsControl(type=11, next=6, flags=0, probe_opaque=0xBEEF, psn=5, spdcid=1, dpdcid=2, payload=4)
    assert probe.emit().hex() == "5b00" + "beef" + "00000005" + "0001" + "0002" + "00000004"


def test_semantics_by_hand() -> None:
    common: dict[str, Any] = {"pid_on_fep": 0x123, "resource_index": 0x456, "buffer_offset": 0x1020304050607080}
    target = "02" + "030405" + "0123" + "0456" + "1020304050607080"
    named: dict[str, Any] = {"ri_generation": 2, "job_id": 0x030405}
    first = SesFirst(message_id=0xABCD, initiator=0xDEADBEEF, memory_key=7, header_data=9, request_length=10, flags=5,
                     **common, **named)  # fmt: skip
    end = "deadbeef" + "0000000000000007"
    assert first.emit().hex() == "0105abcd" + target + end + "0000000000000009" + "0000000a"
    later = SesStandard(message_id=0xABCD, initiator=0xDEADBEEF, memory_key=7, payload_length=0x2345,
                        message_offset=0x11223344, request_length=10, flags=2, **common, **named)  # fmt: skip
    assert later.emit().hex() == "0102abcd" + target + end + "00002345" + "11223344" + "0000000a"
    assert SesSmall(request_length=0x2345, flags=3, **common, **named).emit().hex() == "01032345" + target
    medium = SesMedium(request_length=0x2345, flags=3, initiator=0xDEADBEEF, memory_key=7, **common, **named)
    assert medium.emit().hex() == "01032345" + target + end
    response = SesResponse(message_id=0xABCD, list=1, return_code=0x1C, modified_length=10, **named)
    assert response.emit().hex() == "411cabcd" + "02030405" + "0000000a"


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_what_is_emitted_is_parsed(kind: type[Header]) -> None:
    draw = random.Random(3)
    for _ in range(50):
        values = {}
        for field in kind.FIELDS:
            if field.kind is Kind.SIGNED:
                values[field.name] = draw.randrange(-(1 << field.bits - 1), 1 << field.bits - 1)
            elif field.kind is Kind.UNSIGNED:
                values[field.name] = draw.randrange(1 << field.bits)
        header = kind(**values)
        assert kind.parse(header.emit() + b"more") == header
