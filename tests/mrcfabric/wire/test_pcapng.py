"""Reading captures."""

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pcapng import BLOCK_BYTES_MAX, Captured, captured
from mrcfabric.wire.pfc import encode
from tests.support.captures import block, enhanced, interface, section, simple
from tests.vectors import wire as golden

ETHERNET = bytes(12) + b"\x86\xdd"


def read(data: bytes) -> list[Captured]:
    return list(captured(BytesIO(data), "x.pcapng"))


@pytest.mark.parametrize("order", ["<", ">"])
def test_packets_come_out_of_every_kind_of_block_and_link(order: str) -> None:
    capture = (
        section(order)
        + interface(229, order=order)
        + interface(1, order=order)
        + interface(101, order=order)
        + block(5, b"statistics are skipped", order)
        + enhanced(golden.SACK, order=order)
        + enhanced(ETHERNET + golden.NACK + b"\0\0", 1, order=order)
        + enhanced(bytes(12) + b"\x81\x00\x00\x07\x86\xdd" + golden.PROBE, 1, order=order)
        + enhanced(golden.WRITE, 2, order=order)
        + simple(golden.ACKNOWLEDGE, order=order)
    )
    assert read(capture) == [
        Captured(1, golden.SACK, 0),
        Captured(2, golden.NACK, 0),
        Captured(3, golden.PROBE, 0),
        Captured(4, golden.WRITE, 0),
        Captured(5, golden.ACKNOWLEDGE, 0),
    ]


def test_a_second_section_has_its_own_byte_order_and_interfaces() -> None:
    capture = section() + interface(1) + enhanced(ETHERNET + golden.SACK)
    capture += section(">") + interface(229, order=">") + enhanced(golden.SACK, order=">")
    assert [record.packet for record in read(capture)] == [golden.SACK] * 2


def test_a_link_control_frame_comes_out_as_one() -> None:
    frame = encode(bytes(6), {3: 9})
    capture = section() + interface(1) + interface(229)
    capture += enhanced(frame) + enhanced(frame[:60]) + enhanced(frame[:20], original=64) + enhanced(frame, 1)
    found = read(capture)
    assert [record.packet for record in found] == [frame, frame[:60], frame[:20], b""]
    assert [type(record.packet) is ControlFrame for record in found] == [True, True, True, False]
    assert found[2].cut_bytes == 44
    assert found[3].skipped == "not IPv6"


def test_what_is_no_ipv6_is_skipped_with_a_word() -> None:
    capture = section() + interface(1) + interface(101)
    capture += enhanced(bytes(12) + b"\x08\x06" + bytes(28)) + enhanced(b"\x45" + bytes(19), 1) + enhanced(b"", 1)
    assert [record.skipped for record in read(capture)] == ["EtherType 0x0806, not IPv6", "not IPv6", "not IPv6"]


def test_what_the_capture_left_out_is_counted() -> None:
    capture = section() + interface(229, 64) + enhanced(golden.SACK[:64], original=140) + simple(golden.SACK[:64], 140)
    assert [(len(record.packet), record.cut_bytes) for record in read(capture)] == [(64, 76)] * 2


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "an empty file"),
        (b"hello world", "no pcapng file"),
        (bytes.fromhex("d4c3b2a1") + bytes(20), "classic pcap .*editcap"),
        (section()[:20], "offset 0: the file ends in the middle"),
        (section() + b"\x01", "offset 28: the file ends in the middle"),
        (section()[:8] + bytes(20), "no byte-order magic"),
        (section() + enhanced(b"x"), "interface 0, which nobody described"),
        (section() + interface(147) + enhanced(b"x"), "link type 147"),
        (section() + block(1, b""), "too short"),
        (section() + interface(229) + block(6, bytes(12)), "too short"),
        (section() + interface(229) + block(6, bytes(12) + b"\xff" * 8), "claims 4294967295 bytes"),
        (section() + interface(229)[:-4] + bytes(4), "lengths of the block differ"),
        (section() + b"\x01\0\0\0\x0d\0\0\0" + bytes(5), "a block of 13 bytes"),
        (section() + b"\x01\0\0\0" + (BLOCK_BYTES_MAX + 4).to_bytes(4, "little"), "a block of 16777220 bytes"),
        (section() + interface(229) * 1025, "more than 1024 interfaces"),
    ],
)
def test_a_broken_file_is_one_clear_error(data: bytes, words: str) -> None:
    with pytest.raises(ConfigError, match=r"^x\.pcapng.*" + words):
        read(data)


@given(data=st.binary(max_size=80), position=st.integers(0, 200), value=st.integers(0, 255))
def test_nothing_but_config_errors(data: bytes, position: int, value: int) -> None:
    whole = bytearray(section() + interface(1) + enhanced(ETHERNET + golden.SACK))
    whole[position % len(whole)] = value
    for capture in (section() + data, bytes(whole), bytes(whole[:position])):
        try:
            read(capture)
        except ConfigError as error:
            problem = str(error)
        else:
            problem = ""
        assert problem == "" or problem.startswith("x.pcapng")
