"""A NIC that asks for pauses: slow receivers by the closed form, storms, and what they do to others."""

from typing import Any

import pytest

from mrcfabric.choice import Choice
from mrcfabric.node import Transmit
from mrcfabric.topology import Topology
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import QUANTA_MAX, parse, pause_ns
from mrcfabric.witness import Witness
from nicd.compose import nic_config
from nicd.core.board import Board
from nicd.core.class_ports import ClassPorts
from nicd.core.commands import SetPauseStorm, SetReceiveRate
from nicd.core.pause_sender import PauseSender
from tests.nicd.core.fabric import Fabric

RATE = 25_000_000_000
PFC: dict[str, Any] = {"forwarding": "ecmp", "trim": False, "trim_last_hop": False, "lossless": "pfc"}


def topology(planes: int = 2) -> Topology:
    return Topology(name="pauses", planes=planes, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, rate_bps=RATE,
                    evs_per_qp=16, reserve_evs_per_qp=8, nic={"transport": "rc", "cc": "none"}, switch=PFC)  # fmt: skip


class Lone:
    """The pauses of one NIC with nothing around it."""

    def __init__(self) -> None:
        self.board = Board(nic_config(topology(), "h000"), 4_200)
        assert isinstance(self.board.ports, ClassPorts)
        self.taken: list[bytes] = []
        self.sender = PauseSender(self.board, self.board.ports, self._take)

    def _take(self, now: int, port: int, packet: Any) -> str:
        self.taken.append(bytes(packet))
        return "taken"

    def run(self, until: int) -> list[tuple[int, int]]:
        """Let timers fire; (port, quanta of class 3) of the frames that left."""
        while (now := self.board.timers.next_ns()) <= until:
            self.board.timers.fire(now)
        self.board.ports.run(until)
        out: list[Transmit] = list(self.board.ports.out)
        self.board.ports.out.clear()
        frames = [(entry[0], parse(entry[2])) for entry in out if isinstance(entry[2], ControlFrame)]
        assert all(frame is not None and frame.enabled == 1 << 3 for _, frame in frames)
        return [(port, frame.quanta[3]) for port, frame in frames if frame is not None]


def test_a_host_that_keeps_up_pauses_nobody() -> None:
    lone = Lone()
    for at_ns in range(0, 100_000, 500):
        lone.sender.receive(at_ns, 0, bytes(9_000))
    assert lone.run(200_000) == []
    assert len(lone.taken) == 200
    assert lone.sender.held_peak == 0


@pytest.mark.parametrize("buffer_bytes", [0, 10_000, 50_000])
def test_a_full_buffer_pauses_all_ports_until_half_of_it_is_left(buffer_bytes: int) -> None:
    lone = Lone()
    lone.sender.set_rate(0, 1_000_000_000, buffer_bytes)
    while lone.sender.held_peak <= buffer_bytes:
        assert lone.run(0) == []
        lone.sender.receive(0, 1, bytes(1_000))
    held = lone.sender.held_peak
    drained_ns = (held - buffer_bytes // 2) * 8
    assert sorted(lone.run(drained_ns - 1)) == [(0, QUANTA_MAX), (1, QUANTA_MAX)]
    assert sorted(lone.run(drained_ns + 100)) == [(0, 0), (1, 0)]


def test_a_pause_is_repeated_before_half_of_it_is_over_and_no_longer_than_it_lasts() -> None:
    lone = Lone()
    lone.sender.set_storm(10, 1, True)
    half_ns = pause_ns(QUANTA_MAX, RATE) // 2
    assert lone.run(10 + 3 * half_ns + 1) == [(1, QUANTA_MAX)] * 4
    lone.sender.set_storm(20 + 3 * half_ns, 1, False)
    assert lone.run(20 * half_ns) == [(1, 0)]
    assert lone.board.timers.next_ns() > 1 << 60


def test_a_storm_and_a_full_buffer_end_one_by_one() -> None:
    lone = Lone()
    lone.sender.set_storm(0, 0, True)
    lone.sender.set_rate(0, 1_000_000_000, 1_000)
    lone.sender.receive(0, 0, bytes(2_000))
    assert sorted(lone.run(100)) == [(0, QUANTA_MAX), (1, QUANTA_MAX)]
    lone.sender.set_storm(200, 0, False)
    assert lone.run(300) == []
    assert sorted(lone.run(20_000)) == [(0, 0), (1, 0)]


def test_a_rate_that_is_lifted_lets_go_at_once() -> None:
    lone = Lone()
    lone.sender.set_rate(0, 1_000, 0)
    lone.sender.receive(0, 0, bytes(2_000))
    lone.run(100)
    lone.sender.set_rate(200, 0, 0)
    assert sorted(lone.run(400)) == [(0, 0), (1, 0)]
    assert lone.board.timers.next_ns() > 1 << 60


@pytest.mark.parametrize("gbps", [2, 5, 15])
def test_a_slow_receiver_gets_what_its_host_takes_and_loses_nothing(gbps: int) -> None:
    fabric = Fabric(topology(planes=1))
    names = fabric.permutation(2, size := 1 << 20)
    fabric.simulator.command(names[2], 5, SetReceiveRate(0, gbps * 10**9, 65_536))
    fabric.write_all(size, 4)
    assert fabric.finish(50_000_000)
    fabric.verify(size)
    assert fabric.total("retransmits") == 0
    # Packets are longer than their payload, and the buffer takes its part at once.
    least_ns = (size - 3 * 65_536) * 8 // gbps
    assert least_ns < fabric.simulator.now_ns < 1.3 * size * 8 / gbps + 100_000


def test_a_storm_holds_back_the_victim_and_ends() -> None:
    fabric = Fabric(topology(planes=1))
    names = fabric.permutation(2, size := 1 << 18)
    fabric.simulator.command(names[2], 5, SetPauseStorm(0, 0, True))
    fabric.simulator.command(names[2], 3_000_000, SetPauseStorm(0, 0, False))
    fabric.write_all(size, 4)
    fabric.simulator.run(2_900_000)
    assert fabric.core(names[2]).counters()["bytes_placed"] == 0
    assert fabric.finish(20_000_000)
    fabric.verify(size)


def test_without_lossless_switches_neither_has_an_effect() -> None:
    plain = Topology(name="plain", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16,
                     reserve_evs_per_qp=8)  # fmt: skip
    fabric = Fabric(plain)
    names = fabric.permutation(2, size := 1 << 18)
    fabric.simulator.command(names[2], 5, SetPauseStorm(0, 0, True))
    fabric.simulator.command(names[2], 5, SetReceiveRate(0, 10**9, 1))
    fabric.write_all(size, 4)
    assert fabric.finish(1_000_000)
    fabric.verify(size)


def test_a_witness_hears_why_a_nic_asks_for_a_pause() -> None:
    lone = Lone()
    witness = lone.board.witness = Witness(Choice(), Dscp())
    lone.sender.set_storm(5, 1, True)
    lone.sender.set_rate(10, 1_000_000_000, 1_500)
    lone.sender.receive(20, 0, bytes(2_000))
    lone.sender.set_storm(40, 1, False)
    half_ns = pause_ns(QUANTA_MAX, RATE) // 2
    lone.run(half_ns)
    told = [(one["at_ns"], one["port"], one["class"], one["why"], one["bytes"], one["waits"])
            for one in witness.after(0, 99)["statements"]]  # fmt: skip
    assert told == [(5, 1, 3, "storm", 0, []), (20, 0, 3, "slow_receiver", 2_000, [])]
