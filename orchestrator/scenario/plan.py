"""A resolved scenario: every name chosen, every length in fabric time, every random choice drawn.

Owns the record that a run carries out; `orchestrator.scenario.resolve` makes it from a file. The same file, seed and
overrides give the same plan on every backend.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from nicd.programs.program import Program
from orchestrator.faults.fault import Fault
from orchestrator.faults.kinds import ABOUT_HOSTS
from orchestrator.measures.expectation import Expectation
from orchestrator.measures.recording import Recording


@dataclass(frozen=True, slots=True)
class Trigger:
    """Faults that begin when a condition has come true."""

    name: str
    text: str
    """The condition, as the file has it."""
    holds: Callable[[Recording], bool]
    """Called at every look, with the recording so far."""
    faults: tuple[Fault, ...]
    """Windows count from the instant at which the condition was seen to hold."""
    times: int = 1
    """How often it may fire. Before firing again, the faults of the last time must be over and the condition must have
    been false."""


@dataclass(frozen=True, slots=True)
class Order:
    """A command of an operator that a node carries out before the work begins."""

    node: str
    op: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LinkTests:
    """How the Clustermapper tests the links of a run."""

    period_ns: int | None
    """Time of a round of probes; None: as `orchestrator.mapper.link_watch.WatchSettings.of` has it."""
    deny: bool
    """Whether it fills deny lists."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The work, the faults and the expectations of a run."""

    name: str
    description: str
    topology: Topology
    seed: str
    second_ns: int
    """Fabric time of one second of the timetable: 10**9 / nominal dilation."""
    begin_ns: Instant
    """Instant 0 of the timetable; programs begin here or later."""
    length_ns: int
    """The run ends this long after its begin at the latest."""
    settle_ns: int
    """The run continues for this long after the last program is done and the last fault is over."""
    look_ns: int
    """Time between two looks."""
    programs: tuple[Program, ...]
    faults: tuple[Fault, ...]
    """The timetable, chaos included, in order of their starts; instants of fabric time."""
    triggers: tuple[Trigger, ...]
    expectations: tuple[Expectation, ...]
    orders: tuple[Order, ...] = ()
    """Carried out before the workloads are loaded."""
    mapper: LinkTests | None = None
    """From the begin of the run on; None: nobody tests links."""
    leaves: Mapping[str, float] = field(default_factory=dict)
    """Entry of the timetable -> the share of the goodput that can be had while it bites, where the file says so."""
    unplaced_at: str = ""
    """Where the file asks for `unplaced`: `file:line: key`."""
    source: dict[str, Any] = field(default_factory=dict)
    """The file with its overrides, as plain data: for the report, and to run it again."""

    @property
    def all_faults(self) -> tuple[Fault, ...]:
        """The faults of the timetable and of the conditions."""
        return (*self.faults, *(fault for trigger in self.triggers for fault in trigger.faults))

    @property
    def unplaced(self) -> Fault | None:
        """A host fault that was resolved without knowing the hosts; None without one.

        The plan cannot be run with it.
        """
        return next((fault for fault in self.all_faults if fault.kind in ABOUT_HOSTS and not fault.parts), None)
