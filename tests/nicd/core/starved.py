"""One flow between two T0s of which nearly all up-links die, in virtual time: how long do no data arrive?"""

from dataclasses import dataclass, field
from typing import Any

from mrcfabric.impairment import HEALTHY, Impairment
from mrcfabric.naming import t0_name, t1_name
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from tests.nicd.core.fabric import Fabric

_DEAD = Impairment(up=False)
_MESSAGE_BYTES = 1 << 18
_WARM_RTTS = 12
"""How long the healthy flow runs first."""
_STEPS_PER_RTT = 4

Path = tuple[int, int]
"""Plane, and number of the T1."""


@dataclass(frozen=True, slots=True)
class Case:
    """A fabric, and what dies in it."""

    planes: int
    t1s: int
    seed: str
    where: str
    """Whose T0 loses its up-links: "sender", "receiver" or "both"."""
    ways: str = "duplex"
    """"duplex": a dead link is dead both ways; "apart": each way dies by itself, with other survivors."""
    left: int = 1
    """Paths that live on."""
    moves: bool = False
    """Later other paths live, and these no more."""
    blackout_rtts: int = 0
    """Nothing at all lives for so long first."""
    rate_bps: int = 100_000_000_000
    link_delay_ns: int = 1000
    watch_rtts: int = 40
    nic: dict[str, Any] = field(default_factory=dict)

    def topology(self) -> Topology:
        return Topology(
            name="starved", planes=self.planes, t0_per_plane=2, t1_per_plane=self.t1s, nics_per_t0=1,
            rate_bps=self.rate_bps, link_delay_ns=self.link_delay_ns, seed=self.seed, nic=self.nic,
        )  # fmt: skip


class Starved:
    """A case under way."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.topology = case.topology()
        self.rtt_ns = self.topology.base_rtt_ns()
        self.fabric = fabric = Fabric(self.topology)
        for name in ("h000", "h001"):
            fabric.memory(name, _MESSAGE_BYTES)
        fabric.connect("h000", "h001", 100, 200)
        spans = _WARM_RTTS + case.watch_rtts * (2 if case.moves else 1) + case.blackout_rtts
        wanted = self.topology.planes * self.topology.rate_bps * spans * self.rtt_ns // 8_000_000_000
        for number in range(min(4096, wanted // _MESSAGE_BYTES + 1)):
            fabric.write("h000", 100, number, 0, _MESSAGE_BYTES, 1_000)
        self.paths = [(plane, t1) for plane in range(case.planes) for t1 in range(case.t1s)]
        self._rng = Rng(case.seed, "starved")

    def longest_gap(self) -> float:
        """The longest time without new data at the receiver, in base RTTs, while a path there and one back live."""
        case = self.case
        now = self.fabric.simulator.now_ns + _WARM_RTTS * self.rtt_ns
        self.fabric.simulator.run(now)
        if case.blackout_rtts:
            self._leave(now, set(), set())
            now += case.blackout_rtts * self.rtt_ns
            self.fabric.simulator.run(now)
        worst = 0
        for _ in range(2 if case.moves else 1):
            there = self._some()
            self._leave(now, there, there if case.ways == "duplex" else self._some())
            worst = max(worst, self._watch(now))
            now += case.watch_rtts * self.rtt_ns
        return worst / self.rtt_ns

    def _some(self) -> set[Path]:
        paths = list(self.paths)
        self._rng.shuffle(paths)
        return set(paths[: self.case.left])

    def _leave(self, now: int, there: set[Path], back: set[Path]) -> None:
        """From now on only these paths live."""
        for path in self.paths:
            for t0, outward, homeward in ((0, there, back), (1, back, there)):
                if self.case.where != "both" and (self.case.where == "sender") != (t0 == 0):
                    continue
                plane, t1 = path
                self.fabric.impair(t0_name(plane, t0), 1 + t1, HEALTHY if path in outward else _DEAD, now + 1)
                self.fabric.impair(t1_name(plane, t1), t0, HEALTHY if path in homeward else _DEAD, now + 1)

    def _watch(self, now: int) -> int:
        step = self.rtt_ns // _STEPS_PER_RTT
        placed, last, worst = self._placed(), now, 0
        for at in range(now + step, now + self.case.watch_rtts * self.rtt_ns + 1, step):
            self.fabric.simulator.run(at)
            worst = max(worst, at - last)
            if (more := self._placed()) != placed:
                placed, last = more, at
        return worst

    def _placed(self) -> int:
        return int(self.fabric.core("h001").counters()["bytes_placed"])
