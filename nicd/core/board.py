"""What all parts of one NIC share: its settings, counters, timers, ports, memory, and the list of events.

Owns nothing but the references and the bounded list of events, so that requestor, responder, peers and QPs need not
know the NIC they sit on.
"""

from dataclasses import replace
from typing import Protocol

from mrcfabric.rng import Rng
from mrcfabric.units import Instant
from mrcfabric.witness import Witness
from nicd.core.class_ports import ports_of
from nicd.core.events import RECV_WITH_IMM, Completion, NicEvent
from nicd.core.lag import Lag
from nicd.core.memory import MemoryTable
from nicd.core.onchip import ContextStore, SpillingScheduler
from nicd.core.scheduler import Scheduler
from nicd.core.settings import NicConfig, NicSettings
from nicd.core.stats import GoodputBins, NicStats
from nicd.core.timers import Timers


class HostLike(Protocol):
    """What the core tells a host whose programs run beside it; see `nicd.programs.host`."""

    def completed(self, completion: Completion) -> None:
        """A CQE of any QP, its own or not. Whatever follows from it happens in a timer, at the same instant."""
        ...

    def qp_failed(self, now: Instant, qpn: int, reason: str) -> None:
        """A QP went to ERROR."""
        ...


class Board:
    """One per NIC."""

    __slots__ = (
        "_completed", "bdp_bytes", "bins", "config", "contexts", "events", "host", "memory", "ports", "scheduler",
        "settings", "stats", "timers", "witness",
    )  # fmt: skip

    def __init__(self, config: NicConfig, packet_bytes: int, resident: int | None = None) -> None:
        """`packet_bytes`: a full data packet of the transport, headers included. `resident`: how many QP contexts the
        chip holds; None: all of them."""
        settings = config.settings
        self.config = config
        self.settings: NicSettings = settings
        self.stats = NicStats()
        self.timers = Timers()
        queue = settings.port_queue_bytes_max or packet_bytes
        self.ports = ports_of(config, queue)
        self.contexts: ContextStore | None = None
        """None: every QP's context is always on the chip."""
        self.scheduler = Scheduler(self.ports)
        if resident is not None:
            self.contexts = ContextStore(self.timers, resident, settings.sram_miss_ns, settings.sram_fetches)
            self.scheduler = SpillingScheduler(self.ports, self.contexts)
        self.memory = MemoryTable(
            Rng(config.seed, config.name, "r_key"),
            settings.regions_max,
            settings.region_bytes_max,
            settings.region_own_bytes_max,
        )
        self.bins = GoodputBins(len(config.ports), settings.bin_ns, settings.bins_max)
        self.bdp_bytes = sum(port.rate_bps for port in config.ports) * settings.base_rtt_ns // 8_000_000_000
        """Bytes that all ports of the NIC together carry during one base RTT."""
        self.witness: Witness | None = None
        """Is told why packets are sent again; None: no witness."""
        self.events: list[NicEvent] = []
        self.host: HostLike | None = None
        """Runs programs beside this NIC; None: nothing does."""
        late_ns = settings.host_complete_ns
        self._completed = Lag(self.timers, late_ns, self._seen) if late_ns else None
        """CQEs that the host does not see yet; None: the host sees each at once."""

    def tell(self, event: NicEvent) -> None:
        """Report an event. When the list is full, only count it."""
        if len(self.events) < self.settings.events_max:
            self.events.append(event)
        else:
            self.stats.events_lost += 1

    def complete(self, completion: Completion) -> None:
        """Report a CQE when the host sees it."""
        if self._completed is None:
            self._tell_host(completion)
        else:
            self._completed.put(completion.at_ns, completion)

    def _seen(self, now: Instant, completion: Completion) -> None:
        self._tell_host(replace(completion, at_ns=now))

    def _tell_host(self, completion: Completion) -> None:
        """The host first."""
        if completion.opcode != RECV_WITH_IMM:
            self.stats.completions += 1
        if self.host is not None:
            self.host.completed(completion)
        self.tell(completion)
