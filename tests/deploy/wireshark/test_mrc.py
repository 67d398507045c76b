"""The dissector says of every packet what `mrcfabric.wire.describe` says, and never stumbles over any bytes."""

import itertools
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.rng import Rng
from mrcfabric.wire import pcapng_writer, srh
from mrcfabric.wire.ack_headers import Aeth, Neth, Seth
from mrcfabric.wire.bth import Bth
from mrcfabric.wire.data_headers import ImmDt, Meth, Reth, Tseth
from mrcfabric.wire.describe import describe
from mrcfabric.wire.description import Description
from mrcfabric.wire.dscp import Dscp, mark_ce
from mrcfabric.wire.endpoint_headers import Eeth, EethLow, Erth, Peth
from mrcfabric.wire.entropy import EvOrder
from mrcfabric.wire.fastpath import FOREIGN_PORT, NO_IPV6, NO_TUNNEL, NO_UDP
from mrcfabric.wire.header import Header, Kind
from mrcfabric.wire.icrc import seal
from mrcfabric.wire.ipv6 import Ipv6, Srh, Udp
from mrcfabric.wire.layout import BTH_SIZE, DATA_OPCODES
from mrcfabric.wire.options import DEFAULT_OPTIONS, EETH_OP_LOW, EETH_OP_TOP, WireOptions
from mrcfabric.wire.packet import BAD_SRH, Packet, emit, extensions
from mrcfabric.wire.trim import trim
from tests.checks.source import ROOT
from tests.support.mutate import mutated
from tests.support.packets import control_template, data_packet, one_of_each
from tests.support.tshark import INFO, fields, tshark
from tests.vectors import wire as golden

pytestmark = pytest.mark.integration

HEADERS: tuple[type[Header], ...] = (Bth, Meth, Tseth, Reth, ImmDt, Aeth, Seth, Neth, Peth, Erth, Eeth)
# Reasons for which the dissectors in front never come to ours.
NETWORK = {NO_IPV6, NO_TUNNEL, NO_UDP, FOREIGN_PORT, BAD_SRH}
OWN = (
    "mrc.ev", "mrc.class", "mrc.trimmed", "mrc.missing", "mrc.payload", "mrc.payload_bytes", "mrc.icrc",
    "mrc.icrc_good", "mrc.reserved", "mrc.malformed", INFO,
)  # fmt: skip


def abbreviation(header: type[Header], name: str) -> str:
    """The filter name of a field of one of our headers."""
    if issubclass(header, Bth):
        return "mrc.qp" if name == "dest_qp" else f"mrc.{name}"
    return f"mrc.{header.NAME.lower()}.{name}"


NAMES = [
    abbreviation(header, field.name)
    for header in HEADERS
    for field in header.FIELDS
    if field.kind is not Kind.RESERVED
]  # fmt: skip


def number(text: str) -> int:
    return {"True": 1, "False": 0}.get(text) if text in ("True", "False") else int(text, 0)  # type: ignore[return-value]


def write(file: Path, packets: Iterable[Any], *snaps_bytes: int) -> Path:
    """Every packet as far as the capture kept it, once for each of `snaps_bytes`; without those, whole."""
    out = [pcapng_writer.section("mrcfabric"), pcapng_writer.interface("a>b")]
    kept = [(packet, snap_bytes) for snap_bytes in snaps_bytes or (1 << 16,) for packet in packets]
    out += [
        pcapng_writer.packet(0, at_ns, bytes(packet[:snap_bytes]), len(packet))
        for at_ns, (packet, snap_bytes) in enumerate(kept)
    ]
    file.write_bytes(b"".join(out))
    return file


def dissected(file: Path, packets: Sequence[Any], *arguments: str) -> list[dict[str, list[str]]]:
    """What tshark says of each packet; other opcodes are ours too, and the ICRC is checked."""
    write(file, packets)
    rows = fields(file, [*NAMES, *OWN], "-o", "mrc.icrc:TRUE", "-o", "mrc.roce:FALSE", *arguments)
    assert len(rows) == len(packets)
    return rows


def assert_agree(row: dict[str, list[str]], said: Description) -> None:
    """Every field of every header, what follows from them, and the reason why it is no good packet."""
    reserved = []
    for header, layer in zip(said.packet.headers, said.layers, strict=True):
        if isinstance(header, Ipv6 | Srh | Udp):
            continue
        for item in layer.rows:
            if item.name.startswith("reserved_at_bit_"):
                reserved.append(f"{header.NAME} bit {item.name.removeprefix('reserved_at_bit_')}")
            else:
                name = abbreviation(type(header), item.name)
                assert [number(text) for text in row[name]] == [item.value], name
    bth = said.packet.find(Bth)
    if bth is None:
        return
    assert row[INFO][0].startswith(said.summary)
    assert row["mrc.trimmed"] == ["1" if said.summary.startswith("trimmed") else "0"]
    assert [number(text) for text in row["mrc.missing"]] == ([said.packet.missing] if said.packet.missing else [])
    assert row["mrc.malformed"] == ([] if said.reason is None else [said.reason])
    if said.reason is None:
        assert row["mrc.reserved"] == reserved
        assert "".join(row["mrc.payload"]) == said.packet.payload.hex()
        assert [number(text) for text in row["mrc.icrc"]] == ([] if said.icrc is None else [said.icrc])
        # Where the capture ends among the headers, nobody knows where the payload begins.
        if bth.opcode in DATA_OPCODES and said.packet.find(Reth) is not None:
            assert [number(text) for text in row["mrc.payload_bytes"]] == [said.packet.carried]


def assert_all_agree(
    rows: list[dict[str, list[str]]], packets: Sequence[Any], options: WireOptions = DEFAULT_OPTIONS
) -> int:
    """How many packets there were that both could read as far as a BTH."""
    judged = 0
    for row, packet in zip(rows, packets, strict=True):
        said = describe(packet, options=options)
        if said.reason in NETWORK:
            continue
        if said.packet.find(Bth) is None:
            assert not row["mrc.class"] or row["mrc.malformed"], said.reason
            continue
        if not row["mrc.class"]:
            # A UDP length that makes no sense: Wireshark's own dissector goes no further.
            assert said.reason is not None, said
            continue
        assert_agree(row, said)
        judged += 1
    return judged


def random_header(rng: Rng, kind: type[Header], **fixed: int) -> Header:
    values: dict[str, Any] = {}
    for field in kind.FIELDS:
        if field.kind is Kind.RESERVED:
            continue
        value = rng.below(1 << field.bits)
        values[field.name] = value - (1 << field.bits - 1) if field.kind is Kind.SIGNED else value
    return kind(**values | fixed)


def random_packet(rng: Rng, options: WireOptions = DEFAULT_OPTIONS) -> bytearray:
    """A good packet of any opcode, every field of every header over its whole range."""
    opcode = sorted(row for row in one_of_each().values() if row)[rng.below(20)][88]
    data = opcode < 0xD0
    ts = rng.below(2) if data else 0
    dscp = (4, 0, 8, 46, 12, 16, 33)[rng.below(7)]
    headers: list[Header] = [
        Ipv6(6, dscp << 2 | rng.below(4), rng.below(1 << 20), 0, 41, 60, golden.SOURCE, golden.CONTAINER),
        Ipv6(6, rng.below(256), rng.below(1 << 20), 0, 17, 64, golden.SOURCE, golden.DESTINATION),
        Udp(rng.below(1 << 16), options.udp_port),
        random_header(rng, Bth, opcode=opcode, ts=ts, tver=0),
    ]
    headers += [random_header(rng, kind) for kind in extensions(opcode, bool(ts), options)]
    packet = Packet(headers, rng.below(1 << 64).to_bytes(8, "big") * rng.below(9) if data else b"")
    out = emit(packet)
    return srh.insert(out, srh.outer_with(golden.CONTAINER, golden.CONTAINER)) if rng.below(8) == 0 else out


def test_one_of_each_kind_is_read_as_we_read_it(tmp_path: Path) -> None:
    packets = [*one_of_each().values()]
    marked = data_packet(0xC7)
    mark_ce(marked)
    long = data_packet(0xC7, bytes(4096), ts=True)
    packets += [marked, long, trim(long, 256, Dscp().trimmed), trim(long, 128, Dscp().trimmed_lasthop)]
    rows = dissected(tmp_path / "x.pcapng", packets)
    assert assert_all_agree(rows, packets) == len(packets)
    assert [row["mrc.icrc_good"] for row in rows[: len(one_of_each())]] == [["1"]] * len(one_of_each())
    assert [row["mrc.ev"] for row in rows] == [[f"0x{golden.EV:08x}"]] * len(packets)
    assert rows[-2]["mrc.class"] == ["trimmed"]
    assert rows[-1]["mrc.class"] == ["trimmed_lasthop"]


def test_random_fields_over_their_whole_range_agree(tmp_path: Path) -> None:
    rng = Rng("dissector", "fields")
    packets = [random_packet(rng) for _ in range(1600)]
    packets += [trim(packet, 124 + rng.below(60), 12) for packet in packets[:300]]
    assert assert_all_agree(dissected(tmp_path / "x.pcapng", packets), packets) == len(packets)


def test_hostile_variants_agree_down_to_the_reason(tmp_path: Path) -> None:
    rng = Rng("dissector", "hostile")
    originals = [*one_of_each().values()]
    packets = [mutated(rng, originals[rng.below(len(originals))], sealed=bool(rng.below(2))) for _ in range(1600)]
    packets = [packet for packet in packets if packet]
    assert assert_all_agree(dissected(tmp_path / "x.pcapng", packets), packets) > len(packets) // 2


def test_random_bytes_never_raise(tmp_path: Path) -> None:
    rng = Rng("dissector", "noise")
    packets = []
    for _ in range(800):
        front = golden.WRITE[: (0, 40, 80, 88, 89)[rng.below(5)]]
        noise = b"".join(rng.below(1 << 64).to_bytes(8, "big") for _ in range(1 + rng.below(20)))
        packets.append((front or b"\x60") + noise[: 1 + rng.below(len(noise))])
    rows = dissected(tmp_path / "x.pcapng", packets)
    assert any(row["mrc.malformed"] for row in rows)


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (WireOptions(ev_order=EvOrder.PORT_HIGH), ("-o", "mrc.port_high:TRUE")),
        (WireOptions(eeth_op_shift=EETH_OP_LOW), ("-o", "mrc.op_shift:0")),
        (WireOptions(eeth_op_shift=EETH_OP_TOP), ("-o", "mrc.op_shift:4")),
        (WireOptions(udp_port=4971), ()),
        (WireOptions(udp_port=7777, udp_ports_accepted=(4791, 7777)), ("-o", "mrc.ports:4791,7777")),
    ],
    ids=["ev_order", "eeth_op", "eeth_op_top", "printed_port", "own_port"],
)
def test_a_fabrics_choices_of_the_wire_are_preferences(
    tmp_path: Path, options: WireOptions, arguments: tuple[str, ...]
) -> None:
    rng = Rng("dissector", "options")
    packets = [random_packet(rng, options) for _ in range(60)]
    packets.append(control_template(options).endpoint_response(golden.EV, golden.CONTAINER, 5, 1, 7))
    rows = dissected(tmp_path / "x.pcapng", packets, *arguments)
    assert assert_all_agree(rows, packets, options) == len(packets)


def test_code_points_are_preferences(tmp_path: Path) -> None:
    packet = trim(data_packet(0xC7, bytes(999)), 200, 33)
    (row,) = dissected(tmp_path / "x.pcapng", [packet], "-o", "mrc.dscp_trimmed:33")
    assert (row["mrc.class"], row["mrc.malformed"]) == (["trimmed"], [])
    assert row[INFO][0].startswith("trimmed WRITE Middle")


def test_what_the_capture_left_out_is_nobodys_fault(tmp_path: Path) -> None:
    packets = [data_packet(0xC7, bytes(999)), golden.SACK]
    file = write(tmp_path / "x.pcapng", packets, 110)
    data, sack = fields(file, ("mrc.malformed", "mrc.psn", "mrc.missing", "mrc.meth.msn", "mrc.seth.m"))
    assert (data["mrc.malformed"], data["mrc.psn"], data["mrc.missing"]) == ([], ["5"], [])
    assert data["mrc.meth.msn"] == ["6"]
    assert (sack["mrc.malformed"], sack["mrc.seth.m"]) == ([], [])


def test_decode_reads_what_a_capture_kept_as_the_dissector_does(tmp_path: Path) -> None:
    long = data_packet(0xC7, bytes(999), ts=True)
    packets = [long, data_packet(0xCA, b"four"), trim(bytearray(long), 256, Dscp().trimmed), golden.SACK, golden.NACK]
    snaps_bytes = (60, 90, 110, 121, 200, 300)
    file = write(tmp_path / "x.pcapng", packets, *snaps_bytes)
    rows = fields(file, [*NAMES, *OWN])
    for row, (snap_bytes, packet) in zip(rows, itertools.product(snaps_bytes, packets), strict=True):
        said = describe(packet[:snap_bytes], left_out=max(0, len(packet) - snap_bytes))
        assert said.reason is None
        if row["mrc.class"]:
            assert_agree(row, said)


def test_the_sum_is_the_number_that_wireshark_shows_of_other_transports(tmp_path: Path) -> None:
    packet = bytearray(golden.WRITE)
    packet[88] = 0x0A
    seal(packet)
    (row,) = fields(write(tmp_path / "x.pcapng", [packet]), ("infiniband.invariant.crc",))
    assert [number(text) for text in row["infiniband.invariant.crc"]] == [int.from_bytes(packet[-4:], "big")]
    said = describe(golden.WRITE)
    assert said.icrc == int.from_bytes(golden.WRITE[-4:], "big")


def test_every_length_of_a_packet_is_read_without_a_stumble(tmp_path: Path) -> None:
    long = data_packet(0xCB, bytes(64), ts=True)
    packets = [golden.SACK, golden.ENDPOINT_RESPONSE, long, trim(long, 150, 12)]
    cut = [bytes(packet[:length]) for packet in packets for length in range(1, len(packet))]
    rows = dissected(tmp_path / "x.pcapng", cut)
    assert assert_all_agree(rows, cut) > 100


def test_a_wrong_icrc_is_told_where_that_is_asked_for(tmp_path: Path) -> None:
    wrong = bytearray(golden.SACK)
    wrong[-1] ^= 1
    file = write(tmp_path / "x.pcapng", [golden.SACK, wrong])
    asked = ("mrc.icrc_good", "mrc.malformed", "mrc.expert.icrc")
    good, bad = fields(file, asked, "-o", "mrc.icrc:TRUE")
    assert good["mrc.icrc_good"] == ["1"]
    assert (bad["mrc.icrc_good"], bad["mrc.malformed"]) == (["0"], ["icrc"])
    assert not any(any(row.values()) for row in fields(file, asked))


def test_what_follows_from_a_sack_can_be_filtered_by(tmp_path: Path) -> None:
    probe = control_template().sack(golden.EV, golden.CONTAINER, 1, 0, 0, 100, 1, 0, 0, 0, 0, probe_id=77)
    file = write(tmp_path / "x.pcapng", [golden.SACK, probe])
    first, second = fields(
        file, ("mrc.seth.acked_psn", "mrc.seth.base_psn", "mrc.seth.received", "mrc.seth.probe_id")
    )  # fmt: skip
    assert first == {
        "mrc.seth.acked_psn": ["254"], "mrc.seth.base_psn": ["257"], "mrc.seth.received": ["257", "258", "260"],
        "mrc.seth.probe_id": [],
    }  # fmt: skip
    assert second["mrc.seth.probe_id"] == ["77"]
    assert len(tshark("-r", str(file), "-Y", "mrc.seth.received == 260").splitlines()) == 1


def test_what_people_look_for_is_expert_information(tmp_path: Path) -> None:
    packets = {
        "trimmed": trim(data_packet(0xC7, bytes(999)), 200, 12),
        "rtx": data_packet(0xC7, rtx=True),
        "nack": golden.NACK,
        "skip": golden.SACK,
        "fatal": control_template().acknowledge(golden.EV, golden.CONTAINER, 1, 0x61, 7),
        "port_status": golden.ENDPOINT_REQUEST,
    }
    file = write(tmp_path / "x.pcapng", [*packets.values(), golden.PROBE])
    rows = fields(file, [f"mrc.expert.{name}" for name in packets])
    found = [[name for name, values in row.items() if values] for row in rows]
    assert found == [*([f"mrc.expert.{name}"] for name in packets), []]


def test_a_mark_and_reserved_bits_are_expert_information(tmp_path: Path) -> None:
    marked, odd = data_packet(0xC7), bytearray(golden.PROBE)
    mark_ce(marked)
    odd[88 + 8] |= 1
    seal(odd)
    file = write(tmp_path / "x.pcapng", [marked, odd, golden.PROBE])
    first, second, third = fields(file, ("mrc.expert.marked", "mrc.reserved"))
    assert first["mrc.expert.marked"]
    assert second["mrc.reserved"] == ["BTH bit 68"]
    assert not any(third.values())


def test_as_plugins_they_need_no_path_and_no_order(tmp_path: Path) -> None:
    plugins = tmp_path / ".local/lib/wireshark/plugins"
    plugins.mkdir(parents=True)
    for script in (ROOT / "deploy/wireshark").glob("*.lua"):
        shutil.copy(script, plugins)
    file = write(tmp_path / "x.pcapng", [golden.SACK, golden.WRITE])
    own = {**os.environ, "HOME": str(tmp_path)}
    own.pop("XDG_CONFIG_HOME", None)
    rows = fields(file, ("mrc.psn", "usid.left"), scripts=(), environment=own)
    assert [(row["mrc.psn"], row["usid.left"]) for row in rows] == [(["256"], ["4"]), (["258"], ["4"])]


def test_other_opcodes_are_left_to_rocev2(tmp_path: Path) -> None:
    packet = bytearray(golden.WRITE)
    packet[88] = 0x0A
    file = write(tmp_path / "x.pcapng", [packet])
    (row,) = fields(file, ("mrc.psn", "infiniband.bth.psn"))
    assert row == {"mrc.psn": [], "infiniband.bth.psn": ["258"]}


def test_a_source_port_that_is_well_known_changes_nothing(tmp_path: Path) -> None:
    ports = [53, 67, 4791, 5353]
    packets = [control_template().probe(port, golden.CONTAINER, 3, 4) for port in ports]
    rows = fields(write(tmp_path / "x.pcapng", packets), ("mrc.ev", "mrc.peth.probe_id"))
    assert [row["mrc.ev"] for row in rows] == [[f"0x{port:08x}"] for port in ports]
    assert [row["mrc.peth.probe_id"] for row in rows] == [["3"]] * len(ports)


def test_both_layouts_of_the_endpoint_response_are_known() -> None:
    assert Eeth.SIZE == EethLow.SIZE
    assert BTH_SIZE == Bth.SIZE
