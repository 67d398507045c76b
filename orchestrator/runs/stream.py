"""The event stream of a run: one JSON object per line, for programs that watch or collect (`mrcfabric run --json`).

Owns the lines; docs/schema/events.json says which keys each has. Instants are fabric time in nanoseconds. Without wall
clock, path or process id in them, the lines of a run in virtual time are the same byte for byte each time.
"""

import json
from typing import Any, TextIO

from mrcfabric.units import GBPS, NEVER, Instant
from orchestrator.measures.recording import Injected, LinksFound, Recording
from orchestrator.runs.glance import FaultChange, Follower, glance
from orchestrator.runs.outlet import Outlet
from orchestrator.scenario.plan import Plan, Trigger

FORMAT = 1
"""Grows when a key changes its meaning or goes away."""


class Stream:
    """A listener that writes lines."""

    def __init__(self, out: TextIO) -> None:
        self._outlet = Outlet(out)
        self._follower = Follower()
        self._at_ns: Instant = 0
        self._ended = False

    def began(self, plan: Plan, backend: str) -> None:
        """What is to come."""
        topology = plan.topology
        self._at_ns = plan.begin_ns
        self._tell(
            "begin",
            format=FORMAT,
            name=plan.name,
            description=plan.description,
            backend=backend,
            seed=plan.seed,
            length_ns=plan.length_ns,
            look_ns=plan.look_ns,
            second_ns=plan.second_ns,
            rtt_ns=topology.base_rtt_ns(),
            planes=topology.planes,
            nics=topology.nics,
            line_gbps=topology.nics * topology.planes * topology.rate_bps / GBPS,
            programs=[{"name": one.name, "kind": one.kind, "ranks": len(one.ranks)} for one in plan.programs],
            faults=[fault.record() for fault in plan.faults],
            triggers=[{"name": trigger.name, "condition": trigger.text} for trigger in plan.triggers],
            expectations=[expectation.name for expectation in plan.expectations],
        )

    def looked(self, recording: Recording) -> None:
        """What has happened since the look before, at its own instants, and then how things stand."""
        for change in self._follower.changes(recording):
            if isinstance(change, FaultChange):
                self._fault(change.phase, change.injected, change.at_ns)
            else:
                self._tell("step", change.at_ns, program=change.program, finished=change.finished)
        seen = glance(recording)
        self._at_ns = seen.at_ns
        self._tell(
            "look",
            goodput_gbps=round(sum(seen.planes_gbps), 2),
            planes_gbps=[round(rate, 2) for rate in seen.planes_gbps],
            steps=seen.steps,
            faults=list(seen.faults),
            evs=seen.evs,
            ports_down=seen.ports_down,
            packets_lost=seen.packets_lost,
            retransmits=seen.retransmits,
            qp_errors=seen.qp_errors,
        )

    def injected(self, injected: Injected) -> None:
        self._fault("injected", injected, self._at_ns)

    def triggered(self, trigger: Trigger, at_ns: Instant) -> None:
        self._tell(
            "trigger",
            at_ns,
            name=trigger.name,
            condition=trigger.text,
            faults=[fault.id for fault in trigger.faults],
        )

    def mapped(self, found: LinksFound) -> None:
        self._tell("links", found.at_ns, bad=list(found.bad), avoided=list(found.avoided), kept=dict(found.kept))

    def ended(self, report: dict[str, Any]) -> None:
        """A line per expectation, and the verdict."""
        self._ended = True
        for finding in report["findings"]:
            self._tell("finding", report["end_ns"], **finding)
        self._tell(
            "end",
            report["end_ns"],
            verdict=report["verdict"],
            reasons=report["reasons"],
            exit_code=report["exit_code"],
            trace_digest=report["trace_digest"],
        )

    def closed(self) -> None:
        """The last line, where there was nothing to judge: a reader is never left waiting for it."""
        if not self._ended:
            self._tell("end", verdict=None, reasons=["the run came to nothing"], exit_code=None, trace_digest="")

    def _fault(self, phase: str, injected: Injected, at_ns: Instant) -> None:
        fault = injected.fault
        self._tell(
            "fault",
            at_ns,
            phase=phase,
            id=fault.id,
            kind=fault.kind,
            title=fault.title,
            targets=list(fault.targets),
            start_ns=fault.start_ns,
            end_ns=None if fault.end_ns == NEVER else fault.end_ns,
            why=injected.why,
        )

    def _tell(self, event: str, at_ns: Instant | None = None, **fields: Any) -> None:
        line = {"event": event, "at_ns": self._at_ns if at_ns is None else at_ns, **fields}
        self._outlet.say(json.dumps(line, separators=(",", ":")))
