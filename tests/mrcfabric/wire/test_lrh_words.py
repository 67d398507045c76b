"""Packets of InfiniBand in words."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.describe import describe
from mrcfabric.wire.flow_control import INIT, NORMAL, encode
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh_rc import LrhControlTemplate
from mrcfabric.wire.smp import GET, LFT, NODE_INFO, SET, answer, request, trap
from mrcfabric.wire.smp import encode as encode_smp
from tests.support.lrh_packets import IBTA_SAMPLE, link_packets, one_of_each_lrh


def test_the_words_of_the_sample_of_the_specification() -> None:
    description = describe(IBTA_SAMPLE)
    assert description.reason is None
    assert description.summary == "RC WRITE Only to QP 0x87b1b3, PSN 912426, LID 0x17d2 to 0x375c, VL 7"
    text = description.as_text()
    for line in ("LRH  at 0, 8 bytes", "    vl             7", "(56 bytes and the VCRC)", "VCRC  at 56, 2 bytes"):
        assert line in text
    assert [layer.name for layer in description.layers] == ["LRH", "BTH", "RETH", "VCRC"]


def test_the_words_of_acknowledgements_and_link_packets() -> None:
    template = LrhControlTemplate(3, 9, 0x123, vl=1)
    said = {0x1F: "RC Acknowledge", 0x60: "RC Acknowledge (NAK)"}
    for syndrome, words in said.items():
        assert describe(template.ack(5, 6, syndrome)).summary == f"{words} to QP 0x123, PSN 5, LID 0x3 to 0x9, VL 1"
    normal, init = encode(NORMAL, 2, 70, 90), encode(INIT, 0, 0, 512)
    assert describe(normal).summary == "flow control of VL 2: 70 blocks sent, up to 90 granted"
    assert describe(bytes(init)).summary == "flow control of VL 0: begins the link, 0 blocks sent, up to 512 granted"
    assert "(5760 bytes, modulo 2^18)" in describe(normal).as_text()
    bad = ControlFrame(normal[:5] + b"x")
    assert (describe(bad, infiniband=True).reason, describe(bad, infiniband=True).summary) == (
        "control_lpcrc", "link packet",
    )  # fmt: skip


def test_the_words_of_management() -> None:
    asked = request(SET, LFT, (1, 3, 2), 77, modifier=4)
    assert describe(encode_smp(asked)).summary == "SMP Set LinearForwardingTable, along 1,3,2, 0 of 3"
    assert describe(encode_smp(answer(asked))).summary.startswith("SMP answer LinearForwardingTable, back along 1,3,2")
    text = describe(encode_smp(request(GET, NODE_INFO, (1,), 5))).as_text()
    for words in ("(directed route)", "(Get)", "(NodeInfo)", "(management)", "(permissive)"):
        assert words in text
    assert describe(encode_smp(trap(b"x"), 5, 1)).summary == "SMP Trap Notice, by LID"


@pytest.mark.parametrize("place", [20, -1, -3])
def test_a_wrong_sum_is_said(place: int) -> None:
    packet = bytearray(IBTA_SAMPLE)
    packet[place] ^= 1
    description = describe(packet)
    assert description.reason == "vcrc"
    assert "Malformed: vcrc" in description.as_text()


@pytest.mark.parametrize("kept", [1, 8, 15, 20, 40, 57])
def test_what_the_capture_left_out_makes_nothing_malformed(kept: int) -> None:
    for packet in (IBTA_SAMPLE, bytes(encode_smp(request(GET, NODE_INFO, (1,), 5)))):
        description = describe(packet[:kept], left_out=len(packet) - kept, infiniband=True)
        assert description.reason is None
        assert description.notes == [f"The capture left out the last {len(packet) - kept} bytes."]
        assert description.size == len(packet)


@pytest.mark.parametrize("packet", one_of_each_lrh(sl=3, vl=6))
def test_every_packet_has_words_and_so_has_every_part_of_it(packet: bytes) -> None:
    assert describe(packet).reason is None
    for size in range(len(packet)):
        description = describe(packet[:size], infiniband=True)
        assert description.reason == "truncated"
        assert "Malformed: truncated" in description.as_text()


@given(st.sampled_from([*one_of_each_lrh(), *link_packets()]), st.binary(max_size=90), st.integers(0, 90))
def test_any_bytes_have_words(packet: bytes, noise: bytes, cut: int) -> None:
    for data in (noise, packet[:cut] + noise, ControlFrame(noise)):
        for left_out in (0, 9):
            description = describe(data, left_out=left_out, infiniband=True)
            assert description.as_text()
            json.dumps(description.as_json())
