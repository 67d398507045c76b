"""The record of one rank: state, steps, messages, latencies, flows.

Owns the figures and their bounds; `rank` adds to them. A run's recording uses the same names.
"""

from typing import Any, Final

from mrcfabric.units import Instant
from nicd.core.stats import Durations

LATENCIES_MAX: Final = 2048
"""Latencies kept per rank. At this number every second one is dropped, and from then on only every second one is
kept."""

STEP_BUCKET_BITS: Final = range(12, 31)
"""Lengths of steps are counted by powers of two of 1 ns, from 4 microseconds to a second of fabric time."""


class Latencies:
    """From posting to completion of messages, thinned out evenly: (receiver's NIC, completed, duration)."""

    __slots__ = ("_count", "_every", "_kept")

    def __init__(self) -> None:
        self._kept: list[tuple[str, Instant, int]] = []
        self._every = 1
        self._count = 0

    def add(self, to: str, now: Instant, latency_ns: int) -> None:
        """Add a completed message."""
        if self._count % self._every == 0:
            self._kept.append((to, now, latency_ns))
            if len(self._kept) >= LATENCIES_MAX:
                del self._kept[1::2]
                self._every *= 2
        self._count += 1

    def kept(self) -> list[tuple[str, Instant, int]]:
        """The kept latencies, in the order of completion."""
        return list(self._kept)


class Flow:
    """Whole messages received from one rank."""

    __slots__ = ("first_ns", "last_ns", "messages", "received_bytes")

    def __init__(self) -> None:
        self.messages = 0
        self.received_bytes = 0
        self.first_ns: Instant = 0
        self.last_ns: Instant = 0

    def add(self, now: Instant, size: int) -> None:
        """Add a complete message."""
        if not self.messages:
            self.first_ns = now
        self.last_ns = now
        self.messages += 1
        self.received_bytes += size

    def record(self) -> dict[str, int]:
        """Plain data."""
        return {
            "bytes": self.received_bytes, "messages": self.messages,
            "first_ns": self.first_ns, "last_ns": self.last_ns,
        }  # fmt: skip


class RankRecord:
    """One rank of one program."""

    __slots__ = (
        "attempt", "begin_ns", "bytes_received", "bytes_sent", "bytes_verified", "bytes_wrong",
        "checkpoints", "end_ns", "first_step", "flows", "latencies",
        "messages_received", "messages_sent", "placed", "reason", "state", "step_times", "steps",
    )  # fmt: skip

    def __init__(self, begin_ns: Instant, attempt: int = 0, first_step: int = 0) -> None:
        self.attempt = attempt
        """How often the program was restarted before."""
        self.first_step = first_step
        """The step that this attempt begins with."""
        self.checkpoints: list[tuple[int, Instant, Instant]] = []
        """For each checkpoint of this attempt that is complete: steps done by then, its begin, its end."""
        self.state = "running"
        """`running`, `done` or `failed`."""
        self.reason = ""
        self.begin_ns = begin_ns
        self.end_ns: Instant | None = None
        self.steps: list[tuple[Instant, Instant, Instant]] = []
        """For each step: its begin, the end of its computation, its end."""
        self.step_times = Durations()
        self.messages_sent = 0
        """Messages sent and acknowledged."""
        self.bytes_sent = 0
        self.messages_received = 0
        self.bytes_received = 0
        self.bytes_verified = 0
        self.bytes_wrong = 0
        self.latencies = Latencies()
        self.flows: dict[str, Flow] = {}
        """Flow by the sender's NIC."""
        self.placed: dict[str, int] = {}
        """By the sender's NIC: bytes written to memory, whether their messages are complete or not; the host fills it
        in."""

    @property
    def steps_done(self) -> int:
        """Steps finished, those before the checkpoint that this attempt began with included."""
        return self.first_step + len(self.steps)

    def record(self) -> dict[str, Any]:
        """Everything, as plain data."""
        plain = ("state", "reason", "begin_ns", "end_ns", "messages_sent", "messages_received", "bytes_sent",
                 "bytes_received", "bytes_verified", "bytes_wrong", "attempt", "first_step")  # fmt: skip
        return {
            **{name: getattr(self, name) for name in plain},
            "steps": [list(step) for step in self.steps],
            "checkpoints": [list(one) for one in self.checkpoints],
            "latencies": [list(one) for one in self.latencies.kept()],
            "flows": {nic: flow.record() for nic, flow in self.flows.items()},
            "placed": dict(self.placed),
        }

    def counters(self) -> dict[str, Any]:
        """Figures whose size does not grow with the run; of steps their number and lengths."""
        return {
            "state": self.state,
            "attempt": self.attempt,
            "checkpoints": len(self.checkpoints),
            "steps": self.steps_done,
            "steps_timed": len(self.steps),
            "step_sum_ns": self.step_times.sum_ns,
            "step_counts": self.step_times.up_to(STEP_BUCKET_BITS),
            "bytes_sent": self.bytes_sent,
            "bytes_verified": self.bytes_verified,
            "bytes_wrong": self.bytes_wrong,
        }

    def progress(self) -> dict[str, Any]:
        """The cheap figures, for frequent requests: state, steps, bytes per flow, bytes compared."""
        return {
            "state": self.state,
            "attempt": self.attempt,
            "steps": self.steps_done,
            "flows": {nic: flow.received_bytes for nic, flow in self.flows.items()},
            "placed": dict(self.placed),
            "bytes_verified": self.bytes_verified,
            "bytes_wrong": self.bytes_wrong,
        }
