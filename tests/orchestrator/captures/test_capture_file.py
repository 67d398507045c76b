"""What stands in a capture, block by block."""

from io import BytesIO

import pytest

from mrcfabric.topology import Topology
from mrcfabric.wire.pcapng import Captured, captured
from mrcfabric.wire.pcapng_writer import statistics
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
