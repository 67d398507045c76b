"""The complete parser of UET packets, and the packet path beside it: they take the same bytes and read the same."""

import random

import pytest

from mrcfabric.wire.ipv6 import Ipv6, Udp
from mrcfabric.wire.trim import trim
from mrcfabric.wire.uet import SUMS, read_write, uet_peeker
from mrcfabric.wire.uet_headers import PdsAck, PdsRequest, PdsSyn, SesFirst, SesMedium, SesSmall, SesStandard
from mrcfabric.wire.uet_layout import (
    FLAG_SYN,
    NEXT_MEDIUM,
    NEXT_SHIFT,
    NEXT_SMALL,
    RUD_REQUEST,
    SES_EOM,
    SES_SOM,
    TYPE_SHIFT,
)
from mrcfabric.wire.uet_packet import dissect, is_uet
from mrcfabric.wire.uet_templates import UetTemplate
from tests.support.packets import one_of_each
from tests.support.roce_packets import one_of_each_rc
from tests.support.uet_packets import FAR, FIRST, NEAR, one_of_each_uet

SUM = pytest.mark.parametrize("crc", SUMS)


@SUM
def test_both_readers_read_the_same(crc: str) -> None:
    peek = uet_peeker(crc=crc)
    for raw in one_of_each_uet(crc):
        packet, reason = dissect(raw, crc=crc)
        found = peek(raw)
        assert reason is found[0] is None
        assert packet.icrc_good is (None if crc == "none" else True)
        assert (found[1], found[12]) == (packet.outer.traffic_class, packet.get(Ipv6).source)
        assert found[13] == packet.get(Udp).source_port
        assert raw[found[10] : found[10] + found[11]] == packet.payload
        head = packet.headers[2]
        assert found[2:5] == (head.type, head.next, head.flags)  # type: ignore[attr-defined]
        if isinstance(head, PdsRequest | PdsSyn):
            assert found[6:8] == (head.psn, head.spdcid)
            assert isinstance(head, PdsSyn) == bool(head.flags & FLAG_SYN)
            ses = packet.headers[-1]
            assert isinstance(ses, SesFirst | SesStandard)
            write = read_write(raw, found[9])
            assert (write.message_id, write.pid, write.resource) == (ses.message_id, ses.pid_on_fep, ses.resource_index)
            assert (write.offset, write.key, write.length) == (ses.buffer_offset, ses.memory_key, ses.request_length)
        elif isinstance(head, PdsAck):
            assert found[6:9] == (head.cack_psn, head.spdcid, head.dpdcid)


@SUM
def test_both_readers_refuse_the_same_of_spoilt_packets(crc: str) -> None:
    draw = random.Random(11)
    peek = uet_peeker(crc=crc)
    originals = one_of_each_uet(crc)
    originals += [bytes(trim(raw, 128, 12)) for raw in originals]
    good = 0
    for _ in range(6_000):
        raw = bytearray(draw.choice(originals))
        for _ in range(draw.randrange(3)):
            raw[draw.choice((draw.randrange(len(raw)), draw.randrange(64))) % len(raw)] = draw.randrange(256)
        if draw.random() < 0.2:
            raw = raw[: draw.randrange(len(raw) + 1)]
        _, reason = dissect(raw, crc=crc)
        found = peek(raw)[0]
        assert (reason is None) == (found is None), (reason, found, raw.hex())
        good += found is None
    assert good > 1_000


def test_every_length_is_read_as_far_as_it_goes() -> None:
    for raw in one_of_each_uet():
        for size in range(len(raw)):
            assert dissect(raw[:size])[1] == "truncated"
            assert dissect(raw[:size], left_out=len(raw) - size)[1] is None
        assert dissect(raw + b"\0\0\0\0")[1] == "length"


@pytest.mark.parametrize(("following", "kind"), [(NEXT_SMALL, SesSmall), (NEXT_MEDIUM, SesMedium)])
def test_requests_of_one_packet(following: int, kind: type[SesSmall] | type[SesMedium]) -> None:
    more = {"initiator": 5, "memory_key": 6} if kind is SesMedium else {}
    ses = kind(request_length=5, pid_on_fep=1, resource_index=2, buffer_offset=3, flags=SES_SOM | SES_EOM, **more)
    body = PdsRequest(RUD_REQUEST, following, 0, 0, 1, 2, 3).emit() + ses.emit() + b"12345"
    udp = Udp(7, 4793, 8 + len(body) + 4)
    raw = Ipv6(payload_length=udp.length, source=NEAR, destination=FAR).emit() + udp.emit() + body + bytes(4)
    packet, reason = dissect(raw)
    assert reason is None
    assert packet.payload == b"12345"
    assert packet.icrc_good is False
    assert packet.headers[-1] == ses
    assert uet_peeker()(raw)[0] is None
    assert RUD_REQUEST << TYPE_SHIFT | following << NEXT_SHIFT == raw[48] << 8 | raw[49]
    assert dissect(raw[:-5] + raw[-4:])[1] == "truncated"


def test_a_trimmed_packet_tells_what_it_carried() -> None:
    whole = UetTemplate(NEAR, FAR).request(5, RUD_REQUEST, 0, 0, 1, 2, 3, FIRST, bytes(4096))
    packet, reason = dissect(trim(whole, 256, 12))
    assert reason is None
    assert (packet.sent, packet.carried, len(packet.payload)) == (4096, 152, 152)
    assert packet.icrc is None


def test_packets_of_others_are_none_of_uet() -> None:
    assert all(map(is_uet, one_of_each_uet()))
    assert not any(is_uet(raw) for raw in one_of_each().values())
    assert not any(is_uet(raw) for raw in one_of_each_rc())
    assert not is_uet(b"")
    assert all(dissect(raw)[1] for raw in one_of_each_rc())
