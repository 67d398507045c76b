"""Row J1: four T1s reboot under a training job, before and after: halt, converge, restart; or nobody notices.

The two files of examples/outage, carried out in virtual time: the same job on the same slow fabric, with RoCE over
BGP and with MRC. Every figure is of the job's bill (`orchestrator.measures.job`)."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mrcfabric.units import NS_PER_S
from orchestrator.measures.job import Bill, bill
from orchestrator.runs.loop import RunLoop
from orchestrator.runs.observer import SilentObserver
from orchestrator.runs.recorder import Recorder
from orchestrator.scenario.resolve import load
from orchestrator.sim.backend import SimBackend
from studies.systems.row import Finding, Row, at_least, between, seen

_FILES: Final = Path(__file__).parents[2] / "examples" / "outage"
_STEPS: Final = 40
_HOLD_S: Final = 9
"""BGP's hold timer; with it alone, half a keepalive's phase and a restart the job is back within twice of it."""


def outage(name: str) -> Bill:
    """The bill of the job of one file."""
    plan = load(str(_FILES / f"{name}.yaml"))
    backend = SimBackend(plan.topology)
    recording = asyncio.run(RunLoop(plan, backend, Recorder(plan, backend), SilentObserver()).run())
    found = bill(recording.programs[0], recording.end_ns)
    assert found is not None, "both files have a job"
    return found


def measure_outage(name: str) -> Sequence[Finding]:
    """J1, one side."""
    paid = outage(name)
    ranks, idle_s = paid.ranks, paid.idle_ns / NS_PER_S
    if name == "before":
        at = "before, RoCE and BGP"
        judged = [
            at_least(f"{at}: restarts", 1, paid.restarts, 0),
            between(f"{at}: GPUs idle", ranks * 2.0, ranks * 2.0 * _HOLD_S, idle_s, 2, "s"),
        ]
    else:
        at = "after, MRC"
        judged = [
            between(f"{at}: restarts", 0, 0, paid.restarts, 0),
            between(f"{at}: GPUs idle", 0, 0, idle_s, 2, "s"),
        ]
    return [
        *judged,
        between(f"{at}: steps that count", _STEPS, _STEPS, paid.steps, 0),
        seen(f"{at}: steps lost", paid.steps_lost, 0),
        seen(f"{at}: steps done again", paid.steps_redone, 0),
        seen(f"{at}: the job takes", paid.total_ns / NS_PER_S, 2, "s"),
        seen(f"{at}: useful share", paid.availability, 3),
        seen(f"{at}: what failures cost, of 100", 100 * paid.cost_of_failures / paid.cost, 1),
    ]


ROWS: Final = (
    Row(
        "J1",
        "Four T1s reboot under a training job, before and after",
        "before: the job is thrown back, and GPUs stand still for seconds; after: no restart, no step lost",
        "OpenAI's article; FRR's timers; NCCL's time-out of RC",
        "none: restarts and bounds",
        "examples/outage: 40 steps on 4 ranks, a checkpoint every 10, four of eight T1s away for 6 s; the collective "
        "gives up after 2 s, a restart takes 2.5 s, BGP's hold timer is 9 s and nobody sees the carrier go",
        ("before", "after"),
        measure_outage,
        exact=False,
    ),
)
