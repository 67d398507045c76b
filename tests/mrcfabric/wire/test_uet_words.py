"""UET packets in words."""

import json
import random

import pytest

from mrcfabric.wire.describe import describe
from mrcfabric.wire.trim import trim
from mrcfabric.wire.uet import SUMS
from mrcfabric.wire.uet_headers import PdsRequest, SesFirst
from mrcfabric.wire.uet_layout import NACK_OUT_OF_ORDER, RC_BAD_KEY, RESPONSE
from mrcfabric.wire.uet_templates import UetTemplate, nscc_state
from mrcfabric.wire.uet_words import is_uet_header
from tests.support.uet_packets import FAR, FIRST, LAST, NEAR, UET_PAYLOAD, one_of_each_uet

THERE = UetTemplate(NEAR, FAR)


def test_a_request() -> None:
    told = describe(THERE.request(5, 2, 0x0C, -5, 70, 7, 3, FIRST, UET_PAYLOAD))
    assert told.summary == (
        "UET RUD Request, asks for an ACK, SYN, WRITE of message 43981, bytes from 0 of 9000, PSN 70, context 7"
    )
    text = told.as_text()
    assert "flags             12  (asks for an ACK, SYN)" in text
    assert "clear_psn_offset  -5  (PSN 65)" in text
    assert "(HD, SOM)" in text
    assert "Payload  61 bytes" in text
    assert told.reason is None
    later = describe(THERE.request(5, 3, 0x10, -5, 70, 7, 9, LAST, UET_PAYLOAD))
    assert "ROD Request, retransmission, WRITE of message 43981, bytes from 8939 of 9000" in later.summary
    assert "context 7 to 9" in later.summary


def test_answers() -> None:
    ack = THERE.ack(5, 0x20, -3, 70, 7, 9, 0, 32, 1, 6, nscc_state(3, 0, 4, 5), (RESPONSE, RC_BAD_KEY, 4, 1, 0))
    told = describe(ack)
    assert told.summary == "UET ACK with CC, marked, all up to PSN 70, message 4: bad memory key, context 7 to 9"
    text = told.as_text()
    for words in ("(PSN 67)", "(4,096 PSNs)", "(384 ns)", "(1,024 bytes)", "(bad memory key)"):
        assert words in text
    nack = describe(THERE.nack(5, 0, NACK_OUT_OF_ORDER, 70, 7, 9, 68))
    assert nack.summary == "UET NACK, out of order, PSN 70, context 7 to 9"
    probe = describe(THERE.control(5, 6, 0, 70, 7, 9, 68, 3))
    assert probe.summary == "UET Control, probe, PSN 70, context 7 to 9"


def test_a_trimmed_one_says_so() -> None:
    told = describe(trim(THERE.request(5, 2, 0, 0, 70, 7, 3, FIRST, bytes(4_096)), 256, 12))
    assert "trimmed, WRITE" in told.summary
    assert told.notes == ["Trimmed: 3948 bytes were cut off."]
    assert told.reason is None


@pytest.mark.parametrize("crc", SUMS)
def test_every_packet_is_told_whichever_sum_it_ends_in(crc: str) -> None:
    for raw in one_of_each_uet(crc):
        told = describe(raw)
        untold = crc == "none" and told.packet.find(SesFirst) is not None
        assert told.reason == ("icrc" if untold else None), told.summary
        assert told.summary.startswith("UET ")
        json.dumps(told.as_json())
    spoilt = bytearray(one_of_each_uet()[0])
    spoilt[-1] ^= 1
    assert describe(spoilt).reason == "icrc"


def test_nothing_that_a_peer_sends_raises() -> None:
    draw = random.Random(7)
    good = one_of_each_uet()
    for _ in range(2_000):
        raw = bytearray(draw.choice(good))
        for _ in range(draw.randrange(1, 4)):
            raw[draw.randrange(42, len(raw))] = draw.randrange(256)
        told = describe(raw[: draw.randrange(44, len(raw) + 1)])
        assert told.as_text()
        json.dumps(told.as_json())


def test_what_is_a_header_of_uet() -> None:
    kinds = {type(one) for raw in one_of_each_uet() for one in describe(raw).packet.headers if is_uet_header(one)}
    assert {PdsRequest, SesFirst} <= kinds
    assert len(kinds) == 11
