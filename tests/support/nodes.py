"""Small nodes for tests of the drivers: a source that sends on a timetable, and a relay with real queues."""

from dataclasses import dataclass
from typing import Any

from mrcfabric.egress import Egress
from mrcfabric.egress_config import EgressConfig
from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Instant


@dataclass(slots=True)
class Heard:
    """A packet reached the node, or a command did."""

    at_ns: Instant
    port: int
    text: str

    def record(self) -> dict[str, Any]:
        return {"at_ns": self.at_ns, "kind": "heard", "port": self.port, "text": self.text}


class Source:
    """Sends `packets` of growing number on every port, one each `period_ns`, and notes all it hears."""

    def __init__(self, name: str, ports: int, packets: int, period_ns: int, size: int, start_ns: int = 0) -> None:
        self.name = name
        self.now_ns = start_ns
        self._egress = [Egress(EgressConfig(), port, Rng(name, port)) for port in range(ports)]
        self._left = packets
        self._period_ns = period_ns
        self._size = size
        self._next_ns = start_ns + period_ns
        self.heard: list[Heard] = []
        self._events: list[Heard] = []

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        out: list[Transmit] = []
        waiting = list(map(Input._make, inputs))
        while True:
            input_ns = waiting[0].at_ns if waiting else NEVER
            timer_ns = self._next_ns if self._left else NEVER
            if min(input_ns, timer_ns) > until:
                break
            if input_ns <= timer_ns:
                self._hear(waiting.pop(0))
            else:
                self._left -= 1
                self._next_ns += self._period_ns
                for egress in self._egress:
                    packet = f"{self.name}/{egress.port}/{self._left}".encode().ljust(self._size, b".")
                    egress.offer(timer_ns, bytearray(packet), False, out)
        for egress in self._egress:
            egress.run(until, out)
        self.now_ns = until
        return out

    def _hear(self, entry: Input) -> None:
        text = bytes(entry.body[:40]).decode().rstrip(".") if entry.rank == Rank.FRAME else str(entry.body)
        event = Heard(entry.at_ns, entry.port, text)
        self.heard.append(event)
        self._events.append(event)

    def next_timeout(self) -> Instant | None:
        departures = [egress.next_departure_ns for egress in self._egress]
        at_ns = min([self._next_ns if self._left else NEVER, *departures])
        return None if at_ns == NEVER else at_ns

    def drain_events(self) -> list[Any]:
        events, self._events = self._events, []
        return events

    def counters(self) -> dict[str, Any]:
        return {"left": self._left, "heard": len(self.heard)}


class Relay:
    """Sends what comes in on port p out of the next port, through a queue."""

    def __init__(self, name: str, ports: int, start_ns: int = 0) -> None:
        self.name = name
        self.now_ns = start_ns
        self._egress = [Egress(EgressConfig(), port, Rng(name, port)) for port in range(ports)]

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        out: list[Transmit] = []
        for at_ns, _rank, port, _sequence, packet in inputs:
            self._egress[(port + 1) % len(self._egress)].offer(at_ns, packet, False, out)
        for egress in self._egress:
            egress.run(until, out)
        self.now_ns = until
        return out

    def next_timeout(self) -> Instant | None:
        at_ns = min(egress.next_departure_ns for egress in self._egress)
        return None if at_ns == NEVER else at_ns

    def drain_events(self) -> list[Any]:
        return []

    def counters(self) -> dict[str, Any]:
        return {}
