"""Credit that a NIC keeps back: slow receivers by the closed form, ports that grant nothing, what neighbours see."""

from typing import Any

import pytest

from mrcfabric.glance import SLOW_RECEIVER, STORM
from mrcfabric.topology import Topology
from nicd.core.commands import SetPauseStorm, SetReceiveRate
from nicd.core.credit_holder import CreditHolder
from nicd.core.events import Retransmit
from nicd.core.timers import Timers
from tests.nicd.core.fabric import READY_NS, Fabric
from tests.nicd.core.test_credit_ports import ports

SIZE = 1 << 18
GBPS = 10**9


class Lone:
    """The holder of one NIC, and the blocks that its ports hold."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.ports = ports()
        self.holder = CreditHolder(self.timers, self.ports)

    def come(self, at_ns: int, size: int = 125, port: int = 0) -> None:
        assert self.ports.taken(at_ns, port, 0, 2)
        self.holder.done(at_ns, port, 0, 2, size)

    def held(self, until: int, port: int = 0) -> int:
        while (now := self.timers.next_ns()) <= until:
            self.timers.fire(now)
        return int(self.ports._credited[port].credits.held[0])


def test_a_host_that_keeps_up_keeps_nothing_back() -> None:
    lone = Lone()
    for at_ns in range(1_000, 2_000, 10):
        lone.come(at_ns)
    assert lone.held(5_000) == 0
    assert (lone.holder.withheld, lone.holder.glances()) == ([0, 0], [])


@pytest.mark.parametrize("rate_bps", [GBPS, 8 * GBPS])
@pytest.mark.parametrize("room", [0, 250])
def test_blocks_are_freed_when_the_buffer_has_come_down(rate_bps: int, room: int) -> None:
    """Packets of 1,000 bits all at once: the n-th is free when all but the buffer of what came up to it has left."""
    lone = Lone()
    lone.holder.set_rate(1_000, rate_bps, room)
    for _ in range(5):
        lone.come(2_000)
    packet_ns = 1_000 * GBPS // rate_bps
    in_buffer = room // 125
    for left in reversed(range(5 - in_buffer)):
        done_ns = 2_000 + packet_ns * (5 - in_buffer - left)
        assert lone.held(done_ns - 1) == 2 * (left + 1)
        assert lone.held(done_ns) == 2 * left
    assert lone.holder.withheld[0] == 5 - in_buffer
    assert [tuple(row[:5]) for row in lone.holder.glances()] == [(0, 0, 5 - in_buffer, 0, SLOW_RECEIVER)]


def test_when_the_host_is_fast_again_all_is_free_at_once() -> None:
    lone = Lone()
    lone.holder.set_rate(1_000, 1_000_000, 0)
    for _ in range(4):
        lone.come(2_000)
    assert lone.held(3_000) == 8
    assert lone.holder.glances()[0].asking == 1
    lone.holder.set_rate(3_000, 0, 0)
    assert lone.held(3_000) == 0
    assert lone.timers.next_ns() > 1 << 60


def test_a_port_in_a_storm_frees_nothing_until_it_ends() -> None:
    lone = Lone()
    lone.holder.set_storm(1_000, 0, True)
    for port in (0, 0, 1):
        lone.come(2_000, port=port)
    assert (lone.held(10_000), lone.held(10_000, 1)) == (4, 0)
    assert [tuple(row[:5]) for row in lone.holder.glances()] == [(0, 0, 2, 1, STORM)]
    lone.holder.set_storm(11_000, 0, False)
    assert lone.held(11_000) == 0
    assert lone.holder.glances()[0].asking == 0


def fabric() -> Fabric:
    return Fabric(
        Topology(
            name="slow", planes=1, t0_per_plane=2, t1_per_plane=1, nics_per_t0=1, evs_per_qp=8, reserve_evs_per_qp=0,
            nic={"transport": "rc", "rc_path": "lid", "cc": "none"},
            switch={"forwarding": "lft", "lossless": "credits"},
        )
    )  # fmt: skip


@pytest.mark.parametrize("rate_gbps", [5, 20])
def test_a_flow_gets_what_the_host_takes_and_loses_nothing(rate_gbps: int) -> None:
    run = fabric()
    run.permutation(1, SIZE)
    run.simulator.command("h001", READY_NS - 1, SetReceiveRate(0, rate_gbps * GBPS, 8_192))
    run.write_all(SIZE, 1)
    # What is in buffers on the way has not been taken when the last byte is placed.
    run.simulator.run(READY_NS + 30_000)
    core: Any = run.core("h001")
    before = core.counters()["bytes_placed"]
    run.simulator.run(READY_NS + 80_000)
    placed = core.counters()["bytes_placed"] - before
    assert placed * 8 / 50_000 == pytest.approx(rate_gbps, rel=0.35)
    assert run.finish(READY_NS + 10_000_000)
    run.verify(SIZE)
    assert not run.found(Retransmit)


def test_a_storm_stops_who_sends_there_and_nobody_else() -> None:
    run = fabric()
    run.permutation(1, SIZE)
    run.simulator.command("h001", READY_NS - 1, SetPauseStorm(0, 0, True))
    run.write_all(SIZE, 1)
    run.simulator.run(READY_NS + 1_000_000)
    assert run.core("h001").counters()["bytes_placed"] <= 1_024 * 64
    assert run.core("h000").counters()["bytes_placed"] <= SIZE
    run.simulator.command("h001", READY_NS + 1_000_001, SetPauseStorm(0, 0, False))
    assert run.finish(READY_NS + 10_000_000)
    run.verify(SIZE)
