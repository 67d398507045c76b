"""Writing captures: our own reader takes every packet back, and so does tshark, with names, stamps and drops."""

import json
import subprocess
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire import pcapng, pcapng_writer
from mrcfabric.wire.pcapng import Captured, captured
from tests.support.packages import program
from tests.support.tshark import fields, tshark
from tests.vectors import wire as golden

LINK = "p0-t0-0>p0-t1-2"


def capture_of(*packets: bytes) -> bytes:
    out = pcapng_writer.section("mrcfabric") + pcapng_writer.interface(LINK)
    return out + b"".join(pcapng_writer.packet(0, 7, packet, len(packet)) for packet in packets)


@given(st.lists(st.binary(min_size=1, max_size=99).map(lambda rest: b"\x60" + rest), max_size=5), st.text())
def test_the_reader_takes_back_every_packet(packets: list[bytes], comment: str) -> None:
    out = pcapng_writer.section("mrcfabric", comment) + pcapng_writer.interface(LINK, comment, snap_bytes=200)
    for at_ns, packet in enumerate(packets):
        out += pcapng_writer.names({golden.SOURCE: "h000"})
        out += pcapng_writer.packet(0, at_ns, packet, len(packet) + 5, comment)
    out += pcapng_writer.statistics(0, 0, 9, 10, 3)
    expected = [Captured(number, packet, 5) for number, packet in enumerate(packets, 1)]
    assert list(captured(BytesIO(out), "x")) == expected


@given(st.integers(0, 3), st.text(max_size=9), st.integers(0, (1 << 64) - 1))
def test_every_block_is_whole_words_with_its_length_at_both_ends(extra: int, text: str, at_ns: int) -> None:
    blocks = (
        pcapng_writer.section(text, text),
        pcapng_writer.interface(text, text, snap_bytes=64, speed_bps=1),
        pcapng_writer.names({golden.SOURCE: text.replace("\0", "")}),
        pcapng_writer.packet(0, at_ns, bytes(extra), 9, text),
        pcapng_writer.statistics(1, 0, at_ns, 1, 0),
    )
    for block in blocks:
        assert len(block) % 4 == 0
        assert int.from_bytes(block[4:8], "little") == int.from_bytes(block[-4:], "little") == len(block)


def test_a_long_text_is_cut_between_characters() -> None:
    block = pcapng_writer.section("x", "ä" * pcapng_writer.TEXT_BYTES_MAX)
    assert len(block) < pcapng_writer.TEXT_BYTES_MAX + 100
    assert len(pcapng_writer.section("x", "a" + "ä" * pcapng_writer.TEXT_BYTES_MAX)) == len(block)


def test_a_packet_with_no_comment_has_no_options() -> None:
    assert len(pcapng_writer.packet(0, 1, golden.SACK, len(golden.SACK))) == 32 + len(golden.SACK)
    assert pcapng_writer.packet(0, 1, b"", 0)[:4] == pcapng.ENHANCED_PACKET.to_bytes(4, "little")


@pytest.mark.integration
def test_tshark_reads_names_stamps_comments_and_lengths(tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    at_ns = 1_700_000_000_123_456_789
    out = pcapng_writer.section("mrcfabric 1", "fabric demo")
    out += pcapng_writer.interface(LINK, "an uplink", speed_bps=100 * 10**9)
    out += pcapng_writer.interface("p0-t1-2>p0-t0-0", snap_bytes=120)
    out += pcapng_writer.names({golden.SOURCE: "h000", golden.DESTINATION: "h001"})
    out += pcapng_writer.packet(0, 1234, golden.SACK, len(golden.SACK), "wall 5 s")
    out += pcapng_writer.packet(1, at_ns, golden.WRITE[:120], len(golden.WRITE))
    out += pcapng_writer.statistics(0, 0, 2000, 7, 6)
    file.write_bytes(out)
    names = ("frame.interface_name", "frame.interface_description", "frame.time_epoch", "frame.len", "frame.cap_len")
    first, second = fields(file, (*names, "frame.comment", "ipv6.src_host"), "-Nn")
    assert [*first.values()] == [
        [LINK], ["an uplink"], ["0.000001234"], [str(len(golden.SACK))], [str(len(golden.SACK))], ["wall 5 s"],
        ["h000", "h000"],
    ]  # fmt: skip
    assert second["frame.time_epoch"] == ["1700000000.123456789"]
    assert (second["frame.len"], second["frame.cap_len"]) == ([str(len(golden.WRITE))], ["120"])


@pytest.mark.integration
def test_wiresharks_own_tools_find_nothing_wrong_with_a_file(tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    file.write_bytes(capture_of(golden.SACK, golden.NACK) + pcapng_writer.statistics(0, 0, 9, 5, 3))
    program("tshark")
    told = subprocess.run(["capinfos", "-M", str(file)], capture_output=True, check=True, text=True).stdout
    assert "mrcfabric" in told
    assert LINK in told
    packets = json.loads(tshark("-r", str(file), "-Tjson"))
    assert len(packets) == 2
