"""What all parts of one NIC share: its settings, counters, timers, ports, memory, and the list of events.

Owns nothing but the references and the bounded list of events, so that requestor, responder, peers and QPs need not
know the NIC they sit on.
"""

from dataclasses import replace
from typing import Final, Protocol

from mrcfabric.rng import Rng
from mrcfabric.units import Instant
from mrcfabric.wire.layout import EXTENSION_OFFSET, ICRC_SIZE, METH_SIZE, RETH_SIZE, TSETH_SIZE
from mrcfabric.witness import Witness
from nicd.core.events import RECV_WITH_IMM, Completion, NicEvent
from nicd.core.lag import Lag
from nicd.core.memory import MemoryTable
from nicd.core.mrc.deny_list import DenyList
from nicd.core.mrc.ev_events import EvEvents
from nicd.core.mrc.ev_profiles import ProfileTable
from nicd.core.mrc.ev_state import EvState
from nicd.core.mrc.footprint import resident_max
from nicd.core.mrc.penalty import penalty_of
from nicd.core.mrc.probe_turns import ProbeTurns
from nicd.core.onchip import ContextStore, SpillingScheduler
from nicd.core.ports import Ports
from nicd.core.scheduler import Scheduler
from nicd.core.settings import NicConfig, NicSettings
from nicd.core.stats import GoodputBins, NicStats
from nicd.core.timers import Timers

PACKET_OVERHEAD: Final = EXTENSION_OFFSET + METH_SIZE + RETH_SIZE + ICRC_SIZE
"""A data packet beside its payload, without a time stamp."""


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
        "_completed", "bdp_bytes", "bins", "config", "contexts", "denied", "ev_events", "ev_tally", "events", "host",
        "memory", "ooo_held", "penalty", "ports", "probe_turns", "profiles", "scheduler", "settings",
        "stats", "timers", "witness",
    )  # fmt: skip

    def __init__(self, config: NicConfig) -> None:
        settings = config.settings
        self.config = config
        self.settings: NicSettings = settings
        self.stats = NicStats()
        self.timers = Timers()
        # One full packet: payload, all headers, ICRC.
        packet = settings.mtu_bytes + PACKET_OVERHEAD + (TSETH_SIZE if settings.timestamps else 0)
        queue = settings.port_queue_bytes_max or packet
        self.ports = Ports(config.ports, queue, config.seed, config.name)
        self.contexts: ContextStore | None = None
        """None: every QP's context is always on the chip."""
        self.scheduler = Scheduler(self.ports)
        resident = resident_max(settings, len(config.ports))
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
        self.denied = DenyList(settings.deny_entries_max)
        self.profiles = ProfileTable(config)
        self.ev_events = EvEvents(settings.ev_events_max)
        self.ev_tally = [[0] * len(EvState) for _ in config.ports]
        """EVs of all connected QPs that are not in error, by plane and state."""
        self.bdp_bytes = sum(port.rate_bps for port in config.ports) * settings.base_rtt_ns // 8_000_000_000
        """Bytes that all ports of the NIC together carry during one base RTT."""
        self.ooo_held = 0
        """Packets that all QPs together hold out of order."""
        self.penalty = penalty_of(settings)
        """Decides when our SACKs penalise senders; None: they never do."""
        self.probe_turns = ProbeTurns(settings.reverse_refresh_ns, settings.reverse_turns * len(config.ports))
        """Decides when which peer's reverse paths are probed."""
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
