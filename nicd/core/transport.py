"""What a NIC asks of its transport: to take packets, to carry out commands about QPs, and to say how things stand.

Owns the interface, with the answer of a transport that lacks a part: a transport without EVs has an empty table of EVs.
`nicd.core.transports` knows them by name. A transport makes its packets, its QPs and whatever state they need; memory,
ports, scheduler, timers, counters and the on-chip model are the board's, the same for all.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from mypy_extensions import mypyc_attr

from mrcfabric.errors import RefusedError
from mrcfabric.units import Buffer, Instant
from nicd.core.board import Board
from nicd.core.ev_state import EV_STATES
from nicd.core.events import Result
from nicd.core.onchip import Receive
from nicd.core.qp_state import QP_STATES
from nicd.core.settings import NicConfig, NicSettings

CarryOut: TypeAlias = Callable[[Instant, Any], Result]
"""Carries out one command; raises RefusedError, and leaves nothing half done then."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Transport(ABC):
    """The transport of one NIC. Nothing that a peer sends may raise out of it."""

    name: ClassVar[str]
    """As in the setting `nic.transport`."""

    def __init__(self, board: Board, start_ns: Instant = 0) -> None:
        """`start_ns`: the NIC exists from here on; after a restart it knows nothing of its earlier life."""
        self.board = board
        self.commands: dict[type, CarryOut] = {}
        """Command -> the function that carries it out: QPs, work requests, and what else this transport has."""
        self.arrive: Receive = self.receive
        """Where packets come in; a packet that the transport has unwrapped comes in there again."""

    @classmethod
    def board_of(cls, config: NicConfig) -> Board:
        """The board of a NIC with this transport."""
        raise NotImplementedError

    @classmethod
    def slot_bytes(cls, knobs: NicSettings, planes: int) -> int:
        """Bytes of on-chip memory that one QP takes, whatever it holds."""
        raise NotImplementedError

    # -- packets and ports

    @abstractmethod
    def receive(self, now: Instant, port: int, packet: Buffer) -> str:
        """Take a received packet. Returns one of `stats.OUTCOMES` or `stats.DROP_REASONS`."""

    @abstractmethod
    def qpn_of(self, packet: Buffer) -> int | None:
        """The QP whose context a received packet needs; None: none, or the packet is malformed."""

    @abstractmethod
    def carrier_changed(self, now: Instant, port: int) -> None:
        """A port of this NIC has lost or regained its carrier."""

    # -- QPs

    @property
    @abstractmethod
    def qps(self) -> Mapping[int, Any]:
        """The QPs by number; each has `state`, a `QpState`."""

    @abstractmethod
    def bytes_placed(self, qpn: int) -> int:
        """Payload bytes that a QP has written to memory; 0 for a QP that is not there."""

    @abstractmethod
    def qp_table(self) -> list[dict[str, int | str]]:
        """One row per QP."""

    def qp_states(self) -> dict[str, int]:
        """How many QPs are in each state."""
        counts = [0] * len(QP_STATES)
        for qp in self.qps.values():
            counts[qp.state] += 1
        return dict(zip(QP_STATES, counts, strict=True))

    def find(self, qpn: int) -> Any:
        """The QP with this number. RefusedError when there is none."""
        qp = self.qps.get(qpn)
        if qp is None:
            raise RefusedError(f"no QP {qpn}")
        return qp

    # -- counters

    def ev_rows(self) -> list[list[int]]:
        """EVs of all connected QPs that are not in error, by plane and state (`ev_state.EV_STATES`)."""
        return [[0] * len(EV_STATES) for _ in self.board.config.ports]

    def rc_glance(self) -> Sequence[Any]:
        """An `mrcfabric.glance.RcGlance`; nothing from another transport."""
        return ()

    def uet_glance(self) -> Sequence[Any]:
        """An `mrcfabric.glance.UetGlance`; nothing from another transport."""
        return ()

    def counters(self) -> dict[str, Any]:
        """The transport's part of `Nic.counters`: windows, tables and gauges; those that it lacks are zero."""
        return {
            "ev_states": {
                str(plane): dict(zip(EV_STATES, row, strict=True)) for plane, row in enumerate(self.ev_rows())
            },
            "ev_events": {"told": 0, "lost": 0},
            "self_probes": {},
            "windows": dict.fromkeys(("count", "cwnd_bytes", "cwnd_bytes_min", "inflight_bytes"), 0),
            "mpr": dict.fromkeys(("granted_packets", "used_packets", "used_ppm_max"), 0),
            "peer_ports_down": [0] * self.board.ports.count,
            "state_bytes": {"now": 0, "peak": 0},
        }

    # -- queries of operators; empty where a transport has no such thing

    def ev_table(self, qpn: int) -> list[dict[str, int | str | bool]]:
        """As `Nic.ev_table`."""
        return []

    def ev_profiles(self) -> list[dict[str, int | str | bool | None]]:
        """As `Nic.ev_profiles`."""
        return []

    def ev_profile(self, number: int) -> list[dict[str, int | str]]:
        """As `Nic.ev_profile`."""
        raise RefusedError(f"no EV profile {number}: transport {self.name} has no EVs")

    def take_ev_events(self, limit: int) -> list[dict[str, int | str]]:
        """As `Nic.take_ev_events`."""
        return []

    def ev_probes(self, batch: int) -> dict[str, Any]:
        """As `Nic.ev_probes`."""
        raise RefusedError(f"no batch {batch}: transport {self.name} probes no EVs")

    def reverse_paths(self) -> list[dict[str, int | bool]]:
        """As `Nic.reverse_paths`."""
        return []

    def denied_paths(self) -> list[dict[str, int | None]]:
        """As `Nic.denied_paths`."""
        return []

    def link_table(self) -> dict[str, Any]:
        """As `Nic.link_table`."""
        return {}

    @abstractmethod
    def state_report(self) -> dict[str, Any]:
        """As `Nic.state_report`."""

    def overfull(self) -> list[tuple[int, str]]:
        """As `Nic.overfull`."""
        return []
