"""uSIDs of a container as Wireshark shows them are those of our own reader, by number and by name."""

from pathlib import Path

import pytest

from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from mrcfabric.wire import pcapng_writer, srh, usid
from mrcfabric.wire.ipv6 import Ipv6
from tests.support.packets import data_packet
from tests.support.tshark import fields
from tests.vectors import wire as golden

pytestmark = pytest.mark.integration

NAMES = ("usid.block", "usid.active", "usid.list", "usid.left", "usid.path", "usid.segment")


def write(file: Path, packets: list[bytes]) -> Path:
    out = pcapng_writer.section("mrcfabric") + pcapng_writer.interface("a>b")
    file.write_bytes(out + b"".join(pcapng_writer.packet(0, 0, packet, len(packet)) for packet in packets))
    return file


def towards(container: bytes) -> bytes:
    return golden.PROBE[:24] + container + golden.PROBE[40:]


def test_a_way_is_shown_by_numbers_and_by_names(tmp_path: Path) -> None:
    (row,) = fields(write(tmp_path / "x.pcapng", [golden.PROBE]), NAMES)
    assert row == {
        "usid.block": ["5f000000"],
        "usid.active": ["0x00004000"],
        "usid.list": ["0x00004000", "0x00008001", "0x00004001", "0x0000c002"],
        "usid.left": ["4"],
        "usid.path": ["p0-t0-0 p0-t1-1 p0-t0-1 p0-down-2"],
        "usid.segment": [],
    }


def test_names_are_those_of_the_topology(tmp_path: Path) -> None:
    topology = Topology(planes=4, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2)
    switches = list(topology.switch_names())
    packets = [towards(usid.build(0xFCBBBB00, [topology.own_usid(name)])) for name in switches]
    rows = fields(write(tmp_path / "x.pcapng", packets), NAMES)
    assert [row["usid.path"] for row in rows] == [[name] for name in switches]


def test_any_container_is_read_as_we_read_it(tmp_path: Path) -> None:
    rng = Rng("containers")
    containers = []
    for _ in range(300):
        size = 1 + rng.below(6)
        containers.append(usid.build(rng.below(1 << 32), [1 + rng.below(0xFFFF) for _ in range(size)]))
    containers += [usid.shift(usid.build(1, [2])), bytes(16), b"\xff" * 16]
    rows = fields(write(tmp_path / "x.pcapng", [towards(one) for one in containers]), NAMES)
    for row, container in zip(rows, containers, strict=True):
        assert tuple(int(text, 16) for text in row["usid.list"]) == usid.usids(container)
        assert [int(text, 16) for text in row["usid.active"]] == [usid.active(container)]
        assert row["usid.block"] == [f"{usid.block(container):08x}"]
        assert row["usid.left"] == [str(len(usid.usids(container)))]


def test_a_segment_that_prolongs_the_container_is_shown_too(tmp_path: Path) -> None:
    segment = usid.build(0x5F000000, [0x4000, 0xC003])
    packet = srh.insert(data_packet(0xC7), srh.outer_with(golden.CONTAINER, segment))
    (row,) = fields(write(tmp_path / "x.pcapng", [bytes(packet)]), (*NAMES, "mrc.psn"))
    assert row["usid.segment"] == ["0x00004000", "0x0000c003"]
    assert (row["usid.left"], row["mrc.psn"]) == (["4"], ["5"])


def test_lengths_of_block_and_usid_are_preferences(tmp_path: Path) -> None:
    container = bytes.fromhex("20010db800aa00000001000000020000")
    lengths = ("-o", "usid.block:48", "-o", "usid.width:32")
    (row,) = fields(write(tmp_path / "x.pcapng", [towards(container)]), NAMES, *lengths)
    assert (row["usid.block"], row["usid.list"]) == (["20010db800aa"], ["0x00000001", "0x00000002"])
    assert row["usid.path"] == ["00000001 00000002"]


@pytest.mark.parametrize("wrong", [("usid.block", "7"), ("usid.block", "4000000000"), ("usid.width", "0")])
def test_lengths_that_make_no_sense_are_passed_over(tmp_path: Path, wrong: tuple[str, str]) -> None:
    (row,) = fields(write(tmp_path / "x.pcapng", [golden.PROBE]), NAMES, "-o", ":".join(wrong))
    assert row["usid.left"] == ["4"]


def test_a_packet_outside_a_tunnel_has_no_way(tmp_path: Path) -> None:
    plain = Ipv6(6, 0, 0, 8, 17, 64, golden.SOURCE, golden.DESTINATION).emit() + bytes(8)
    (row,) = fields(write(tmp_path / "x.pcapng", [plain]), NAMES)
    assert not any(row.values())
