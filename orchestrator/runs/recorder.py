"""Fills the recording of a run: asks the backend at every look and keeps what it says.

Owns what is counted: counters over all lives of a node, goodput, events, what came of the programs, digests of what
every node did. When to look is `loop.py`'s, what follows from it `orchestrator.measures`'s. A node that cannot be
asked, because it is dead or deaf, is entered with what it said last.
"""

import asyncio
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final

from mrcfabric.units import Instant
from nicd.core.ev_state import EV_STATES
from nicd.programs.program import Program
from orchestrator.faults.absence import dead, deaf
from orchestrator.faults.fault import Fault
from orchestrator.hosts.clock.host_pairs import since
from orchestrator.mapper.run_mapping import Findings
from orchestrator.measures.goodput import Goodput
from orchestrator.measures.recording import Injected, LinksFound, Look, NicLook, Recording
from orchestrator.runs.backend import Backend
from orchestrator.runs.counting import (
    flat_nic,
    flat_switch,
    plane_states,
    ports_of,
    queues_of,
    rates_of,
    windows_of,
    without_ports,
)
from orchestrator.runs.fault_traffic import FaultTraffic
from orchestrator.runs.program_results import ProgramResults
from orchestrator.scenario.plan import Plan

EVENTS_MAX: Final = 50_000
"""Events of one run that are kept, the oldest; the others are counted."""
_DIGEST_BYTES: Final = 16


@dataclass(slots=True)
class _NodeCounts:
    """One node."""

    base: dict[str, int] = field(default_factory=dict)
    """What it had counted before the run."""
    past: dict[str, int] = field(default_factory=dict)
    """What it had counted in lives that are over."""
    latest: dict[str, int] = field(default_factory=dict)
    core: Mapping[str, Any] = field(default_factory=dict)
    """The last answer of the present life."""
    incarnation: int | None = None
    life: int = 0
    event: int = 0
    """Number of the last event of the present life that was fetched."""
    deaf: bool = False
    """It lived at the begin of the run and has heard nobody since."""
    _total: dict[str, int] | None = None
    _without_ports: dict[str, int] | None = None
    """What `total` and `without_ports` gave since the last answer: every look asks for them several times."""

    def enter(self, answer: Mapping[str, Any], counts: dict[str, int]) -> None:
        """Take an answer to `counters`."""
        incarnation = answer["process"]["incarnation"]
        if self.incarnation is not None and incarnation != self.incarnation:
            self.past = _sum(self.past, self.latest)
            self.life += 1
            self.event = 0
        self.incarnation = incarnation
        self.latest = counts
        self.core = answer["core"]
        if self.deaf:  # what it counted before the run cannot be told from what it counted while it was deaf
            self.deaf, self.base = False, dict(counts)
        self._total = self._without_ports = None

    def begin(self, deaf: bool) -> None:
        """What it has counted so far was before the run; of a deaf node that is not known."""
        self.base, self.deaf = dict(self.latest), deaf
        self._total = self._without_ports = None

    def total(self) -> dict[str, int]:
        """Since the begin of the run, over all lives."""
        if self._total is None:
            base, past, latest = self.base, self.past, self.latest
            if past:
                latest = {name: past.get(name, 0) + latest.get(name, 0) for name in {**past, **latest}}
            self._total = {name: count - base.get(name, 0) for name, count in latest.items()}
        return self._total

    def without_ports(self) -> dict[str, int]:
        """The same but for what ports count one by one."""
        if self._without_ports is None:
            self._without_ports = without_ports(self.total())
        return self._without_ports


class Recorder:
    """The recording of one run, and who fills it."""

    def __init__(self, plan: Plan, backend: Backend, *, trace: bool = False, details: bool = False) -> None:
        """`trace`: the backend keeps digests of all that every node does.

        `details`: every look asks for all that programs tell, as conditions need it; else only the last one does.
        """
        topology = plan.topology
        self.recording = Recording(
            name=plan.name,
            backend=backend.kind,
            seed=plan.seed,
            topology=topology,
            second_ns=plan.second_ns,
            begin_ns=plan.begin_ns,
            end_ns=plan.begin_ns,
            goodput=Goodput.of(topology),
            probe_period_ns=int(topology.nic.get("self_probe_period_ns", 0)),
        )
        self._backend = backend
        self._trace = trace
        self._nics = list(topology.nic_names())
        self._nodes = {name: _NodeCounts() for name in topology.node_names()}
        self._results = ProgramResults(plan.programs, topology)
        self._traffic = FaultTraffic(topology)
        self._meeting = bool(plan.all_faults)
        """Faults may come: what nodes have counted before is kept in mind."""
        self._every_detail = details or bool(plan.triggers)
        self._began_s: float | None = None
        self._digests: dict[tuple[str, int], str] = {}
        self._wrong_order = 0
        self._host_pairs: list[dict[str, Any]] = []
        """As they were before the run."""

    @property
    def working(self) -> bool:
        """Whether some rank still has something to do, as of the last look."""
        return self._results.working

    @property
    def results(self) -> ProgramResults:
        """What came of the programs, as of the last look."""
        return self._results

    def add_program(self, program: Program) -> None:
        """A program that the plan does not know was given to the backend."""
        self._results.add(program)

    def injected(self, injected: Injected) -> None:
        """A fault was handed to the backend."""
        self._traffic.begin(injected)
        self._meeting = True
        self.recording.faults.append(injected)

    def mapped(self, at_ns: Instant, findings: Findings) -> LinksFound | None:
        """The mapper has looked; what it holds from now on, if that is something else than before."""
        links = self.recording.links
        found = LinksFound(at_ns, findings.bad, findings.avoided, findings.kept)
        if links is None:
            links = self.recording.links = []
        before = links[-1] if links else LinksFound(at_ns, ())
        if replace(before, at_ns=at_ns) == found:
            return None
        links.append(found)
        return found

    async def begin(self) -> None:
        """Right before the begin of the run: what has been counted by now does not count."""
        faults, now_ns = self._backend.faults(), self._backend.now_ns
        lives_deaf = deaf(faults, now_ns) - dead(faults, now_ns)
        await self._ask(self.within_reach(self._nodes))
        for name, counts in self._nodes.items():
            counts.begin(name in lives_deaf)
        self._host_pairs = await self._backend.host_pairs()
        self._enter_look(self.recording.begin_ns)

    async def look(self) -> Look:
        """The fabric as it stands."""
        await self._ask(self.within_reach(self._nodes))
        return self._enter_look()

    async def last_words(self, nodes: Sequence[str]) -> None:
        """Ask nodes that are about to die or to go deaf, so that what they know is not lost with them."""
        await self._ask(self.within_reach(nodes), whole=True)

    async def edge(self, faults: Sequence[Fault]) -> None:
        """Right before faults begin or end: what has met those that are in force is read from who can tell."""
        nodes = {node for fault in faults for node in self._traffic.witnesses(fault)}
        await self._count(self.within_reach(sorted(nodes)))
        self._meet(self._backend.now_ns, nodes)

    def _meet(self, at_ns: Instant, nodes: Iterable[str]) -> None:
        counts = {node: self._nodes[node].total() for node in nodes}
        self._traffic.enter(at_ns, counts, self.recording.faults)

    async def finish(self) -> None:
        """The last look, with everything that is not asked for while a run goes on."""
        await self._ask(self.within_reach(self._nodes), whole=True)
        self._enter_look()
        self.recording.fidelity = await self._backend.fidelity()
        self.recording.host_pairs = since(await self._backend.host_pairs(), self._host_pairs)

    def close(self, ended: str, lost: str = "") -> None:
        """Say how the run ended; nothing is asked."""
        recording = self.recording
        recording.ended, recording.lost = ended, lost
        recording.end_ns = max(self._backend.now_ns, recording.begin_ns)
        recording.programs = self._results.results()
        recording.events.sort(key=lambda event: (event["at_ns"], event["node"]))
        if self._digests:
            text = json.dumps([[node, life, digest] for (node, life), digest in sorted(self._digests.items())])
            recording.trace_digest = blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()

    # Asking.

    def within_reach(self, nodes: Sequence[str] | Mapping[str, Any]) -> list[str]:
        """Those of some nodes that live and hear."""
        faults, now_ns = self._backend.faults(), self._backend.now_ns
        absent = dead(faults, now_ns) | deaf(faults, now_ns)
        return [node for node in nodes if node not in absent]

    async def _ask(self, nodes: Sequence[str], whole: bool = False) -> None:
        """Counters of all, and of NICs what else they know; `whole`: also what is long."""
        await self._count(nodes)
        asked = [node for node in self._nics if node in set(nodes)]
        # All at once, but entered one after the other: the order must not depend on who is fast.
        details = await asyncio.gather(*(self._details(name, whole) for name in asked))
        for name, (bins, events, programs) in zip(asked, details, strict=True):
            self.recording.goodput.enter(name, bins)
            self._enter_events(name, events)
            if whole or self._every_detail:
                self._results.enter_records(name, programs)
            else:
                self._results.enter_progress(name, programs)
        if whole and self._trace:
            for node in nodes:
                self._digests[node, self._nodes[node].life] = (await self._backend.ask(node, "trace"))["digest"]

    async def _count(self, nodes: Sequence[str]) -> None:
        for node, answer in (await self._backend.counters(nodes)).items():
            nic = node in self._results.nics
            self._nodes[node].enter(answer, flat_nic(answer["core"]) if nic else flat_switch(answer["core"]))

    async def _details(self, nic: str, whole: bool) -> tuple[Any, list[dict[str, Any]], Any]:
        recording, ask = self.recording, self._backend.ask
        bin_ns = recording.goodput.bin_ns
        since_ns = max(recording.goodput.resume_ns(nic), recording.begin_ns - recording.begin_ns % bin_ns)
        bins = await ask(nic, "bins", {"since": since_ns})
        events: list[dict[str, Any]] = []
        counts = self._nodes[nic]
        while True:
            answer = await ask(nic, "events", {"since": counts.event})
            events += answer["events"]
            recording.events_forgotten += answer["forgotten"]
            counts.event = answer["last"]
            if not answer["more"]:
                break
        programs: Any = {}
        if self._results.has_rank_on(nic):
            programs = await ask(nic, "programs" if whole or self._every_detail else "progress")
        return bins, events, programs

    def _enter_events(self, nic: str, events: list[dict[str, Any]]) -> None:
        kept = self.recording.events
        for event in events:
            if event["at_ns"] < self.recording.begin_ns:
                continue
            if len(kept) >= EVENTS_MAX:
                self.recording.events_forgotten += 1
                continue
            kept.append({"node": nic, **{key: value for key, value in event.items() if key != "n"}})

    # Entering.

    def _enter_look(self, at_ns: Instant | None = None) -> Look:
        at_ns = self._backend.now_ns if at_ns is None else at_ns
        gone = dead(self._backend.faults(), at_ns)
        self._results.lose(gone)
        if self.recording.backend != "sim":
            self._began_s = time.monotonic() if self._began_s is None else self._began_s
            self.recording.clocks.append((time.monotonic() - self._began_s, at_ns))
        if self._meeting:
            self._meet(at_ns, self._nodes)
        planes = self.recording.topology.planes
        nics = {}
        for name in self._nics:
            counts = self._nodes[name]
            port_packets = [counts.total().get(f"sent.{plane}", 0) for plane in range(planes)]
            totals = counts.without_ports()
            if name in gone or counts.deaf:
                lives = name not in gone
                no_evs = [dict.fromkeys(EV_STATES, 0) for _ in range(planes)]
                nics[name] = NicLook(totals, no_evs, port_packets, [lives] * planes, alive=lives)
            else:
                evs, ports = plane_states(counts.core, planes), ports_of(counts.core)
                windows, rates = windows_of(counts.core), rates_of(counts.core)
                nics[name] = NicLook(totals, evs, port_packets, ports, windows=windows, rates=rates)
        switches: dict[str, int] = {}
        for name, counts in self._nodes.items():
            if name not in nics:
                for counter, count in counts.without_ports().items():
                    switches[counter] = switches.get(counter, 0) + count
        results = self._results
        queues = {
            node: queues_of(counts.core) for node, counts in self._nodes.items() if counts.core and node not in gone
        }
        look = Look(
            at_ns, nics, switches, results.flows(), results.steps(), results.placed(),
            *results.compared(),
            {node: now for node, (now, _) in queues.items()}, {node: peak for node, (_, peak) in queues.items()},
        )  # fmt: skip
        recording = self.recording
        # The last look may fall on an instant at which it was looked already.
        if recording.looks and recording.looks[-1].at_ns == at_ns:
            recording.looks.pop()
        recording.looks.append(look)
        recording.end_ns = at_ns
        recording.reorder = self._reorder()
        recording.programs = self._results.results()
        return look

    def _reorder(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for nic in self._nics:
            for name, count in self._nodes[nic].without_ports().items():
                if name.startswith("ahead.") and count:
                    place = int(name.removeprefix("ahead."))
                    found[place] = found.get(place, 0) + count
        return dict(sorted(found.items()))


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    found = dict(one)
    for name, count in other.items():
        found[name] = found.get(name, 0) + count
    return found
