"""What came of the programs of a run, as their hosts told it last: ranks, steps, flows.

Owns the merging of what NICs say into results of whole programs. A rank whose NIC died is lost, with what it had told
before. What a rank tells is `nicd.programs.record`'s.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from mrcfabric.topology import Topology
from nicd.programs.program import Program
from orchestrator.measures.recording import ProgramResult, RankResult, Step


class ProgramResults:
    """Every rank of every program."""

    def __init__(self, programs: Iterable[Program], topology: Topology) -> None:
        self.nics = frozenset(topology.nic_names())
        self._topology = topology
        self._results: list[ProgramResult] = []
        self._ranks: dict[tuple[str, str], RankResult] = {}
        """By program and NIC, as all that follows."""
        self._steps: dict[tuple[str, str], int] = {}
        self._received: dict[tuple[str, str], dict[str, int]] = {}
        self._placed: dict[tuple[str, str], dict[str, int]] = {}
        self._compared: dict[tuple[str, str], tuple[int, int]] = {}
        self._with_ranks: set[str] = set()
        for program in programs:
            self.add(program)

    def add(self, program: Program) -> None:
        """One program more."""
        names = [self._topology.node_name(index) for index in program.ranks]
        ranks = [RankResult(nic, rank, "running", begin_ns=program.begin_ns) for rank, nic in enumerate(names)]
        self._results.append(ProgramResult(program.name, program.kind, ranks))
        for rank in ranks:
            key = (program.name, rank.nic)
            self._ranks[key] = rank
            self._steps[key] = 0
            self._received[key] = {}
            self._placed[key] = {}
            self._with_ranks.add(rank.nic)

    def has_rank_on(self, nic: str) -> bool:
        """Whether a NIC has a rank in any program."""
        return nic in self._with_ranks

    def enter_progress(self, nic: str, told: Mapping[str, Mapping[str, Any]]) -> None:
        """Take what a NIC answers to `progress`."""
        for name, entry in told.items():
            rank = self._ranks.get((name, nic))
            if rank is not None:  # else of another run
                rank.state = entry["state"]
                self._steps[name, nic] = entry["steps"]
                self._received[name, nic] = dict(entry["flows"])
                self._placed[name, nic] = dict(entry["placed"])
                self._compared[name, nic] = entry["bytes_verified"], entry["bytes_wrong"]

    def enter_records(self, nic: str, told: Iterable[Mapping[str, Any]]) -> None:
        """Take what a NIC answers to `programs`."""
        for entry in told:
            rank = self._ranks.get((entry["name"], nic))
            if rank is not None:
                self._enter_record((entry["name"], nic), rank, entry)

    def _enter_record(self, key: tuple[str, str], rank: RankResult, entry: Mapping[str, Any]) -> None:
        rank.state, rank.reason = entry["state"], entry["reason"]
        self._steps[key] = len(entry["steps"])
        self._received[key] = {sender: flow["bytes"] for sender, flow in entry["flows"].items()}
        self._placed[key] = rank.placed = dict(entry["placed"])
        self._compared[key] = entry["bytes_verified"], entry["bytes_wrong"]
        rank.begin_ns, rank.end_ns = entry["begin_ns"], entry["end_ns"]
        rank.steps = [Step(*step) for step in entry["steps"]]
        rank.messages_sent, rank.messages_received = entry["messages_sent"], entry["messages_received"]
        rank.bytes_sent, rank.bytes_received = entry["bytes_sent"], entry["bytes_received"]
        rank.bytes_verified, rank.bytes_wrong = entry["bytes_verified"], entry["bytes_wrong"]
        rank.latencies = [(nic, at_ns, latency_ns) for nic, at_ns, latency_ns in entry["latencies"]]
        rank.flows = {sender: dict(flow) for sender, flow in entry["flows"].items()}

    def lose(self, dead: Iterable[str]) -> None:
        """NICs that have died take their ranks with them."""
        for nic in self._with_ranks.intersection(dead):
            for (_, where), rank in self._ranks.items():
                if where == nic and rank.state == "running":
                    rank.state, rank.reason = "lost", "its NIC died"

    @property
    def working(self) -> bool:
        """Whether some rank still has something to do, or would have if its peers had."""
        return any(rank.state == "running" for rank in self._ranks.values())

    def flows(self) -> dict[str, int]:
        """`program:sender>receiver` -> bytes of whole messages received."""
        return _by_flow(self._received)

    def placed(self) -> dict[str, int]:
        """The same of all bytes that were written to memory."""
        return _by_flow(self._placed)

    def compared(self) -> tuple[int, int]:
        """Bytes that ranks compared with what they had to be, and those of them that were something else."""
        told = self._compared.values()
        return sum(verified for verified, _ in told), sum(wrong for _, wrong in told)

    def steps(self) -> dict[str, int]:
        """Program -> steps that every rank has finished."""
        return {
            result.name: min(self._steps[result.name, rank.nic] for rank in result.ranks) for result in self._results
        }

    def results(self) -> list[ProgramResult]:
        """As told so far; the same objects every time."""
        return self._results


def _by_flow(found: Mapping[tuple[str, str], Mapping[str, int]]) -> dict[str, int]:
    return {
        f"{name}:{sender}>{nic}": size
        for (name, nic), senders in found.items()
        for sender, size in sorted(senders.items())
    }
