"""A live fabric among mutated packets: nothing escapes a core, no byte outside a region changes, work ends well."""

from typing import Any

import pytest

from mrcfabric.node import Input, Transmit
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from nicd.core.commands import RegisterMemory
from nicd.core.events import RECV_WITH_IMM, Completion
from nicd.core.nic import Nic
from switchd.core.switch import Switch
from tests.nicd.core.fabric import R_KEY, READY_NS, SOURCE_REGION, SOURCE_VA, TARGET_REGION, TARGET_VA, Fabric
from tests.support.mutate import among
from tests.support.pattern import pattern

PAIR = Topology(
    name="pair", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16, reserve_evs_per_qp=8
)
SIZE = 1 << 19
GUARD = 4096
SHARE_PPM = 150_000
DEADLINE_NS = 100_000_000


class HostileFabric(Fabric):
    """Two NICs whose ports, and whose switches' ports, receive mutated copies beside every real packet."""

    def __init__(self, seed: int, *, sealed: bool, at_switches: bool) -> None:
        self.rng = Rng("hostile", seed)
        self.sealed = sealed
        self.at_switches = at_switches
        self.injected = 0
        self.guarded: dict[str, bytearray] = {}
        super().__init__(PAIR)

    def mix(self, inputs: list[Input]) -> list[Input]:
        mixed = among(self.rng, inputs, SHARE_PPM, sealed=self.sealed)
        self.injected += len(mixed) - len(inputs)
        return mixed

    def nic(self, name: str, start_ns: int = 0) -> Nic:
        fabric = self

        class Attacked(Nic):
            def advance(self, inputs: list[Input], until: int) -> list[Transmit]:
                return super().advance(inputs if fabric.at_switches else fabric.mix(inputs), until)

        return Attacked(super().nic(name).config, start_ns)

    def switch(self, name: str, start_ns: int = 0) -> Switch:
        fabric = self

        class Attacked(Switch):
            def advance(self, inputs: list[Input], until: int) -> list[Transmit]:
                return super().advance(fabric.mix(inputs) if fabric.at_switches else inputs, until)

        return Attacked(super().switch(name).config, start_ns)

    def memory(self, name: str, size: int) -> None:
        """As in the base, but the target lies between two guards."""
        source = memoryview(pattern(self.topology.nic_index(name), size))
        self.guarded[name] = buffer = bytearray(b"\xa5" * (size + 2 * GUARD))
        command = self.simulator.command
        command(name, 1, RegisterMemory(0, SOURCE_VA, size, SOURCE_REGION, 1, source))
        target = memoryview(buffer)[GUARD : GUARD + size]
        command(name, 1, RegisterMemory(0, TARGET_VA, size, TARGET_REGION, R_KEY, target))

    def check_guards(self) -> None:
        for name, buffer in self.guarded.items():
            assert buffer[:GUARD] == buffer[-GUARD:] == b"\xa5" * GUARD, name
            # Nobody writes to it, so nothing changes it.
            assert self.core(name).region_bytes(SOURCE_REGION) == pattern(self.topology.nic_index(name), SIZE)

    def run_to_the_end(self) -> None:
        self.permutation(1, SIZE)
        self.write_all(SIZE, 16, READY_NS)
        assert self.finish(DEADLINE_NS, 100_000), "work is left over"
        assert self.injected > 10
        self.check_guards()


@pytest.mark.slow
@pytest.mark.parametrize("at_switches", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_damaged_packets_change_nothing(seed: int, at_switches: bool) -> None:
    """Damage without intent: the ICRC catches it, or it is in a field that may differ; the transfer is whole."""
    fabric = HostileFabric(seed, sealed=False, at_switches=at_switches)
    fabric.run_to_the_end()
    fabric.verify(SIZE)
    assert fabric.errors() == []
    assert fabric.total("drops") + _switch_drops(fabric) > 0


@pytest.mark.slow
@pytest.mark.parametrize("at_switches", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_forged_packets_reach_no_memory_but_the_regions_and_every_work_request_ends(
    seed: int, at_switches: bool
) -> None:
    """Damage with intent, ICRC repaired: a QP may fail, with a completion for each of its messages, and no more."""
    fabric = HostileFabric(seed, sealed=True, at_switches=at_switches)
    fabric.run_to_the_end()
    ends = [(event.qpn, event.wr_id) for event in fabric.found(Completion) if event.opcode != RECV_WITH_IMM]
    assert len(ends) == len(set(ends)) == fabric.posted
    fabric.simulator.run(fabric.simulator.now_ns + 1_000_000)
    for name in PAIR.nic_names():
        assert held(fabric.core(name)) < 5_000
        assert fabric.core(name).overfull() == []


def _switch_drops(fabric: Fabric) -> int:
    return sum(sum(fabric.simulator.node(name).counters()["drops"].values()) for name in PAIR.switch_names())


def held(nic: Nic) -> int:
    """Objects that a NIC keeps for later, counted where packets could pile them up."""
    board = nic._board
    total = len(board.timers._heap) + len(board.events)
    for qp in nic._transport.qps.values():
        link: Any = qp.link
        if link is not None:
            inflight = link.requestor._inflight
            total += len(inflight._order) + len(inflight._lost_heap) + len(inflight.by_psn)
            total += link.responder.messages.records + len(link.prober._out) + len(link.prober._watched)
            total += link.peer.questions
    return total
