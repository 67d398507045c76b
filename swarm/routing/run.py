"""A fabric of a seed from its begin to its end: everything watched, tables compared twice, work carried through.

Owns the order of a run and its verdict. First some parts die for good: when time-outs have passed, the tables must be
those of what lives. They come back, routing cores and links go wrong in any way, and that ends, too: then the tables
must be those of the whole fabric, and every NIC reaches every other one at once.
"""

from collections import Counter
from hashlib import blake2b
from typing import Any, Final

from mrcfabric.node import Node
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from nicd.core.events import RECV_WITH_IMM, STATUS_OK, STATUS_RETRY_EXCEEDED, Completion
from orchestrator.faults.kinds import OF_ROUTING
from orchestrator.sim.fabric import SimulatedFabric
from swarm.draw import one_of
from swarm.invariant import InvariantError
from swarm.routing.draw import BEGIN_NS, MS, STREAM, Drawn, S, draw
from swarm.routing.expected import Graph, compare
from swarm.routing.rules import RoutingRules
from swarm.watched import Steps, Watched
from switchd.core.forwarding.ecmp import EcmpForwarding
from switchd.core.forwarding.learned import LearnedForwarding
from switchd.core.routed import RoutedSwitch
from switchd.core.routing.router import Router
from switchd.core.speaking import SpeakingLosslessSwitch, SpeakingSwitch

STEPS_MAX: Final = 4_000_000
LAST_NS: Final = 200 * MS
"""How long the last writes may take, in a fabric at rest."""
_ENDS: Final = {STATUS_OK, STATUS_RETRY_EXCEEDED, "flushed"}


class RoutedFabric(SimulatedFabric):
    """Every switch with its checks."""

    def __init__(self, topology: Topology, leaks: bool, stepwise: bool, **more: Any) -> None:
        self.routers: dict[str, Router] = {}
        """Of the present life of each switch."""
        self._leaks = leaks
        self._stepwise = stepwise
        self._steps = Steps(STEPS_MAX)
        super().__init__(topology, **more)

    def _core(self, name: str, start_ns: Instant) -> Node:
        core = super()._core(name, start_ns)
        if not isinstance(core, SpeakingSwitch | SpeakingLosslessSwitch):
            return core
        self.routers[name] = core.router
        return Watched(core, [RoutingRules(self.topology, core, self._leaks)], self._stepwise, self._steps)


class Work:
    """What NICs write to one another, and what came of it."""

    def __init__(self, fabric: SimulatedFabric) -> None:
        self._fabric = fabric
        self._qps = 0
        self.posted = 0

    def pair(self, one: str, other: str, at_ns: Instant, posts: list[Instant]) -> None:
        """A QP between two NICs, and a write of a packet at each of these instants."""
        fabric, number = self._fabric, self._qps
        self._qps += 1
        for node, peer, own, theirs in ((one, other, 100, 2_000), (other, one, 2_000, 100)):
            region = {"va": 1 << 20, "length": 1 << 17, "region_id": own + number, "r_key": own + number}
            connect = {
                "qpn": own + number, "peer_index": fabric.topology.nic_index(peer), "peer_qpn": theirs + number,
                "psn_send": own, "psn_receive": theirs,
            }  # fmt: skip
            fabric.command(node, "register_memory", region, at_ns)
            fabric.command(node, "create_qp", {"qpn": own + number}, at_ns + 1)
            fabric.command(node, "connect_qp", connect, at_ns + 2)
            fabric.command(node, "modify_qp", {"qpn": own + number, "state": "rts"}, at_ns + 3)
        for message, post_ns in enumerate(posts):
            write = {
                "qpn": 100 + number, "wr_id": message, "local_region": 100 + number, "local_va": 1 << 20,
                "length": 1_000, "remote_va": 1 << 20, "r_key": 2_000 + number, "imm": None,
            }  # fmt: skip
            fabric.command(one, "post_write", write, post_ns)
            self.posted += 1


def run(seed: int, stepwise: bool = True) -> str:
    """One seed to its end; returns a digest of its events. Raises InvariantError."""
    drawn = draw(seed)
    done: list[Completion] = []
    refused: list[Any] = []
    told = Counter[str]()

    def note(node: str, events: list[Any]) -> None:
        done.extend(one for one in events if isinstance(one, Completion) and one.opcode != RECV_WITH_IMM)
        # A QP that has failed takes no more work.
        refused.extend(one for one in events if node.startswith("h") and getattr(one, "error", None))
        told.update(f"{node} {one.record()}" for one in events if hasattr(one, "record"))

    fabric = RoutedFabric(drawn.topology, drawn.leaks, stepwise, on_events=note)
    for fault in (*drawn.dead, *drawn.troubles):
        fabric.inject(fault)
    work = Work(fabric)
    _background(work, drawn, seed)
    fabric.run(drawn.judged_ns)
    compare(Graph(drawn.topology, drawn.links, drawn.switches), fabric.routers, drawn.judged_ns)
    fabric.run(drawn.rest_ns)
    compare(Graph(drawn.topology, frozenset(), frozenset()), fabric.routers, drawn.rest_ns)
    _ended(done, work.posted - len(refused), fabric.now_ns)
    _no_loops(fabric, drawn)
    _last(fabric, work, done)
    return blake2b("\n".join(f"{what} {count}" for what, count in sorted(told.items())).encode()).hexdigest()[:16]


def _background(work: Work, drawn: Drawn, seed: int) -> None:
    """A few QPs across the fabric, that write all the time."""
    rng, names = Rng(STREAM, seed, "work"), list(drawn.topology.nic_names())
    below = drawn.topology.nics_per_t0
    for _ in range(4):
        one = rng.below(len(names))
        other = one_of(rng, [index for index in range(len(names)) if index // below != one // below])
        posts = sorted(BEGIN_NS - S + rng.below(drawn.rest_ns - BEGIN_NS - 6 * S) for _ in range(40))
        work.pair(names[one], names[other], S // 2, posts)


def _ended(done: list[Completion], posted: int, at_ns: Instant) -> None:
    """Every write has ended in one way or another."""
    statuses = Counter(event.status for event in done)
    if statuses.total() != posted or not statuses.keys() <= _ENDS:
        raise InvariantError("drain", "fabric", at_ns, f"{posted} writes were posted, and ended {dict(statuses)}")


def _no_loops(fabric: RoutedFabric, drawn: Drawn) -> None:
    """No packet has used up its hops, unless somebody told of what is not its own."""
    for name in () if drawn.leaks else fabric.topology.switch_names():
        if count := fabric.counters(name)["drops"]["hop_limit"]:
            raise InvariantError(
                "loop", name, fabric.now_ns, f"{count} packets went round until their hops were used up"
            )


def _last(fabric: RoutedFabric, work: Work, done: list[Completion]) -> None:
    """In the whole fabric each NIC reaches the first one of every other rack, at once."""
    begin_ns, topology = fabric.now_ns + 1, fabric.topology
    names = list(topology.nic_names())
    before, count = len(done), work.posted
    for index, name in enumerate(names):
        for first in range(0, len(names), topology.nics_per_t0):
            if first // topology.nics_per_t0 != index // topology.nics_per_t0:
                work.pair(name, names[first], begin_ns, [begin_ns + 10])
    fabric.run(begin_ns + LAST_NS)
    ended = [event for event in done[before:] if event.status == STATUS_OK]
    if len(ended) != work.posted - count:
        what = f"{len(ended)} of {work.posted - count} writes arrived in a fabric at rest"
        raise InvariantError("reach", "fabric", fabric.now_ns, what)


def run_static(seed: int) -> None:
    """The fabric of a seed with tables that stand: no fault of routing changes anything. Raises InvariantError."""
    drawn = draw(seed)
    keys = [
        key for key in drawn.topology.switch if key in ("routing", "bfd") or key.startswith(("bgp_", "bfd_", "fib_"))
    ]
    switch = {key: value for key, value in drawn.topology.switch.items() if key not in keys}
    static = Topology.from_dict({**drawn.topology.to_dict(), "switch": switch})
    frames = []
    for with_routing in (True, False):
        fabric = SimulatedFabric(static)
        for fault in (*drawn.dead, *drawn.troubles):
            if with_routing or fault.kind not in OF_ROUTING:
                fabric.inject(fault)
        work = Work(fabric)
        _background(work, drawn, seed)
        for name in static.switch_names():
            core = fabric.simulator.node(name)
            ways = core._plain_forwarding if isinstance(core, RoutedSwitch) else None
            if not isinstance(ways, EcmpForwarding) or isinstance(ways, LearnedForwarding):
                raise InvariantError("static", name, 0, "a table that stands is one that is learnt")
        fabric.run(drawn.rest_ns)
        frames.append((fabric.simulator.frames, [_of(fabric, name) for name in static.node_names()]))
    if frames[0] != frames[1]:
        raise InvariantError(
            "static", "fabric", drawn.rest_ns, "faults of routing cores change what tables do that stand"
        )


def _of(fabric: SimulatedFabric, name: str) -> dict[str, Any]:
    return fabric.counters(name) if fabric.simulator.alive(name) else {}
