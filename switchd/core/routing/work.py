"""What the processor of a switch has to do, and how long it takes for it.

Owns the queue. What waits when the processor becomes free is done as one batch, which takes a fixed time and a time for
each prefix in it; what comes meanwhile waits for the next batch.
"""

from enum import IntEnum
from typing import NamedTuple

from mrcfabric.prefix import Prefix
from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.bgp_update import Update


class Task(IntEnum):
    """Kinds of work."""

    UPDATE = 0
    """A neighbour tells of routes."""
    LOST = 1
    """A session has ended: forget what its neighbour has told."""
    OPENED = 2
    """A session is up: tell its neighbour everything."""
    REUSE = 3
    """A damped route may be used again."""
    OWN = 4
    """A prefix of the switch itself is there, or is no longer."""
    TELL = 5
    """Offer everything to all neighbours anew."""
    STALE = 6
    """Forget what a neighbour has not told anew after a warm start."""


class Work(NamedTuple):
    """One thing to do."""

    task: Task
    port: int
    prefixes: int
    """How many it is about."""
    update: Update | None = None
    prefix: Prefix | None = None
    there: bool = True


class Processor:
    """The queue of one switch, and the batch that is being worked on."""

    def __init__(self, batch_ns: int, prefix_ns: int) -> None:
        self.due_ns: Instant = NEVER
        """When the batch is done."""
        self.slower = 1
        """How many times longer everything takes."""
        self.batches = 0
        self._batch_ns = batch_ns
        self._prefix_ns = prefix_ns
        self._waiting: list[Work] = []
        self._batch: list[Work] = []

    @property
    def waiting(self) -> int:
        """How many things wait, those of the batch not counted."""
        return len(self._waiting)

    def put(self, at_ns: Instant, work: Work) -> None:
        """Something is to be done."""
        self._waiting.append(work)
        if self.due_ns == NEVER:
            self._begin(at_ns)

    def take(self, at_ns: Instant) -> list[Work]:
        """What is done at this instant; the next batch is begun."""
        done, self._batch = self._batch, []
        self.due_ns = NEVER
        self.batches += 1
        if self._waiting:
            self._begin(at_ns)
        return done

    def _begin(self, at_ns: Instant) -> None:
        self._batch, self._waiting = self._waiting, []
        prefixes = sum(work.prefixes for work in self._batch)
        self.due_ns = at_ns + (self._batch_ns + prefixes * self._prefix_ns) * self.slower
