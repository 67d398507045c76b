"""Every event that a switch core reports.

A switch reports little: drops and marks are counters. Events are the answers to commands, spells of pauses
(`mrcfabric.pause_spells`), what its watchdog does, changes of a group of equal paths, flows that another hash moves,
blocks of a table that a subnet manager writes, and what a routing core does (`events_routing`). `record()` is flat, can
be hashed into a trace, and leaves out what differs between two drivers of the same run (tokens).
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from mrcfabric.pause_spells import PauseEvent
from mrcfabric.units import Instant
from switchd.core.events_routing import RoutingEvent


@dataclass(slots=True)
class CommandDone:
    """The answer to the command with this token; `error` is None when it was carried out."""

    at_ns: Instant
    token: int
    error: str | None
    result: dict[str, int | str | bool | None]

    def record(self) -> dict[str, Any]:
        return {"at_ns": self.at_ns, "kind": "command_done", "error": self.error, **self.result}


@dataclass(slots=True)
class HashChange:
    """The switch hashes with another seed from now on."""

    at_ns: Instant
    common: bool
    """The seed that all switches have in common; False: the configured one again."""
    flows: int
    """Flows towards up-links that were remembered: those seen since the last change."""
    moved: int
    """Those of them that leave by another up-link now."""

    def record(self) -> dict[str, Any]:
        cause = "polarised" if self.common else "as configured"
        return {"at_ns": self.at_ns, "kind": "hash_change", "cause": cause, "flows": self.flows, "moved": self.moved}


@dataclass(slots=True)
class WatchdogFired:
    """A class of a port has been paused for too long, and obeys no more."""

    at_ns: Instant
    port: int
    cls: int
    paused_ns: int
    """For how long, without a break."""

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns, "kind": "watchdog_fired", "port": self.port, "cls": self.cls,
            "paused_ns": self.paused_ns,
        }  # fmt: skip


@dataclass(slots=True)
class WatchdogRestored:
    """No pause has come for long enough: the class obeys again."""

    at_ns: Instant
    port: int
    cls: int

    def record(self) -> dict[str, Any]:
        return {"at_ns": self.at_ns, "kind": "watchdog_restored", "port": self.port, "cls": self.cls}


@dataclass(slots=True)
class EcmpMember:
    """An up-link left the group of equal paths, because it lost its carrier, or came back into it."""

    at_ns: Instant
    port: int
    up: bool
    members: int
    """How many there are now."""

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns, "kind": "ecmp_member", "port": self.port, "up": self.up, "members": self.members,
        }  # fmt: skip


@dataclass(slots=True)
class LftWritten:
    """A subnet manager has changed entries of a block of the table by LID."""

    at_ns: Instant
    block: int
    """LIDs from 64 times this number on."""
    entries: int
    """How many of them lead elsewhere now."""

    def record(self) -> dict[str, Any]:
        return {"at_ns": self.at_ns, "kind": "lft_written", "block": self.block, "entries": self.entries}


@dataclass(slots=True)
class WayLost:
    """The only way to some LIDs has lost its carrier, or has it again, and the neighbours are told (FLFN)."""

    at_ns: Instant
    port: int
    up: bool
    lids: int

    def record(self) -> dict[str, Any]:
        return {"at_ns": self.at_ns, "kind": "way_lost", "port": self.port, "up": self.up, "lids": self.lids}


@dataclass(slots=True)
class WayAvoided:
    """A neighbour has no way to some LIDs, or has one again: the port towards it is left out for them, or not."""

    at_ns: Instant
    port: int
    avoided: bool
    lids: int

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns, "kind": "way_avoided", "port": self.port, "avoided": self.avoided, "lids": self.lids,
        }  # fmt: skip


SwitchEvent: TypeAlias = (
    CommandDone
    | PauseEvent
    | WatchdogFired
    | WatchdogRestored
    | EcmpMember
    | HashChange
    | LftWritten
    | WayLost
    | WayAvoided
    | RoutingEvent
)
