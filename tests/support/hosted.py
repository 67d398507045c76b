"""Fabrics in virtual time whose hosts run programs, for tests of programs."""

from collections.abc import Mapping
from typing import Any

from mrcfabric.naming import nic_name
from mrcfabric.topology import Topology
from nicd.core.events import CommandDone
from nicd.programs.host import Host
from nicd.programs.hosted_nic import HostedNic
from nicd.programs.program import Program
from orchestrator.sim.fabric import SimulatedFabric

SMALL = Topology(name="hosts", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=3, evs_per_qp=16,
                 reserve_evs_per_qp=8)  # fmt: skip
LONG_NS = 3_000_000


def program(kind: str, ranks: int, figures: Mapping[str, Any] | None = None, **fields: Any) -> Program:
    """A program on the first NICs, from 10 us on."""
    values = {"name": "work", "number": 1, "ranks": tuple(range(ranks)), "begin_ns": 10_000, "seed": "tests"}
    return Program(**{**values, "kind": kind, "figures": figures or {}, **fields})


class Hosted:
    """A fabric, the programs it was told at an instant to run, and what was refused."""

    def __init__(
        self, *programs: Program, topology: Topology = SMALL, told_ns: int = 1, keep: int | None = None
    ) -> None:
        self.refused: dict[str, str] = {}
        self.fabric = SimulatedFabric(topology, keep=keep, on_events=self._note)
        for one in programs:
            for index in one.ranks:
                self.fabric.command(nic_name(index), "run_program", {"program": one.settings()}, told_ns)

    def _note(self, node: str, events: list[Any]) -> None:
        for event in events:
            if isinstance(event, CommandDone) and event.error:
                self.refused[node] = event.error

    def host(self, index: int) -> Host:
        """The host of a NIC."""
        node = self.fabric.simulator.node(nic_name(index))
        assert isinstance(node, HostedNic)
        return node.host

    def records(self, name: str = "work") -> list[dict[str, Any]]:
        """What came of all ranks of a program whose NICs live, in the order of their NICs."""
        alive = self.fabric.simulator.alive
        indexes = [index for index in range(self.fabric.topology.nics) if alive(nic_name(index))]
        return [record for index in indexes for record in self.host(index).records() if record["name"] == name]


def run(kind: str, ranks: int, figures: Mapping[str, Any] | None = None, until: int = LONG_NS) -> list[dict[str, Any]]:
    """What comes of one program alone, rank by rank."""
    hosted = Hosted(program(kind, ranks, figures))
    hosted.fabric.run(until)
    assert not hosted.refused
    return hosted.records()


def total(records: list[dict[str, Any]], name: str) -> int:
    """The sum of one figure over all ranks."""
    return sum(record[name] for record in records)
