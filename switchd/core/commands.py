"""Every command that a switch core takes.

Commands change the faults of the emulated links, the settings of queues and of the buffer, the seed of the hash, and
the state of a routing core; none of them writes the table. A command's setting lasts until the daemon ends: a restarted
switch has what its configuration says. Each command carries the `token` under which the driver waits for the answer
(`events.CommandDone`).
"""

from dataclasses import dataclass
from typing import TypeAlias

from mrcfabric.impairment import Impairment


@dataclass(slots=True)
class SetImpairment:
    """Put these faults in force for departures of `port` from now on; `Impairment()` heals."""

    token: int
    port: int
    impairment: Impairment


@dataclass(slots=True)
class ClearImpairments:
    """End the faults of every port."""

    token: int


@dataclass(slots=True)
class SetCarrier:
    """The neighbour of `port` is dead (`up` False), or lives again: an InfiniBand link is down without either end.

    Nothing for switches of other kinds, which notice nothing of their neighbours.
    """

    token: int
    port: int
    up: bool


@dataclass(slots=True)
class SetTrim:
    """Trim packets that find the data queue full from now on, or drop them when `on` is false.

    `on` None: as configured. `port` None: every port. `dscp`: the code point of trimmed packets; None keeps it.
    """

    token: int
    on: bool | None
    port: int | None = None
    dscp: int | None = None


@dataclass(slots=True)
class SetEcn:
    """Mark departures from now on by these thresholds (waiting bytes of data), or not at all.

    `on`, `min_bytes` or `max_bytes` None: as configured, port by port. `port` None: every port.
    """

    token: int
    on: bool | None
    port: int | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None


@dataclass(slots=True)
class SetForwarding:
    """`on` False: the switch stands still. Arriving packets are lost, waiting ones stay, and ports have carrier."""

    token: int
    on: bool


@dataclass(slots=True)
class SetHeadroom:
    """Let each lossless class of a port keep so many bytes for what comes after a pause; None: as configured.

    No more than configured: the buffer has no room for it. What is there already stays. `port` None: every port.
    Nothing for a switch that is not lossless.
    """

    token: int
    bytes_max: int | None
    port: int | None = None


@dataclass(slots=True)
class SetHash:
    """Hash flows with the seed that all switches have in common, or (`common` False) as configured.

    Answered with the `flows` that are remembered, and how many of them `moved` to another up-link. Nothing for a switch
    that does not hash.
    """

    token: int
    common: bool


@dataclass(slots=True)
class SetRouting:
    """What is wrong with the routing core of the switch from now on, while the switch forwards as before; with nothing
    set, nothing. Nothing happens in a switch that has none.

    `hung`: it reads, says and decides nothing. `stuck`: what it writes changes nothing in the table. `slower`: how many
    times longer its processor takes. `shutdown`: it asks neighbours to prefer others (graceful shutdown). `withdrawn`:
    it takes back all that it has told. `leaked`: it says of the prefixes that cover these NICs, by name, that they are
    its own, as far as it knows them. `zombies`: routes to the prefixes that cover these NICs are stuck, whatever
    neighbours say of them.
    """

    token: int
    hung: bool = False
    stuck: bool = False
    slower: int = 1
    shutdown: bool = False
    withdrawn: bool = False
    leaked: list[str] | None = None
    zombies: list[str] | None = None


@dataclass(slots=True)
class ResetSession:
    """End the routing session with the neighbour of a port; it begins anew after a while. Nothing in a switch that has
    no routing core."""

    token: int
    port: int


@dataclass(slots=True)
class SetSession:
    """Keep the routing session with the neighbour of a port from being (`down`), or no longer. Nothing in a switch that
    has no routing core."""

    token: int
    port: int
    down: bool


Command: TypeAlias = (
    SetImpairment
    | ClearImpairments
    | SetCarrier
    | SetTrim
    | SetEcn
    | SetForwarding
    | SetHeadroom
    | SetHash
    | SetRouting
    | ResetSession
    | SetSession
)
