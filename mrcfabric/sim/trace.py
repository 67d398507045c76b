"""Reduces what a node did to a digest, so that two drivers can be compared.

Owns how transmits and events of one node in one incarnation are hashed. Both drivers feed the same class. The digest
does not depend on how time was cut into calls: transmits are in time order per port only, so every port has its own
hash, and so have the events. The hash is XXH3 with 128 bits: whoever compares two drivers is not deceived by them, and
a packet is hashed at each hop.
"""

import json
from collections import deque
from collections.abc import Iterable
from struct import Struct
from typing import Any, Final, NamedTuple

from xxhash import xxh3_128

from mrcfabric.node import Event, Transmit
from mrcfabric.units import Instant

_FRAME: Final = Struct(">QI")  # arrival_ns, size in bytes


class Sent(NamedTuple):
    """One remembered transmit; `packet` is a copy, taken before any peer wrote into it."""

    port: int
    arrival_ns: Instant
    packet: bytes


class Trace:
    """Running hashes of one node's transmits and events. `keep` remembers that many of the latest of each."""

    __slots__ = ("_event_count", "_events", "_ports", "events", "sent")

    def __init__(self, keep: int = 0) -> None:
        self._ports: dict[int, tuple[Any, list[int]]] = {}
        self._events = xxh3_128()
        self._event_count = 0
        self.sent: deque[Sent] = deque(maxlen=keep)
        """In the driver's order: by time per port, any order across ports."""
        self.events: deque[Event] = deque(maxlen=keep)

    def add(self, transmits: Iterable[Transmit], events: Iterable[Event]) -> None:
        """Add what one `advance` returned and the `drain_events` after it, before the packets are sent."""
        ports = self._ports
        keep = self.sent.maxlen
        for port, arrival_ns, packet in transmits:
            if port not in ports:
                ports[port] = (xxh3_128(), [0])
            running, count = ports[port]
            running.update(_FRAME.pack(arrival_ns, len(packet)))
            running.update(packet)
            count[0] += 1
            if keep:
                self.sent.append(Sent(port, arrival_ns, bytes(packet)))
        for event in events:
            self._events.update(json.dumps(event.record(), sort_keys=True).encode() + b"\n")
            self._event_count += 1
            self.events.append(event)

    def summary(self) -> dict[str, Any]:
        """Digests and counts, JSON-ready: `digest` of all, `ports` {port: [count, digest]}, `events` [count, digest].

        Where two digests differ, the parts show which port differs, or that the events do.
        """
        ports = {str(port): [count[0], running.hexdigest()] for port, (running, count) in sorted(self._ports.items())}
        events = [self._event_count, self._events.hexdigest()]
        text = json.dumps([ports, events], sort_keys=True)
        return {
            "digest": xxh3_128(text.encode()).hexdigest(),
            "ports": ports,
            "events": events,
        }

    def digest(self) -> str:
        """32 hexadecimal digits: equal if and only if the nodes did the same."""
        digest: str = self.summary()["digest"]
        return digest
