"""Every event that a routing core reports: sessions, what neighbours tell, damped routes, and changes of the table.

`record()` is flat and can be hashed into a trace, like that of `switchd.core.events`.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from mrcfabric.units import Instant


@dataclass(slots=True)
class SessionChange:
    """A session with a neighbour has come up, or has ended."""

    at_ns: Instant
    port: int
    protocol: str
    """`bgp` or `bfd`."""
    up: bool
    why: str
    """Why it ended: `carrier`, `bfd`, `hold_time`, `notification`, `connection`, `error`, `reset`,
    `shutdown`, `silence`, `neighbor` (BFD's word for what the other end says); empty when it came up."""

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns, "kind": "routing_session", "port": self.port, "protocol": self.protocol, "up": self.up,
            "why": self.why,
        }  # fmt: skip


@dataclass(slots=True)
class RoutesHeard:
    """A neighbour tells of routes, or takes them back; they wait for the processor."""

    at_ns: Instant
    port: int
    reach: int
    """Prefixes that it tells of."""
    unreach: int
    """Prefixes that it takes back."""

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns, "kind": "routes_heard", "port": self.port, "reach": self.reach,
            "unreach": self.unreach,
        }  # fmt: skip


@dataclass(slots=True)
class FibWritten:
    """One prefix of the table leads elsewhere from now on."""

    at_ns: Instant
    prefix: str
    before: tuple[int, ...]
    ports: tuple[int, ...]
    """None: packets for it have no route."""
    flows: int
    """Flows towards it that were remembered: those seen since the last change."""
    moved: int
    """Those of them that leave by another port now, or by none."""

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns, "kind": "fib_written", "prefix": self.prefix, "before": _text(self.before),
            "ports": _text(self.ports), "flows": self.flows, "moved": self.moved,
        }  # fmt: skip


@dataclass(slots=True)
class FibRepaired:
    """A port has left all groups of the table at once, or may be in them again."""

    at_ns: Instant
    port: int
    up: bool
    flows: int
    moved: int

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns, "kind": "fib_repaired", "port": self.port, "up": self.up, "flows": self.flows,
            "moved": self.moved,
        }  # fmt: skip


@dataclass(slots=True)
class RouteDamped:
    """A route that flaps is left out, or is used again."""

    at_ns: Instant
    port: int
    prefix: str
    damped: bool
    penalty: int

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns, "kind": "route_damped", "port": self.port, "prefix": self.prefix,
            "damped": self.damped, "penalty": self.penalty,
        }  # fmt: skip


RoutingEvent: TypeAlias = SessionChange | RoutesHeard | FibWritten | FibRepaired | RouteDamped


def _text(ports: tuple[int, ...]) -> str:
    return ",".join(str(port) for port in ports)
