"""Programs that have never heard of us read our RoCE packets and PFC frames without a complaint; so do our scripts."""

from pathlib import Path
from typing import Any

import pytest

from mrcfabric.naming import port_mac
from mrcfabric.wire import pcapng_writer
from mrcfabric.wire.ack_headers import Aeth
from mrcfabric.wire.data_headers import ImmDt, Reth
from mrcfabric.wire.ipv6 import Udp
from mrcfabric.wire.pcapng import LINK_ETHERNET
from mrcfabric.wire.pfc import encode
from mrcfabric.wire.roce_headers import RcBth
from mrcfabric.wire.roce_layout import CNP
from mrcfabric.wire.roce_packet import dissect
from mrcfabric.wire.usid import build
from tests.support.roce_packets import one_of_each_rc
from tests.support.tshark import DISSECTORS, fields

pytestmark = pytest.mark.integration

CONTAINER = build(0xFCBBBB00, (0x4001, 0x8002, 0x4003, 0xC004))
PACKETS = [*one_of_each_rc(), *one_of_each_rc(CONTAINER)]
BTH = {
    "infiniband.bth.opcode": "opcode", "infiniband.bth.destqp": "dest_qp", "infiniband.bth.psn": "psn",
    "infiniband.bth.a": "a", "infiniband.bth.padcnt": "pad_count", "infiniband.bth.p_key": "p_key",
    "infiniband.bth.tver": "tver", "infiniband.bth.se": "se", "infiniband.bth.m": "m",
}  # fmt: skip
RETH = {"infiniband.reth.va": "va", "infiniband.reth.r_key": "r_key", "infiniband.reth.dmalen": "dma_len"}
AETH = {"infiniband.aeth.syndrome": "syndrome", "infiniband.aeth.msn": "msn"}
IMM = {"infiniband.immdt": "immediate"}
COMPLAINTS = ("_ws.malformed", "_ws.expert.severity", "_ws.short")
# RoCE sends a UDP checksum of zero over IPv6 too (IBTA A17); Wireshark wants to be told that it may be.
ZERO = ("-o", "udp.ignore_ipv6_zero_checksum:TRUE")
SCRIPTS = pytest.mark.parametrize("scripts", [(), DISSECTORS], ids=["stock", "ours"])


def number(text: str) -> int:
    """A number, a truth, or the bytes of an immediate."""
    if text in ("True", "False"):
        return int(text == "True")
    return int(text, 16) if len(text) == 8 and text.isalnum() and not text.startswith("0x") else int(text, 0)


def of_packets(file: Path, packets: list[bytes]) -> Path:
    out = [pcapng_writer.section("mrcfabric"), pcapng_writer.interface("a>b")]
    out += [pcapng_writer.packet(0, at_ns, packet, len(packet)) for at_ns, packet in enumerate(packets)]
    file.write_bytes(b"".join(out))
    return file


@SCRIPTS
def test_every_packet_is_read_as_we_read_it(tmp_path: Path, scripts: tuple[Path, ...]) -> None:
    names = (*BTH, *RETH, *AETH, *IMM, "udp.srcport", "infiniband.invariant.crc", *COMPLAINTS)
    rows = fields(of_packets(tmp_path / "x.pcapng", PACKETS), names, *ZERO, scripts=scripts)
    assert len(rows) == len(PACKETS)
    for row, raw in zip(rows, PACKETS, strict=True):
        packet, reason = dissect(raw)
        assert reason is None
        assert not any(row[name] for name in COMPLAINTS), row
        for table, kind in ((BTH, RcBth), (RETH, Reth), (AETH, Aeth), (IMM, ImmDt)):
            header: Any = packet.find(kind)
            for name, attribute in table.items():
                expected = [] if header is None else [getattr(header, attribute)]
                # The immediate stands there twice, as a header and as its field.
                assert sorted({number(text) for text in row[name]}) == expected, (name, row)
        assert row["udp.srcport"] == [str(packet.get(Udp).source_port)]
        # Wireshark 4.0 shows no sum of a CNP.
        shown = [] if packet.get(RcBth).opcode == CNP else [int.from_bytes(raw[-4:], "big")]
        assert [number(text) for text in row["infiniband.invariant.crc"]] == shown


@SCRIPTS
def test_every_pause_is_read_as_we_wrote_it(tmp_path: Path, scripts: tuple[Path, ...]) -> None:
    pauses = [{}, {3: 0xFFFF}, {0: 1, 7: 0}, dict.fromkeys(range(8), 0x1234)]
    frames = [encode(port_mac("p0-t0-3", 5), quanta) for quanta in pauses]
    out = [pcapng_writer.section("mrcfabric"), pcapng_writer.interface("a>b", link_type=LINK_ETHERNET)]
    out += [pcapng_writer.packet(0, at_ns, frame, len(frame)) for at_ns, frame in enumerate(frames)]
    file = tmp_path / "x.pcapng"
    file.write_bytes(b"".join(out))
    times = [f"macc.cbfc.pause_time.c{one}" for one in range(8)]
    asked = ("eth.src", "macc.opcode", "macc.cbfc.enbv", "eth.fcs.status", *times, *COMPLAINTS)
    for row, quanta in zip(fields(file, asked, "-o", "eth.check_fcs:TRUE", scripts=scripts), pauses, strict=True):
        assert not any(row[name] for name in COMPLAINTS), row
        assert row["eth.src"] == ["02:40:05:00:00:03"]
        assert row["eth.fcs.status"] == ["1"], "the check sequence is good"
        assert number(row["macc.opcode"][0]) == 0x0101
        assert number(row["macc.cbfc.enbv"][0]) == sum(1 << one for one in quanta)
        assert [number(row[name][0]) for name in times] == [quanta.get(one, 0) for one in range(8)]


def test_scapy_finds_every_sum_right() -> None:
    pytest.importorskip("scapy", reason="scapy is not installed")
    from scapy.contrib import roce
    from scapy.layers.inet6 import IPv6

    for raw in one_of_each_rc():
        layers = IPv6(raw)
        bth = layers.getlayer(roce.BTH)
        assert bth is not None
        packet, _ = dissect(raw)
        ours = packet.get(RcBth)
        assert (bth.opcode, bth.dqpn, bth.psn, bth.ackreq, bth.becn, bth.padcount) == (
            ours.opcode, ours.dest_qp, ours.psn, ours.a, ours.becn, ours.pad_count,
        )  # fmt: skip
        assert bth.compute_icrc(bytes(bth)[:-4]) == raw[-4:]
        aeth = packet.find(Aeth)
        if aeth is not None:
            assert (layers[roce.AETH].syndrome, layers[roce.AETH].msn) == (aeth.syndrome, aeth.msn)
