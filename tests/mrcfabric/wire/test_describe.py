"""Packets in words."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.naming import nic_address, port_mac
from mrcfabric.wire.describe import describe
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.options import WireOptions
from mrcfabric.wire.pfc import encode, with_fcs
from mrcfabric.wire.roce import CnpTemplate, RcDataTemplate
from mrcfabric.wire.roce_layout import RC_WRITE_FIRST
from mrcfabric.wire.trim import trim
from mrcfabric.wire.usid import build
from tests.support.packets import data_packet, one_of_each
from tests.vectors import wire as golden

PACKETS = one_of_each()
CONTAINER = build(0xFCBBBB00, (0x4001, 0xC004))


def test_the_words_of_a_write() -> None:
    text = describe(golden.WRITE).as_text().splitlines()
    assert text[0] == "140 bytes: WRITE Only with Immediate to QP 0xabc, PSN 258, EV 0x12345678 a ts"
    for line in (
        "Outer IPv6  at 0, 40 bytes",
        "    traffic_class   0x12  (DSCP 4 trimmable, ECT(0))",
        "    destination     5f00:0:4000:8001:4001:c002::  (uSID container, block 5f000000, uSIDs 4000 8001 4001 c002)",
        "TSETH  at 104, 4 bytes",
        "    va       0x10000ffe",
        "Payload  5 bytes: 6865 6c6c 6f",
        f"ICRC  0x{golden.WRITE[-4:].hex()}  (good)",
    ):
        assert line in text


def test_the_words_of_a_sack() -> None:
    text = describe(golden.SACK).as_text()
    for words in ("(SKIP_ONCE)", "acknowledges PSN 254", "3 received, bit 0 is PSN 257", "1024 PSNs", "4352 bytes"):
        assert words in text


def test_an_endpoint_response_is_read_as_the_options_say() -> None:
    assert "(EV Probe)" in describe(golden.ENDPOINT_RESPONSE).as_text()
    text = describe(golden.ENDPOINT_RESPONSE, options=WireOptions(eeth_op_shift=0)).as_text()
    assert "(Port Status Update)" in text
    assert "reserved_at_bit_9" in text


def test_json_has_every_field_as_a_number() -> None:
    answer = json.loads(json.dumps(describe(golden.NACK).as_json()))
    neth = answer["layers"][-1]
    assert (neth["name"], neth["offset"], neth["size"]) == ("NETH", 100, 20)
    assert neth["fields"]["nack_psn"] == 0x105
    assert neth["meanings"]["nack_reason"] == "TRIMMED"
    assert (answer["reason"], answer["icrc_good"]) == (None, True)


def test_a_trimmed_packet_is_no_malformed_one() -> None:
    description = describe(trim(data_packet(0xC7, bytes(4096)), 256, Dscp().trimmed_lasthop))
    assert description.reason is None
    assert description.summary.startswith("trimmed WRITE Middle")
    assert description.notes == ["Trimmed: 3964 bytes were cut off; the ICRC does not count."]


def test_payload_is_what_a_trimmed_packet_still_has() -> None:
    description = describe(trim(data_packet(0xC7, bytes(4096)), 256, Dscp().trimmed))
    answer = description.as_json()
    assert (answer["payload_bytes"], answer["payload_bytes_sent"], answer["missing_bytes"]) == (136, 4096, 3964)
    assert "Payload  136 bytes of 4096: " in description.as_text()


@pytest.mark.parametrize("kept", [1, 39, 40, 100, 110, 119, 120, 200, 4219])
@pytest.mark.parametrize("trimmed", [False, True])
def test_what_the_capture_left_out_makes_nothing_malformed(kept: int, trimmed: bool) -> None:
    packet = data_packet(0xC7, bytes(4096))
    if trimmed:
        packet = trim(packet, 256, Dscp().trimmed)
        kept = min(kept, 255)
    left_out = len(packet) - kept
    description = describe(packet[:kept], left_out=left_out)
    assert description.reason is None
    assert description.notes[-1] == f"The capture left out the last {left_out} bytes."
    answer = description.as_json()
    assert (answer["size"], answer["cut_by_capture"], answer["icrc"]) == (len(packet), left_out, None)
    if kept >= 120:
        assert (answer["payload_bytes"], answer["payload_bytes_sent"]) == (136 if trimmed else 4096, 4096)
        assert answer["missing_bytes"] == (3964 if trimmed else 0)


@pytest.mark.parametrize("lost", [1, 7])
def test_a_packet_that_was_short_before_the_capture_stays_truncated(lost: int) -> None:
    arrived = len(golden.WRITE) - lost
    for size in range(arrived + 1):
        # Behind the last of its headers there is nothing that the capture could have kept from us.
        reason = describe(golden.WRITE[:size], left_out=arrived - size).reason
        assert reason == ("truncated" if size >= 128 else None)


def test_a_packet_longer_than_it_says_is_so_whatever_the_capture_kept() -> None:
    assert describe(golden.WRITE[:130], left_out=14).reason == "length"


def test_a_wrong_sum_is_said() -> None:
    packet = data_packet(0xC7)
    packet[-1] ^= 1
    description = describe(packet)
    assert description.reason == "icrc"
    assert description.as_text().splitlines()[-1] == "Malformed: icrc"


@pytest.mark.parametrize("name", PACKETS)
def test_every_packet_has_words_and_so_has_every_part_of_it(name: str) -> None:
    assert describe(PACKETS[name]).reason is None
    for size in range(len(PACKETS[name])):
        description = describe(PACKETS[name][:size])
        assert description.reason == "truncated"
        assert "Malformed: truncated" in description.as_text()


@given(data=st.binary(max_size=200))
def test_random_bytes_have_words_too(data: bytes) -> None:
    description = describe(data)
    assert description.as_text()
    assert json.dumps(description.as_json())


def test_the_words_of_a_roce_packet_plain_and_pinned() -> None:
    rest = ["UDP", "BTH", "RETH"]
    for outer, names in ((None, ["IPv6", *rest]), (CONTAINER, ["Outer IPv6", "Inner IPv6", *rest])):
        template = RcDataTemplate(nic_address(1), nic_address(2), 0x123, 0xC0DE, dscp=26, outer=outer)
        description = describe(template.make(RC_WRITE_FIRST, 77, b"12345", 0x1000, 5, 9_000, ack_request=True))
        assert [layer.name for layer in description.layers] == names
        assert description.reason is None
        assert description.summary == "RC WRITE First to QP 0x123, PSN 77, source port 0xc0de a"
        text = description.as_text()
        assert "Payload  5 bytes: 3132 3334 35" in text
        assert "(good)" in text
        assert ("uSID container" in text) is (outer is not None)


def test_the_words_of_a_nak_a_cnp_and_a_wrong_sum() -> None:
    template = CnpTemplate(nic_address(1), nic_address(2), 9, 0xC000, dscp=48)
    said = {
        0x1F: "RC Acknowledge", 0x60: "RC Acknowledge (NAK, PSN sequence error)", 0x2A: "RC Acknowledge (RNR NAK)",
        0x7F: "RC Acknowledge (NAK, unknown)",
    }  # fmt: skip
    for syndrome, words in said.items():
        assert describe(template.ack(5, 6, syndrome)).summary == f"{words} to QP 0x9, PSN 5, source port 0xc000"
    cnp = template.cnp()
    assert describe(cnp).summary == "Congestion Notification to QP 0x9, PSN 0, source port 0xc000"
    cnp[-1] ^= 1
    assert describe(cnp).reason == "icrc"
    assert describe(cnp[:-4]).reason == "truncated"
    assert describe(cnp[:-4], left_out=4).reason is None


def test_the_words_of_a_pause() -> None:
    frame = encode(port_mac("p0-t0-3", 5), {3: 0xFFFF, 0: 0})
    description = describe(bytes(frame))
    assert description.reason is None
    assert description.summary == "PFC from 02:40:05:00:00:03: class 0 goes on, class 3 pauses"
    text = description.as_text()
    for words in (
        "classes      0x9  (0, 3)",
        "(pause class 3 for 65535 x 512 bit times)",
        "(not enabled)",
        "FCS  at 60",
    ):
        assert words in text
    assert describe(encode(bytes(6), {})).summary.endswith(": about no class")
    assert describe(frame[:60]).reason is None, "most captures keep no check sequence"
    assert describe(frame[:33]).reason == "control_size"
    assert describe(ControlFrame(frame[:33]), left_out=31).notes == ["The capture left out the last 31 bytes."]
    assert describe(ControlFrame(b"")).summary == "link control frame"
    odd = with_fcs(frame[:14] + b"\0\1" + frame[16:60])
    assert (describe(odd).reason, describe(odd).summary) == ("control_type", "link control frame")


@given(st.binary(max_size=200), st.sampled_from([b"", encode(bytes(6), {1: 1})[:14], b"\x60\0\0\0\0\x20\x11\x40"]))
def test_roce_and_pauses_of_any_bytes_are_described(rest: bytes, head: bytes) -> None:
    for left_out in (0, 9):
        description = describe(head + rest, left_out=left_out)
        assert description.as_text()
        json.dumps(description.as_json())
