"""UET packets: `uet`. Whatever the bytes, both readers return and agree, and the words can be printed."""

from functools import cache

from mrcfabric.naming import nic_address
from mrcfabric.wire import uet_packet
from mrcfabric.wire.describe import describe
from mrcfabric.wire.ipv6 import Ipv6, Udp
from mrcfabric.wire.trim import trim
from mrcfabric.wire.uet import (
    SUMS,
    UET_PEEK_REASONS,
    UetPeek,
    Write,
    read_ack_cc,
    read_credit_target,
    read_payload_word,
    read_response,
    read_write,
    uet_peeker,
    uet_sum_ok,
)
from mrcfabric.wire.uet_headers import PdsAckCredit, PdsAckNscc, PdsRequestCc, SesFirst, SesResponse, SesStandard
from mrcfabric.wire.uet_layout import (
    ACK_CC,
    CC_CREDIT,
    CC_REQUESTS,
    CONTROL,
    CONTROL_NAMES,
    FLAG_AR,
    FLAG_SYN,
    NACK,
    NACK_NAMES,
    NEXT_RESPONSE,
    NEXT_STANDARD,
    REQUESTS,
    SES_EOM,
    SES_SOM,
)
from mrcfabric.wire.uet_templates import UetTemplate, credit_state, nscc_state

_CRCS = ("crc32", "none", "crc32c")


@cache
def _peeker(crc: str) -> UetPeek:
    return uet_peeker(crc=crc)


def uet(data: bytes) -> None:
    """The first byte chooses the sum; the rest is a packet, through both readers and the words."""
    crc, raw = _CRCS[(data[0] if data else 0) % len(_CRCS)], data[1:]
    full, full_reason = uet_packet.dissect(raw, crc=crc)
    (reason, traffic, kind, following, flags, _, psn, spdcid, _, ses, start, size, source, sport) = _peeker(crc)(raw)
    assert (reason is None) == (full_reason is None), f"packet path says {reason}, complete parser {full_reason}"
    words = describe(raw)
    assert len(words.as_text()) < 20_000
    assert set(words.as_json()) >= {"size", "reason", "layers"}
    if reason is not None:
        assert reason in UET_PEEK_REASONS
        return
    assert (traffic, source, sport) == (full.outer.traffic_class, full.get(Ipv6).source, full.get(Udp).source_port)
    head = full.headers[2]
    told = [getattr(head, name) for name in ("type", "next", "flags")]
    assert told == [kind, following, flags]
    assert getattr(head, "spdcid", spdcid) == spdcid
    assert psn in (getattr(head, name, None) for name in ("psn", "cack_psn", "nack_psn"))
    if size >= 0:
        assert raw[start : start + size] == full.payload
        if full.icrc_good is not None:
            assert uet_sum_ok(raw, crc) == full.icrc_good
    last = full.headers[-1]
    if kind in REQUESTS and following == NEXT_STANDARD:
        assert isinstance(last, SesFirst | SesStandard)
        write = read_write(raw, ses)
        assert (write.offset, write.key, write.length) == (last.buffer_offset, last.memory_key, last.request_length)
    if kind in CC_REQUESTS:
        extra = full.get(PdsRequestCc)
        assert read_credit_target(raw) == (extra.ccc_id, extra.credit_target)
    if kind == ACK_CC:
        cc = read_ack_cc(raw)
        extension = full.find(PdsAckNscc) or full.get(PdsAckCredit)
        assert (cc.kind, cc.base, cc.bitmap) == (extension.cc_type, extension.sack_psn_offset, extension.sack_bitmap)
    if following == NEXT_RESPONSE and isinstance(last, SesResponse):
        assert read_response(raw, ses) == (last.opcode, last.return_code, last.message_id, last.modified_length)
    if kind in (NACK, CONTROL):
        assert read_payload_word(raw) == getattr(head, "payload", None)


def uet_seeds() -> list[bytes]:
    """A packet of every kind, with each sum, and a trimmed one."""
    found = []
    first = Write(SES_SOM, 5, 1, 0x12, 0x345, 1 << 40, 9, 7, 0, 0, 900)
    for number, crc in enumerate(_CRCS):
        assert crc in SUMS
        there, mark = UetTemplate(nic_address(3), nic_address(4), crc=crc), bytes((number,))
        packets = [
            there.request(0xC000, kind, flags, -1, 70, 1, 2, write, bytes(40), 0x01000002)
            for kind in sorted(REQUESTS)
            for flags in (0, FLAG_SYN | FLAG_AR)
            for write in (first, first._replace(flags=SES_EOM, message_offset=860))
        ]
        packets.append(trim(packets[0], 128, 12))
        packets.append(there.ack(1, 0, -1, 70, 1, 2, 0, 32, 1, 5, nscc_state(1, 2, 3, 4), (1, 1, 5, 1, 900)))
        packets.append(there.ack(1, 0, 1, 70, 1, 2, CC_CREDIT, 32, 1, 5, credit_state(1, 2)))
        packets += [there.nack(1, 0, code, 70, 1, 2, 71) for code in sorted(NACK_NAMES)[:4]]
        packets += [there.control(1, kind, 0, 70, 1, 2, 71, 72) for kind in range(len(CONTROL_NAMES))]
        found += [mark + bytes(packet) for packet in packets]
    return found
