"""The recording of one run: plain data, the same for both backends.

Owns the records. `orchestrator.runs.recorder` fills them; `measures` and everything above it read them. Instants are
fabric time in nanoseconds; counters are cumulative since the begin of the run, over all lives of a node.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from orchestrator.faults.fault import Fault
from orchestrator.measures.goodput import Goodput

if TYPE_CHECKING:
    from orchestrator.measures.job import Job

WINDOWS = ("cwnd", "cwnd_min", "inflight")
"""The sum of all congestion windows, the smallest of them, and how much of them is used."""

RATES = ("mean", "min")
"""The mean of what RC QPs may send, and the lowest."""


@dataclass(slots=True)
class NicLook:
    """One NIC at one instant."""

    counts: dict[str, int]
    """Flat: `data_packets`, `payload_bytes`, `bytes_placed`, `duplicates`, `packets_lost`, `taken_back`, `qp_errors`,
    `timeouts`, `ev_skips`, `retransmits.<cause>`, `trims.<where>`, `drops.<reason>`, `ev_in.<state>` (entries),
    `rc.<counter>` with the RC transport, ..."""
    evs: list[dict[str, int]]
    """Per plane: EVs of all QPs by state."""
    port_packets: list[int]
    """Per plane: packets that left the port."""
    ports_up: list[bool]
    alive: bool = True
    windows: dict[str, int] = field(default_factory=dict)
    """By the names of `WINDOWS`, in bytes, over all destinations."""
    rates: dict[str, int] = field(default_factory=dict)
    """By the names of `RATES`, in bit/s, over all connected RC QPs; empty without any."""


@dataclass(slots=True)
class Look:
    """The fabric at one instant."""

    at_ns: Instant
    nics: dict[str, NicLook]
    switches: dict[str, int]
    """Sums over all switches, flat: `marks`, `trimmed`, `drops.<reason>`, `packets`."""
    flows: dict[str, int]
    """`program:h001>h000` -> bytes of whole messages received."""
    steps: dict[str, int]
    """Program -> steps that every rank has finished."""
    placed: dict[str, int] = field(default_factory=dict)
    """As `flows`: bytes written to memory, whether their messages are whole or not."""
    verified: int = 0
    """Bytes that programs have compared with what they had to be."""
    wrong: int = 0
    """Those of them that were something else."""
    queues: dict[str, int] = field(default_factory=dict)
    """Node -> bytes waiting in its fullest port."""
    queue_peaks: dict[str, int] = field(default_factory=dict)
    """Node -> the most data bytes that ever waited in one of its ports, in this life of the node."""


@dataclass(slots=True)
class Step:
    """One step of one rank."""

    begin_ns: Instant
    computed_ns: Instant
    """When the computation was over; `begin_ns` for programs that compute nothing."""
    end_ns: Instant


@dataclass(slots=True)
class RankResult:
    """The result of one rank of a program."""

    nic: str
    rank: int
    state: str
    """`running`, `done`, `failed` or `lost` (its NIC died)."""
    reason: str = ""
    begin_ns: Instant = 0
    end_ns: Instant | None = None
    attempt: int = 0
    """How often the program was restarted before."""
    first_step: int = 0
    """The step that the present attempt began with."""
    steps: list[Step] = field(default_factory=list)
    """Of earlier attempts those that count, then those of the present one."""
    checkpoints: list[tuple[int, Instant, Instant]] = field(default_factory=list)
    """For each complete checkpoint: steps done by then, its begin, its end."""
    messages_sent: int = 0
    messages_received: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    bytes_verified: int = 0
    """Bytes compared with the expected ones."""
    bytes_wrong: int = 0
    latencies: list[tuple[str, Instant, int]] = field(default_factory=list)
    """Latencies of sent messages, in the order of completion: (receiver's NIC, completed, from posting to completion in
    ns). Thinned out evenly when there are too many."""
    flows: dict[str, dict[str, int]] = field(default_factory=dict)
    """Sender's NIC -> `bytes`, `messages`, `first_ns`, `last_ns` as received here."""
    placed: dict[str, int] = field(default_factory=dict)
    """Sender's NIC -> bytes written to memory here, whether their messages are whole or not."""

    @property
    def latencies_ns(self) -> list[int]:
        """The durations alone, sorted."""
        return sorted(latency_ns for _, _, latency_ns in self.latencies)


@dataclass(slots=True)
class ProgramResult:
    """The result of one workload."""

    name: str
    kind: str
    ranks: list[RankResult]
    job: "Job | None" = None
    """Attempts of a training job; None for other programs."""

    @property
    def done(self) -> bool:
        return all(rank.state == "done" for rank in self.ranks)


@dataclass(slots=True)
class Injected:
    """A fault as it took place."""

    fault: Fault
    healed_ns: Instant | None = None
    """When it was healed before its time; None: it ended by itself, or with the run."""
    why: str = ""
    """The condition that triggered it; "" for the timetable."""
    met_packets: int | None = None
    """Packets that met it (`orchestrator.runs.fault_traffic`); None: not counted, or the fault concerns no packets."""
    met_ns: tuple[Instant, Instant] | None = None
    """The readings of counters between which packets met it: the last one before the first, the first one after the
    last. None: there was none."""

    @property
    def over_ns(self) -> Instant:
        """When it was over, by itself or healed; NEVER for one that lasts as long as the run."""
        end_ns = self.fault.end_ns
        return end_ns if self.healed_ns is None else min(end_ns, self.healed_ns)

    @property
    def healed_early(self) -> bool:
        """Whether it was healed before it would have ended by itself."""
        return self.over_ns < self.fault.end_ns


@dataclass(frozen=True, slots=True)
class LinksFound:
    """What the mapper of a run held from one of its looks on."""

    at_ns: Instant
    bad: tuple[str, ...]
    """Dead switches, then links."""
    avoided: tuple[str, ...] = ()
    """Those of them that NICs were kept off."""
    kept: Mapping[str, str] = field(default_factory=dict)
    """Bad ones that NICs went on using, and why."""


@dataclass(slots=True)
class Recording:
    """Everything recorded of one run."""

    name: str
    backend: str
    seed: str
    topology: Topology
    second_ns: int
    """Fabric time of one second of the timetable."""
    begin_ns: Instant
    end_ns: Instant
    goodput: Goodput
    looks: list[Look] = field(default_factory=list)
    programs: list[ProgramResult] = field(default_factory=list)
    faults: list[Injected] = field(default_factory=list)
    links: list[LinksFound] | None = None
    """Every change of what the mapper held, in time order; None: the run had no mapper."""
    probe_period_ns: int = 0
    """The time of a round of the probes by which NICs test links; 0: they do not."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """Noteworthy events of all nodes in order of (at_ns, node): `node`, `at_ns`, `kind`, and the event's fields."""
    events_forgotten: int = 0
    reorder: dict[int, int] = field(default_factory=dict)
    """Histogram: 2**key PSNs or more (and fewer than twice that) ahead of the next expected one -> packets."""
    fidelity: dict[str, Any] = field(default_factory=dict)
    host_pairs: list[dict[str, Any]] = field(default_factory=list)
    """Every host and its peers during the run (`hosts.clock.host_pairs`); empty with a single host."""
    ended: str = "complete"
    """`complete`, `length` (time was up), `stalled` (nothing was pending and work was left), `interrupted`, `lost`."""
    lost: str = ""
    """Which daemon died outside the timetable, with its last log lines."""
    trace_digest: str = ""
    clocks: list[tuple[float, Instant]] = field(default_factory=list)
    """(wall seconds since the begin, fabric time) of every look, ascending; none in virtual time."""
    wall: dict[str, float] | None = None
    """Wall seconds: `launch_s`, `run_s`; None in virtual time, whose reports are the same byte for byte."""

    @property
    def rtt_ns(self) -> int:
        return self.topology.base_rtt_ns()
