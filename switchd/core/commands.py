"""Everything a switch core can be told, and nothing else.

Commands change the faults of the emulated links and what the queues do; the table of a switch never changes. What a
command sets lasts until the daemon ends: a switch that starts again has what its configuration says. Each carries the
`token` under which the driver waits for the answer (`events.CommandDone`).
"""

from dataclasses import dataclass
from typing import TypeAlias

from mrcfabric.impairment import Impairment


@dataclass(slots=True)
class SetImpairment:
    """From now on departures of `port` meet these faults; `Impairment()` heals."""

    token: int
    port: int
    impairment: Impairment


@dataclass(slots=True)
class ClearImpairments:
    """Every port is healthy from now on."""

    token: int


@dataclass(slots=True)
class SetTrim:
    """From now on packets that find the data queue full are trimmed, or dropped when `on` is false.

    `on` None: as configured. `port` None: every port. `dscp`: the code point that trimmed packets leave with; None
    keeps it.
    """

    token: int
    on: bool | None
    port: int | None = None
    dscp: int | None = None


@dataclass(slots=True)
class SetEcn:
    """What departs from now on is marked by these thresholds (waiting bytes of data), or not at all.

    `on`, `min_bytes` or `max_bytes` None: as configured, port by port. `port` None: every port.
    """

    token: int
    on: bool | None
    port: int | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None


@dataclass(slots=True)
class SetForwarding:
    """`on` False: the switch stands still. What arrives is lost, what waits stays where it is, ports have carrier."""

    token: int
    on: bool


Command: TypeAlias = SetImpairment | ClearImpairments | SetTrim | SetEcn | SetForwarding
