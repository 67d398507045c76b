"""One experiment: a fabric, flows and faults in virtual time, from set-up to the last completion.

Owns the set-up of QPs and the posting of messages, and what is read off the cores afterwards. What it all means is for
`outcome` and the studies. Everything is data, so that a trial can be handed to another process, and nothing is random
but what grows from the topology's seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mrcfabric.naming import nic_name
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from nicd.core.events import RECV_WITH_IMM, STATUS_OK, Completion, EvTransition, QpChange
from nicd.core.nic import Nic
from orchestrator.sim.fabric import SimulatedFabric
from studies.flows import START_NS, Flow, Line
from studies.outcome import FlowResult, Outcome, collect

_QPN_FIRST = 16
_SOURCE_VA, _TARGET_VA = 1 << 20, 1 << 40
_SOURCE, _TARGET, _R_KEY = 1, 2, 0x57D1E5
_STEP_RTTS = 2
"""How often a trial asks whether all flows are done, in base RTTs."""


class Fault(Protocol):
    """Something that goes wrong; the kinds are in `studies.faults`."""

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        """Order it from the fabric, at its instants; `lines` are the trial's flows and their QPs."""
        ...


@dataclass(frozen=True, slots=True)
class Trial:
    """All that makes a result; the same trial gives the same outcome on every machine."""

    topology: Topology
    flows: tuple[Flow, ...]
    faults: tuple[Fault, ...] = ()
    deadline_ns: Instant = 0
    """When it ends at the latest. Flows that are not done then have failed."""
    window_ns: tuple[Instant, Instant] | None = None
    """Rates are measured between these instants, and the trial ends at the second; None: until all flows are done."""
    fault_ns: Instant = 0
    """When something happens, for those who measure from then on."""
    sample_ns: Instant = 0
    """Width of the samples of the timeline; 0: none are kept."""
    sample_flows: bool = False
    """Keep those samples of every flow, too."""

    def run(self) -> Outcome:
        """Everything, in virtual time. RuntimeError when a command is refused: the trial is wrong."""
        return _Run(self).outcome()


class _Run:
    """A trial under way."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._fabric = SimulatedFabric(trial.topology, on_events=self._note)
        self._sending: dict[tuple[str, int], int] = {}
        """(sending node, QP number) -> number of its flow."""
        self._results = [FlowResult(flow.group, flow.source, flow.target, flow.start_ns) for flow in trial.flows]
        self._waiting: dict[tuple[str, int], int] = {}
        """(node, QP number that brings a message) -> number of the flow that goes on then."""
        self._broken: set[str] = set()
        """Nodes with a QP in error."""
        self._posted = [0] * len(trial.flows)
        self._left = [flow.messages * flow.qps for flow in trial.flows]
        self._lines: list[Line] = []
        self._first_retired_ns: Instant | None = None
        self._tables: dict[str, dict[int, dict[str, int | str]]] = {}
        """Node -> its QPs, as of `_tables_ns`."""
        self._tables_ns: Instant = -1
        self._prepare()

    def outcome(self) -> Outcome:
        """Run and collect."""
        trial = self._trial
        for fault in trial.faults:
            fault.strike(self._fabric, self._lines)
        timeline: list[int] = []
        at_start: Outcome | None = None
        if trial.window_ns is None:
            self._until_done(timeline)
        else:
            start, end = trial.window_ns
            self._advance(start, timeline)
            before = [self._delivered(number) for number in range(len(trial.flows))]
            at_start = collect(self._fabric, self._results)
            self._advance(end, timeline)
            for number, result in enumerate(self._results):
                result.window_bytes = self._delivered(number) - before[number]
        outcome = collect(self._fabric, self._results)
        outcome.before = at_start
        outcome.timeline = timeline
        outcome.first_retired_ns = self._first_retired_ns
        return outcome

    def _until_done(self, timeline: list[int]) -> None:
        step = _STEP_RTTS * self._trial.topology.base_rtt_ns()
        while self._unfinished() and self._fabric.now_ns < self._trial.deadline_ns:
            self._advance(min(self._fabric.now_ns + step, self._trial.deadline_ns), timeline)

    def _unfinished(self) -> bool:
        """Something may still come of it: a flow that nothing has failed is not done."""
        return any(left and not result.failed for left, result in zip(self._left, self._results, strict=True))

    def _advance(self, until: Instant, timeline: list[int]) -> None:
        """Run to `until`, noting the bytes placed so far at every sampling instant on the way."""
        sample = self._trial.sample_ns
        while sample and (at := (len(timeline) + 1) * sample) <= until:
            self._fabric.run(at)
            timeline.append(sum(self._placed(name) for name in self._trial.topology.nic_names()))
            if self._trial.sample_flows:
                for number, result in enumerate(self._results):
                    result.samples.append(self._delivered(number))
        self._fabric.run(until)

    def _placed(self, name: str) -> int:
        return int(self._nic(name).counters()["bytes_placed"])

    def _nic(self, name: str) -> Nic:
        node = self._fabric.simulator.node(name)
        assert isinstance(node, Nic)
        return node

    def _delivered(self, number: int) -> int:
        """Bytes of a flow that have arrived at its target so far, each counted once."""
        flow, qpns = self._lines[number]
        mtu = self._trial.topology.mtu_bytes
        if self._tables_ns != self._fabric.now_ns:
            self._tables_ns = self._fabric.now_ns
            self._tables.clear()
        name = nic_name(flow.target)
        if name not in self._tables:
            self._tables[name] = {int(row["qpn"]): row for row in self._nic(name).qp_table()}
        rows = [self._tables[name][qpn] for qpn in qpns]
        return sum(_placed_by(row, mtu) for row in rows)

    def _note(self, node: str, events: list[Any]) -> None:
        for event in events:
            if isinstance(event, Completion):
                if event.opcode == RECV_WITH_IMM:
                    self._go_on(node, event)
                else:
                    self._complete(node, event)
            elif isinstance(event, EvTransition):
                if self._first_retired_ns is None and event.target == "assumed_bad":
                    self._first_retired_ns = event.at_ns
            elif isinstance(event, QpChange):
                if event.target == "error":
                    self._fail(node, event.qpn)
            elif getattr(event, "error", None) and node not in self._broken:
                raise RuntimeError(f"{node}: {event.error}")

    def _complete(self, node: str, event: Completion) -> None:
        number = self._sending.get((node, event.qpn))
        if number is None:
            return
        result = self._results[number]
        self._left[number] -= 1
        if event.status != STATUS_OK:
            result.failed += 1
            return
        result.bytes_done += event.byte_len
        if not self._left[number] and not result.failed:
            result.done_ns = event.at_ns

    def _fail(self, node: str, qpn: int) -> None:
        """A QP is in error: its flow will not be done, and posting to it is refused."""
        self._broken.add(node)
        number = self._sending.get((node, qpn))
        if number is not None:
            self._results[number].failed += 1

    def _go_on(self, node: str, event: Completion) -> None:
        """A message has arrived: the flow that waited for it posts its next one, a link's delay later."""
        number = self._waiting.get((node, event.qpn))
        if number is None:
            return
        flow, qpns = self._lines[number]
        if self._posted[number] < flow.messages and not self._results[number].failed:
            self._post(number, qpns[0], event.at_ns + self._trial.topology.link_delay_ns)

    # -- set-up

    def _prepare(self) -> None:
        """Regions, QPs on both ends of every flow, and the messages; each region is as large as its largest "
        "message."""
        largest: dict[tuple[int, int], int] = {}
        for flow in self._trial.flows:
            for key in ((flow.source, _SOURCE), (flow.target, _TARGET)):
                largest[key] = max(largest.get(key, 0), flow.size)
        for (nic, region), size in largest.items():
            va = _SOURCE_VA if region == _SOURCE else _TARGET_VA
            args = {"va": va, "length": size, "region_id": region, "r_key": _R_KEY if region == _TARGET else 1}
            self._fabric.command(nic_name(nic), "register_memory", args, 1)
        qpn = _QPN_FIRST
        for number, flow in enumerate(self._trial.flows):
            own = range(qpn, qpn := qpn + flow.qps)
            self._lines.append(Line(flow, own))
            self._sending |= {(nic_name(flow.source), one): number for one in own}
            for one in own:
                self._connect(one, flow)
            for _ in range(flow.messages if flow.after is None else 1):
                for one in own:
                    self._post(number, one, flow.start_ns)
        for number, (flow, _) in enumerate(self._lines):
            if flow.after is not None:
                before = self._lines[flow.after]
                assert before.flow.target == flow.source, f"flow {number} does not begin where flow {flow.after} ends"
                self._waiting[nic_name(flow.source), before.qpns[0]] = number

    def _connect(self, qpn: int, flow: Flow) -> None:
        """Both ends of a QP, which have the same number; both receive before either sends."""
        for nic, peer in ((flow.source, flow.target), (flow.target, flow.source)):
            name = nic_name(nic)
            connect = {"qpn": qpn, "peer_index": peer, "peer_qpn": qpn, "psn_send": 0, "psn_receive": 0}
            self._fabric.command(name, "create_qp", {"qpn": qpn}, 2)
            self._fabric.command(name, "connect_qp", connect, 3)
            self._fabric.command(name, "modify_qp", {"qpn": qpn, "state": "rts"}, START_NS - 1)

    def _post(self, number: int, qpn: int, at_ns: Instant) -> None:
        flow = self._trial.flows[number]
        place = self._posted[number]
        self._posted[number] += 1
        write = {
            "qpn": qpn, "wr_id": place, "local_region": _SOURCE, "local_va": _SOURCE_VA, "length": flow.size,
            "remote_va": _TARGET_VA, "r_key": _R_KEY, "imm": place if flow.after is not None else None,
        }  # fmt: skip
        self._fabric.command(nic_name(flow.source), "post_write", write, at_ns)


def _placed_by(row: dict[str, int | str], mtu: int) -> int:
    """Bytes of a QP that have arrived; a transport whose QPs have several contexts counts no PSNs of theirs."""
    if "expected" not in row:
        return int(row["bytes_placed"])
    return (int(row["expected"]) + int(row["out_of_order"])) * mtu
