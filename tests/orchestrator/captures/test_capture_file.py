"""What stands in a capture, block by block."""

from io import BytesIO

import pytest

from mrcfabric.naming import port_mac
from mrcfabric.topology import Topology
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pcapng import Captured, captured
from mrcfabric.wire.pcapng_writer import statistics
from mrcfabric.wire.pfc import encode
from orchestrator.captures.capture_file import STATISTICS_BYTES, CaptureFile, Clock
from orchestrator.captures.taps import Heard
from orchestrator.captures.wall_clock import WallClock
from orchestrator.captures.wires import wires_of
from tests.vectors import wire as golden

TOPOLOGY = Topology(planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2)
WIRES = wires_of(TOPOLOGY, ["h000~p0-t0-0"])
WALL_NS = 1_774_094_400_000_000_000


class Bytes:
    """A capture in memory."""

    def __init__(self, clock: Clock = "fabric", snap_bytes: int = 256) -> None:
        self.data = bytearray()
        wall = WallClock()
        wall.look(0, WALL_NS)
        wall.look(1000, WALL_NS + 5_000_000)
        self.file = CaptureFile(
            self.data.extend, TOPOLOGY, WIRES, clock, wall, application="mrcfabric 1", snap_bytes=snap_bytes
        )


def test_packets_keep_their_order_and_what_was_cut() -> None:
    memory = Bytes()
    memory.file.packet(Heard(100, 0, len(golden.SACK), golden.SACK))
    memory.file.packet(Heard(200, 1, 999, golden.WRITE[:100]))
    memory.file.finish({0: 3})
    assert list(captured(BytesIO(bytes(memory.data)), "x")) == [
        Captured(1, golden.SACK, 0), Captured(2, golden.WRITE[:100], 899),
    ]  # fmt: skip
    assert (memory.file.packets, memory.file.size_bytes) == (2, len(memory.data))
    assert memory.data.endswith(statistics(0, 100, 200, 4, 3) + statistics(1, 100, 200, 1, 0))


@pytest.mark.parametrize(
    ("clock", "comment"), [("fabric", b"wall 2026-03-21T12:00:00.000500Z"), ("wall", b"fabric 100 ns")]
)
def test_the_other_clock_stands_in_the_comment(clock: Clock, comment: bytes) -> None:
    memory = Bytes(clock)
    memory.file.packet(Heard(100, 0, len(golden.SACK), golden.SACK))
    assert comment in memory.data
    stamp_ns = 100 if clock == "fabric" else WALL_NS + 500_000
    stamp = (stamp_ns >> 32).to_bytes(4, "little") + (stamp_ns & 0xFFFFFFFF).to_bytes(4, "little")
    assert stamp in memory.data


def test_link_control_frames_have_interfaces_of_their_own() -> None:
    """They are Ethernet frames: each direction that has any gets one more interface, described when it is needed."""
    memory = Bytes()
    pause = encode(port_mac("p0-t0-0", 0), {3: 65_535})
    memory.file.packet(Heard(100, 0, len(golden.SACK), golden.SACK))
    for at_ns, wire in ((110, 1), (120, 1), (130, 0)):
        memory.file.packet(Heard(at_ns, wire, len(pause), pause))
    memory.file.packet(Heard(140, 1, len(golden.SACK), golden.SACK))
    memory.file.finish({1: 2})
    found = list(captured(BytesIO(bytes(memory.data)), "x"))
    assert [one.packet for one in found] == [golden.SACK, pause, pause, pause, golden.SACK]
    assert [type(one.packet) is ControlFrame for one in found] == [False, True, True, True, False]
    last = [statistics(number, 100, 140, seen, lost) for number, (seen, lost) in
            enumerate(((1, 0), (3, 2), (2, 0), (1, 0)))]  # fmt: skip
    assert memory.data.endswith(b"".join(last))
    assert memory.file.packets == 5


@pytest.mark.parametrize("bound", range(2_000, 8_000, 333))
def test_interfaces_for_control_frames_keep_within_the_bound(bound: int) -> None:
    links = [f"p{plane}-t0-{t0}~p{plane}-t1-{t1}" for plane in (0, 1) for t0 in (0, 1) for t1 in (0, 1)]
    wires = wires_of(TOPOLOGY, links)
    data = bytearray()
    wall = WallClock()
    wall.look(0, WALL_NS)
    file = CaptureFile(data.extend, TOPOLOGY, wires, "fabric", wall, application="mrcfabric 1", snap_bytes=256)
    head = len(data)
    pause = encode(bytes(6), {3: 65_535})
    number = 0
    while number < len(wires) and file.has_room_for(len(pause), head + bound):
        file.packet(Heard(number, number, len(pause), pause))
        number += 1
    file.finish({})
    assert len(data) <= head + bound
    assert len(list(captured(BytesIO(bytes(data)), "x"))) == number


def test_what_had_no_room_counts_with_its_interface() -> None:
    wires = wires_of(TOPOLOGY, ["p0-t0-0>h000", "p0-t0-0>h001"])
    data = bytearray()
    file = CaptureFile(data.extend, TOPOLOGY, wires, "fabric", WallClock(), application="", snap_bytes=1)
    file.finish({1: 9})
    assert data.endswith(statistics(0, 0, 0, 0, 0) + statistics(1, 0, 0, 9, 9))


def test_nothing_that_has_room_makes_the_file_larger_than_its_bound() -> None:
    assert len(statistics(0, 0, 0, 0, 0)) == STATISTICS_BYTES
    memory = Bytes()
    bound = 6000
    number = 0
    while memory.file.has_room_for(200, bound):
        number += 1
        packet = bytearray(golden.WRITE[:104]) + bytes(96)
        packet[8:24], packet[24:40] = TOPOLOGY.nic_address(number % 4), bytes((0xFC, 0xBB, 0xBB, 0, number)) + bytes(11)
        memory.file.packet(Heard(number, 0, 9999, bytes(packet)))
    memory.file.finish({0: 1, 1: 1})
    assert number > 5
    assert len(memory.data) <= bound
