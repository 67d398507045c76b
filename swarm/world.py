"""A case set up in the simulator: every core under watch, every mishap at its instant, every message in the ledger.

Owns the making of nodes with their checks, the script of commands, and the answers to them. What must hold at the end
is `swarm.verdict`'s; which checks there are, their modules'.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from mrcfabric.naming import nic_name
from mrcfabric.node import Node
from mrcfabric.rng import Rng
from mrcfabric.units import Instant
from nicd.core.events import CommandDone, Completion, QpChange
from nicd.core.mrc.qp import Link
from nicd.core.nic import Nic
from orchestrator.sim.fabric import SimulatedFabric
from swarm import anatomy, growth
from swarm.breakage import KINDS, Kind, Stage
from swarm.case import Case, Flow
from swarm.ledger import Ledger, SwitchLedger
from swarm.messages import Direction, Message, Messages
from swarm.nic_account import NicAccount
from swarm.rules import Sending
from swarm.terms import profile_commands, qp_commands
from swarm.watched import Steps, Unruly, Watched
from switchd.core.switch import Switch

SLICE_RTTS: Final = 2
"""The fabric as a whole is looked at once in so many base round trips."""
STEPS_MAX: Final = 200_000
"""Steps of all nodes together: a case that wants more is cut short, and judged by what it did until then."""
GROWTH_SLICES: Final = 16
"""Containers are measured at every so many of them."""


@dataclass(slots=True)
class Depth:
    """How closely a run is watched."""

    stepwise: bool = True
    """Look between any two instants of a core; False: where the simulator cuts."""
    checks: bool = True
    """False: nothing but bytes and completions, for digests and long runs."""


class World(SimulatedFabric):
    """One case, from instant 0."""

    _kinds: Mapping[str, Kind] = KINDS
    _steps_max = STEPS_MAX

    def __init__(self, case: Case, depth: Depth | None = None) -> None:
        """`depth`: how closely to watch, by default every instant."""
        self.case = case
        self._depth = depth or Depth()
        self.ledger = Ledger()
        self.messages = self._truth(Rng(case.topology.seed, "memory"))
        self.sending: dict[str, list[Sending]] = {}
        self.changes: list[tuple[str, QpChange]] = []
        """Every change of a QP's state, with its NIC."""
        self._asked: dict[int, Callable[[CommandDone], None]] = {}
        self._token = 1 << 20
        self._unruly: list[Unruly] = []
        self._steps = Steps(self._steps_max)
        self._slices = 0
        super().__init__(case.topology, keep=0, on_events=self._on_events)
        self._stage = Stage(self, case.flows, self.nic)
        for name in self.topology.nic_names():
            self._make_profile(name, 1)
        for number, flow in enumerate(case.flows):
            self._set_up(number, flow)
        self._plan = self._timetable()

    def _truth(self, rng: Rng) -> Messages:
        """All messages."""
        return Messages(self.case.flows, rng)

    # -- nodes

    def nic(self, name: str) -> Nic:
        """The living core of a NIC. KeyError when it is dead."""
        core = self._inner(name)
        assert isinstance(core, Nic)
        return core

    def _inner(self, name: str) -> Node:
        node: Any = self.simulator.node(name)
        while isinstance(node, Unruly | Watched):
            node = node.core
        found: Node = node
        return found

    def _core(self, name: str, start_ns: Instant) -> Node:
        core = super()._core(name, start_ns)
        checks: list[Any] = self._nic_checks(core) if isinstance(core, Nic) else []
        if isinstance(core, Switch) and self._depth.checks:
            checks = self._switch_checks(core)
        watched = Watched(core, checks, self._depth.stepwise, self._steps)
        if not self.case.unruly:
            return watched
        unruly = Unruly(watched, self.case)
        self._unruly.append(unruly)
        found: Any = unruly
        node: Node = found
        return node

    def _switch_checks(self, switch: Switch) -> list[Any]:
        return [SwitchLedger(switch, self.ledger)]

    def _nic_checks(self, nic: Nic) -> list[Any]:
        board = anatomy.board(nic)
        anatomy.look_at_memory(board.memory, lambda *placed: self.messages.placed(nic.name, self.now_ns, *placed))
        if not self._depth.checks:
            return []
        account = NicAccount(nic, self.ledger, self._depth.stepwise)
        rules = Sending(nic, self._peer_expected)
        self.sending.setdefault(nic.name, []).append(rules)

        def on_offer(now: Instant, port: int, packet: bytearray, control: bool) -> None:
            rules.offered(now, port, packet, account.offered(port, packet))

        anatomy.look_at_ports(board.ports, on_offer)
        return [account, rules]

    def _peer_expected(self, link: Link) -> int | None:
        name = nic_name(link.peer.index)
        if not self.simulator.alive(name):
            return None
        qp = anatomy.qps(self.nic(name)).get(anatomy.peer_qpn(link))
        if qp is None or qp.link is None or anatomy.peer_qpn(qp.link) != link.qpn:
            return None
        return qp.link.responder.window.expected

    def total(self, counter: str) -> int:
        """A counter of the living NICs, summed over its entries too."""
        total = 0
        for name in self.topology.nic_names():
            if self.simulator.alive(name):
                value = self.counters(name)[counter]
                total += sum(value.values()) if isinstance(value, dict) else value
        return total

    # -- the script

    def _make_profile(self, name: str, at_ns: Instant) -> None:
        for step in profile_commands(self.case.profile):
            self.simulator.command(name, at_ns, step)

    def born(self, node: str, start_ns: Instant) -> list[tuple[Instant, Any]]:
        """As in the base; a NIC gets its profile again."""
        told = super().born(node, start_ns)
        if self.topology.parse_node(node).tier == "nic":
            # One instant each: of scripted commands of one type for one instant the last alone counts.
            steps = enumerate(profile_commands(self.case.profile), 1)
            told += [(start_ns + offset, step) for offset, step in steps]
        return told

    def _set_up(self, number: int, flow: Flow) -> None:
        forth, back = self.messages.directions[2 * number : 2 * number + 2]
        starts = {"a": flow.setup_ns, "b": flow.setup_ns + flow.late_ns}
        command = self.simulator.command
        for way in (forth, back):
            source, target = way.commands()
            command(way.sender, starts[way.side], source)
            command(way.receiver, starts["b" if way.side == "a" else "a"], target)
        for side, name, peer in (("a", flow.a, flow.b), ("b", flow.b, flow.a)):
            index = self.topology.nic_index(peer)
            steps = qp_commands(flow, side, index, self.case.profile)
            for offset, step in enumerate(steps):
                command(name, starts[side] + 1 + offset, step)
        for way in (forth, back):
            for message in way.messages:
                self._token += 1
                self._asked[self._token] = self._answer_to(way, message)
                command(way.sender, message.write.at_ns, way.post(message, self._token))

    def _answer_to(self, way: Direction, message: Message) -> Callable[[CommandDone], None]:
        def answered(done: CommandDone) -> None:
            if done.error is None:
                self.messages.accepted(way, message)
            else:
                message.refused = done.error

        return answered

    def _on_events(self, name: str, events: list[Any]) -> None:
        for event in events:
            if isinstance(event, CommandDone):
                answered = self._asked.pop(event.token, None)
                if answered is not None:
                    answered(event)
            elif isinstance(event, Completion):
                self.messages.completed(name, event)
            elif isinstance(event, QpChange):
                self.changes.append((name, event))

    def _timetable(self) -> list[tuple[Instant, int, Callable[[], None]]]:
        """What is to be done to the fabric, latest first."""
        found: list[tuple[Instant, int, Callable[[], None]]] = []
        for number, fault in enumerate(self.case.faults):
            kind = self._kinds[fault.kind]
            found.append((fault.at_ns, number, partial(kind.strike, self._stage, fault, fault.at_ns)))
            if fault.until_ns and kind.mend is not None:
                found.append((fault.until_ns, number, partial(kind.mend, self._stage, fault, fault.until_ns)))
        return sorted(found, key=lambda entry: entry[:2], reverse=True)

    # -- time

    def pass_until(self, done: Callable[[], bool], deadline_ns: Instant) -> bool:
        """Run, looking at the whole fabric in slices, until `done`; False when it is not by then or nothing is due."""
        while not done():
            idle = self.simulator.next_due() is None and not self._plan
            if idle or self.now_ns >= deadline_ns:
                return False
            until = min(self._next_look_ns(), deadline_ns)
            while self._plan and self._plan[-1][0] <= until:
                at_ns, _, act = self._plan.pop()
                if self.now_ns < at_ns - 1:
                    self.run(at_ns - 1)
                act()
            self.run(until)
            self.look()
        return True

    def _next_look_ns(self) -> Instant:
        """When the fabric as a whole is looked at next."""
        return self.now_ns + SLICE_RTTS * self.topology.base_rtt_ns()

    def look(self) -> None:
        """What holds of the fabric as a whole, at any instant. Raises InvariantError."""
        if not self._depth.checks:
            return
        simulator = self.simulator
        conjured = sum(unruly.conjured for unruly in self._unruly)
        self.ledger.balance(self.now_ns, conjured, simulator.under_way(), simulator.frames_vanished)
        self._slices += 1
        for name in self.topology.nic_names():
            self.messages.check_memory(name, self.now_ns)
        if self._slices % GROWTH_SLICES == 0:
            self.measure()

    def measure(self) -> None:
        """No container of any living core has outgrown its bound."""
        for name in self.topology.node_names():
            if self.simulator.alive(name):
                core = self._inner(name)
                bounds = self._bounds(core) if isinstance(core, Nic) else {}
                growth.check(name, self.now_ns, core, bounds, GENERAL_MAX)

    def _bounds(self, nic: Nic) -> dict[str, int]:
        return nic_bounds(nic)


GENERAL_MAX: Final = 4096
"""No container of a case of some hundred packets has a reason to be longer."""


def nic_bounds(nic: Nic) -> dict[str, int]:
    """Bounds of a NIC's containers by name, from its knobs."""
    settings = nic.config.settings
    evs = max(settings.evs_active + settings.evs_reserve, *(len(link.profile.evs) for _, link in anatomy.links(nic)), 0)
    mpr = settings.mpr_units * 128
    return {
        "Executor.qps": settings.qps_max,
        "EvProfile.evs": evs,
        "EvProfile.states": evs,
        "InflightTable.by_psn": mpr,
        "Responder._lasts": mpr,
        "Prober._out": settings.probes_outstanding_max,
        "Prober._watched": evs,
        "SelfProber._out": settings.self_probes_outstanding_max,
        "SelfProber._overdue": settings.self_probes_outstanding_max,
        "Board.events": settings.events_max,
        "GoodputBins._bins": settings.bins_max,
        # Those complete before their turn stay until it comes.
        "Requestor._messages": settings.work_requests_max + mpr,
        "Requestor._queue": settings.work_requests_max,
    }
