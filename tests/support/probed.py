"""Link tables as NICs would report them, for a fabric whose links lose what a test says, without any packets."""

import math
from typing import Any

from mrcfabric.rng import PPM, Rng
from mrcfabric.topology import Topology
from mrcfabric.turns import TurnTable
from nicd.core.mrc.self_probe import COUNTS

COLUMNS = ["plane", "t1", *COUNTS, "silent", "rtt_sum_ns", "rtt_min_ns", "rtt_max_ns"]


class ProbedFabric:
    """Counts of rounds of self probes. `losses` maps a link's or switch's name to the share of round trips lost."""

    def __init__(self, topology: Topology, seed: object = 0, testers: int = 2) -> None:
        self.topology = topology
        self.losses: dict[str, float] = {}
        self.dark: set[int] = set()
        """NICs that do not answer."""
        self.no_carrier: set[tuple[int, int]] = set()
        """(NIC, plane)."""
        self.start_ns = dict.fromkeys(range(topology.nics), 0)
        self._rng = Rng("probed", str(seed))
        self._turns = [TurnTable(topology, nic) for nic in range(topology.nics)]
        self._rows: list[dict[int, dict[str, int]]] = [{} for _ in range(topology.nics)]
        self._round = 0
        self._crossed: dict[tuple[int, int], list[str]] = {}
        self._testers = testers

    def rounds(self, number: int) -> None:
        """So many rounds of all NICs."""
        for _ in range(number):
            for nic, turns in enumerate(self._turns):
                for way in turns.of_round(self._round, self._testers):
                    self._probe(nic, way)
            self._round += 1

    def restart(self, nic: int, at_ns: int) -> None:
        self._rows[nic] = {}
        self.start_ns[nic] = at_ns

    def tables(self) -> dict[int, dict[str, Any] | None]:
        """NIC -> its table."""
        return {nic: None if nic in self.dark else self._table(nic) for nic in range(self.topology.nics)}

    def crossed(self, nic: int, way: int) -> list[str]:
        """Names of the links and switches on a way."""
        found = self._crossed.get((nic, way))
        if found is None:
            found = self._crossed[nic, way] = self._names(nic, way)
        return found

    def _names(self, nic: int, way: int) -> list[str]:
        plane, t1 = self._turns[nic].plane(way), self._turns[nic].t1(way)
        home = self.topology.ports(self.topology.node_name(nic))[plane]
        names = [home.link, home.peer]
        if t1 is not None:
            names += [f"{home.peer}~p{plane}-t1-{t1}", f"p{plane}-t1-{t1}"]
        return names

    def _probe(self, nic: int, way: int) -> None:
        row = self._rows[nic].setdefault(way, dict.fromkeys(COLUMNS[2:], 0))
        if (nic, self._turns[nic].plane(way)) in self.no_carrier:
            row["skipped"] += 1
            return
        row["sent"] += 1
        lost = False
        if self.losses:
            home = math.prod(1 - self.losses.get(name, 0.0) for name in self.crossed(nic, way))
            lost = self._rng.chance(PPM - int(home * PPM))
        row["lost" if lost else "back"] += 1
        row["silent"] = row["silent"] + 1 if lost else 0

    def _table(self, nic: int) -> dict[str, Any]:
        turns = self._turns[nic]
        rows = [[turns.plane(way), turns.t1(way), *row.values()] for way, row in sorted(self._rows[nic].items())]
        dark = sum(1 << plane for number, plane in self.no_carrier if number == nic)
        return {
            "columns": COLUMNS, "rows": rows, "start_ns": self.start_ns[nic], "period_ns": 1, "rounds_left": None,
            "waiting": 0, "loops": [], "loops_left": 0, "carrier": (1 << turns.planes) - 1 & ~dark,
        }  # fmt: skip
