"""A run at its newest look: the few figures shown while it goes on, and what has changed since the look before.

Pure. Owns which figures these are and what counts as news; how they look is `screen`'s, `lines`'s
and `stream`'s. What a run is judged by is `orchestrator.measures`'s, with every look and not the newest alone.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from mrcfabric.units import GBPS, NEVER, NS_PER_S, Instant
from nicd.core.ev_state import EV_STATES
from orchestrator.measures.goodput import Goodput
from orchestrator.measures.recording import Injected, NicLook, Recording
from orchestrator.measures.wall_clock import recent_dilation

Phase: TypeAlias = Literal["begins", "ends", "healed"]


@dataclass(frozen=True, slots=True)
class Glance:
    """The fabric at one look."""

    at_ns: Instant
    planes_gbps: tuple[float, ...]
    """Goodput per plane over the bins since the look before."""
    evs: dict[str, int]
    """EVs of all QPs of all NICs by state."""
    ports_down: int
    retransmits: int
    packets_lost: int
    qp_errors: int
    steps: dict[str, int]
    verified: int
    """Bytes that programs have compared, and those that were wrong."""
    wrong: int
    wall_s: float | None
    """Since the begin, and wall time over fabric time of late; None in virtual time."""
    dilation: float | None
    faults: tuple[str, ...]
    """Ids of those in force: begun and not over, also while a flap has its link up."""


@dataclass(frozen=True, slots=True)
class FaultChange:
    """A fault began, ended by itself, or was healed."""

    at_ns: Instant
    phase: Phase
    injected: Injected


@dataclass(frozen=True, slots=True)
class StepChange:
    """A workload got on: `finished` steps were done by every rank when it was looked."""

    at_ns: Instant
    program: str
    finished: int


def in_force(injected: Injected, at_ns: Instant) -> bool:
    """Whether a fault has begun and is not over."""
    return injected.fault.start_ns <= at_ns < injected.over_ns


def rates_gbps(goodput: Goodput, start_ns: Instant, end_ns: Instant) -> tuple[float, ...]:
    """Goodput per plane over the whole bins between two instants; over the newest whole one where none fits."""
    newest_ns = (end_ns // goodput.bin_ns - 1) * goodput.bin_ns
    bins = goodput.whole_bins(min(start_ns, newest_ns), end_ns)
    scale = 8 * NS_PER_S / GBPS / (len(bins) * goodput.bin_ns)
    return tuple(size * scale for size in goodput.by_planes(bins))


def glance(recording: Recording) -> Glance:
    """The newest look of a recording that has one."""
    looks = recording.looks
    now = looks[-1]
    nics = list(now.nics.values())
    since_ns = looks[-2].at_ns if len(looks) > 1 else recording.begin_ns
    return Glance(
        at_ns=now.at_ns,
        planes_gbps=rates_gbps(recording.goodput, since_ns, now.at_ns),
        evs={state: sum(row.get(state, 0) for nic in nics for row in nic.evs) for state in EV_STATES},
        ports_down=sum(nic.ports_up.count(False) for nic in nics),
        retransmits=sum(_retransmits(nic) for nic in nics),
        packets_lost=sum(nic.counts.get("packets_lost", 0) for nic in nics),
        qp_errors=sum(nic.counts.get("qp_errors", 0) for nic in nics),
        steps=dict(now.steps),
        verified=now.verified,
        wrong=now.wrong,
        wall_s=recording.clocks[-1][0] if recording.clocks else None,
        dilation=recent_dilation(recording.clocks) if recording.clocks else None,
        faults=tuple(one.fault.id for one in recording.faults if in_force(one, now.at_ns)),
    )


def _retransmits(nic: NicLook) -> int:
    return sum(count for name, count in nic.counts.items() if name.startswith("retransmits."))


@dataclass(slots=True)
class Follower:
    """Tells what has changed since the look before. One per listener; asked once per look."""

    _seen: int = 0
    """Faults of the recording that were met."""
    _going: list[tuple[Injected, bool]] = field(default_factory=list)
    """Those that are not over, and whether their begin was told."""
    _steps: dict[str, int] = field(default_factory=dict)

    def changes(self, recording: Recording) -> list[FaultChange | StepChange]:
        """In order of time, up to and including the newest look."""
        at_ns = recording.looks[-1].at_ns
        found: list[FaultChange | StepChange] = [*self._fault_changes(recording, at_ns)]
        found.sort(key=lambda change: change.at_ns)
        for program, finished in recording.looks[-1].steps.items():
            if finished > self._steps.get(program, 0):
                self._steps[program] = finished
                found.append(StepChange(at_ns, program, finished))
        return found

    def _fault_changes(self, recording: Recording, at_ns: Instant) -> list[FaultChange]:
        found = []
        self._going += [(injected, False) for injected in recording.faults[self._seen :]]
        self._seen = len(recording.faults)
        going = []
        for injected, told in self._going:
            begin_ns, end_ns = injected.fault.start_ns, injected.over_ns
            # What was healed before it began has never been.
            if not told and begin_ns <= at_ns and begin_ns < end_ns:
                found.append(FaultChange(begin_ns, "begins", injected))
                told = True
            if end_ns <= at_ns and end_ns != NEVER:
                found.append(FaultChange(end_ns, "healed" if injected.healed_early else "ends", injected))
            else:
                going.append((injected, told))
        self._going = going
        return found
