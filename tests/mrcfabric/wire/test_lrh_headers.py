"""InfiniBand's link headers as tables; a stock tshark reads the same from captures of packets and of link packets."""

from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire import pcapng_writer
from mrcfabric.wire.data_headers import Reth
from mrcfabric.wire.flow_control import encode
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh_headers import FlowControlHeader, Lrh, dissect_link, dissect_lrh
from mrcfabric.wire.pcapng import LINK_ERF, LINK_INFINIBAND, Captured, captured
from mrcfabric.wire.roce_headers import RcBth
from tests.support.lrh_packets import IBTA_SAMPLE, link_packets, one_of_each_lrh
from tests.support.tshark import fields


def capture(kept: int = 1_000) -> tuple[bytes, list[bytes]]:
    """Packets, of which so many bytes were kept, and link packets."""
    packets = [IBTA_SAMPLE, *one_of_each_lrh(sl=3, vl=2), *link_packets()]
    out = pcapng_writer.section("mrcfabric")
    out += pcapng_writer.interface("a>b", link_type=LINK_ERF)
    for one in packets:
        record = pcapng_writer.record(1_500_000_000, one[:kept] if type(one) is bytes else one, len(one))
        out += pcapng_writer.packet(0, 1_500_000_000, record, len(record))
    return out, packets


def test_the_sample_packet_of_the_specification_is_read() -> None:
    packet, reason = dissect_lrh(IBTA_SAMPLE)
    assert reason is None
    assert packet.icrc_good
    assert packet.get(Lrh) == Lrh(vl=7, sl=1, dlid=0x375C, packet_length=14, slid=0x17D2)
    assert (packet.get(RcBth).dest_qp, packet.get(RcBth).psn) == (0x87B1B3, 0x0DEC2A)
    assert packet.get(Reth).dma_len == packet.sent == 14


@given(st.binary(max_size=80))
def test_any_bytes_get_an_answer(data: bytes) -> None:
    dissect_lrh(data)
    packet, reason = dissect_link(data)
    assert reason is not None or packet.get(FlowControlHeader).emit() == data


def test_a_link_packet_is_read() -> None:
    packet, reason = dissect_link(encode(1, 4, 70, 90))
    header = packet.get(FlowControlHeader)
    assert (reason, header.operand, header.vl, header.fctbs, header.fccl) == (None, 1, 4, 70, 90)


@pytest.mark.parametrize("kept", [1_000, 28])
def test_the_reader_takes_back_packets_and_link_packets(kept: int) -> None:
    out, packets = capture(kept)
    found = list(captured(BytesIO(out), "x"))
    for number, (one, packet) in enumerate(zip(found, packets, strict=True), 1):
        left = packet[:kept]
        assert one == Captured(number, left, len(packet) - len(left), infiniband=True)
        assert (type(one.packet) is ControlFrame) == (type(packet) is ControlFrame)


def test_packets_of_link_type_247_are_read_too() -> None:
    out = pcapng_writer.section("x") + pcapng_writer.interface("a>b", link_type=LINK_INFINIBAND)
    out += pcapng_writer.packet(0, 0, IBTA_SAMPLE, len(IBTA_SAMPLE))
    assert list(captured(BytesIO(out), "x")) == [Captured(1, IBTA_SAMPLE, 0, infiniband=True)]


def test_another_record_of_the_extensible_format_is_skipped() -> None:
    out = pcapng_writer.section("x") + pcapng_writer.interface("a>b", link_type=LINK_ERF)
    record = bytearray(pcapng_writer.record(0, b"123456", 6))
    record[8] = 2
    for data in (record, record[:9]):
        out += pcapng_writer.packet(0, 0, data, len(data))
    found = [one.skipped for one in captured(BytesIO(out), "x")]
    assert found == ["a record of type 2, not of InfiniBand", "a record without its header"]


@pytest.mark.integration
def test_tshark_reads_the_same(tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    out, packets = capture()
    file.write_bytes(out)
    names = ("lrh.vl", "lrh.sl", "lrh.dlid", "lrh.slid", "lrh.pktlen", "bth.opcode", "bth.destqp", "bth.psn")
    asked = [f"infiniband.{name}" for name in names]
    sums = ("infiniband.invariant.crc", "infiniband.variant.crc")
    link = [f"infiniband_link.{name}" for name in ("op", "fctbs", "vl", "fccl", "lpcrc")]
    rows = fields(file, (*asked, *sums, "_ws.malformed", *link, "frame.time_epoch"), scripts=())
    for packet, row in zip(packets, rows, strict=True):
        assert row["frame.time_epoch"] == ["1.500000000"]
        assert not row["_ws.malformed"]
        if isinstance(packet, ControlFrame):
            header = dissect_link(packet)[0].get(FlowControlHeader)
            wanted_link = header.operand, header.fctbs, header.vl, header.fccl, header.lpcrc
            assert tuple(int(row[name][0], 0) for name in link) == wanted_link
            continue
        ours, _ = dissect_lrh(packet)
        lrh, bth = ours.get(Lrh), ours.get(RcBth)
        wanted = lrh.vl, lrh.sl, lrh.dlid, lrh.slid, lrh.packet_length, bth.opcode, bth.dest_qp, bth.psn
        assert tuple(int(row[name][0], 0) for name in asked) == wanted
        assert int(row[sums[0]][0], 0).to_bytes(4, "big") == packet[-6:-2]
        assert int(row[sums[1]][0], 0).to_bytes(2, "big") == packet[-2:]
