"""Routing cores alone, wired to each other in exact virtual time: links that only delay, and tables that only remember.

    graph = clos(3, 2, prefixes=4)
    graph.run(10 * S)
    graph.cut("t0-0", "t1-1")
    graph.run(11 * S)
    assert graph.ports("t0-2", graph.prefixes["t0-0"][0]) == ("t1-0",)

What must come out is the tests'; this only builds, breaks, runs and asks.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

from mrcfabric.naming import port_mac
from mrcfabric.prefix import Prefix
from mrcfabric.units import NS_PER_S, Instant
from mrcfabric.wire.local import link_local
from switchd.core.events_routing import RoutingEvent
from switchd.core.routing.config import Neighbor, RoutingConfig, RoutingKnobs
from switchd.core.routing.router import Router
from switchd.core.routing.trouble import State

S: Final = NS_PER_S
DELAY_NS: Final = 1_000
FIRST_ASN: Final = 4_200_000_000


class Table:
    """A table that forwards nothing."""

    def __init__(self) -> None:
        self.table: dict[Prefix, tuple[int, ...]] = {}
        self.masked: set[int] = set()

    def write(self, prefix: Prefix, ports: tuple[int, ...]) -> tuple[int, int]:
        """`Fib.write`."""
        if ports:
            self.table[prefix] = ports
        else:
            del self.table[prefix]
        return 0, 0

    def mask(self, port: int, out: bool) -> tuple[int, int]:
        """`Fib.mask`."""
        (self.masked.add if out else self.masked.remove)(port)
        return 0, 0


class Speakers:
    """A graph of routing cores. `links`: pairs of names; ports are given in this order, and the earlier name dials."""

    def __init__(
        self, asns: Mapping[str, int], own: Mapping[str, Sequence[Prefix]], links: Iterable[tuple[str, str]],
        seed: str = "speakers", delay_ns: int = DELAY_NS, **knobs: Any,
    ) -> None:  # fmt: skip
        self.now = 0
        self.prefixes = own
        self.ends: dict[str, list[tuple[str, int]]] = {name: [] for name in asns}
        """By name and port: the neighbour and its port."""
        for a, b in links:
            ends = (a, len(self.ends[a])), (b, len(self.ends[b]))
            self.ends[a].append(ends[1])
            self.ends[b].append(ends[0])
        self.asns = asns
        self.tables: dict[str, Table] = {}
        self.routers: dict[str, Router] = {}
        self.events: list[tuple[str, RoutingEvent]] = []
        self.arrivals: dict[tuple[str, int], list[tuple[Instant, bytes]]] = {}
        """By name and port: what has come."""
        self.dead: set[tuple[str, int]] = set()
        """Directions that let nothing pass: the sender and its port."""
        self._delay_ns = delay_ns
        self._knobs = RoutingKnobs(**knobs)
        self._seed = seed
        self._numbers = count()
        self._flying: list[tuple[Instant, int, str, int, bytes]] = []
        for name in asns:
            self.boot(name)

    def config(self, name: str) -> RoutingConfig:
        """What a core is given."""
        ids = {one: number for number, one in enumerate(self.asns, 1)}
        neighbors = tuple(
            Neighbor(
                port, peer, self.asns[peer], link_local(port_mac(peer, peer_port)), link_local(port_mac(name, port)),
                ids[peer], dials=ids[name] < ids[peer],
            )
            for port, (peer, peer_port) in enumerate(self.ends[name])
        )  # fmt: skip
        own = dict.fromkeys(self.prefixes.get(name, ()), -1)
        return RoutingConfig(name, self.asns[name], ids[name], neighbors, own, knobs=self._knobs, seed=self._seed)

    def boot(self, name: str) -> None:
        """Begin a core's life."""
        self.tables[name] = Table()
        self.routers[name] = Router(self.config(name), self.tables[name], self.now)

    def kill(self, name: str) -> None:
        """End it: its neighbours see nothing but silence."""
        del self.routers[name]
        self.tables[name] = Table()

    def port(self, a: str, b: str) -> int:
        """The port of a that leads to b."""
        return next(port for port, (peer, _) in enumerate(self.ends[a]) if peer == b)

    def cut(self, a: str, b: str, *, carrier: bool = True, up: bool = False, both: bool = True) -> None:
        """Cut a link, or mend it; `carrier`: both ends see it. Not `both`: from a to b alone."""
        for one, other in ((a, b), (b, a))[: 1 + both]:
            port = self.port(one, other)
            (self.dead.discard if up else self.dead.add)((one, port))
            if carrier and one in self.routers:
                self.routers[one].carrier(self.now, port, up)
                self._collect(one)

    def trouble(self, name: str, state: State) -> None:
        """From now on a core is in this state."""
        self.routers[name].set_state(self.now, state)
        self._collect(name)

    def hear(self, name: str, port: int, packet: bytes | bytearray) -> None:
        """A packet comes now, from wherever."""
        self.routers[name].hear(self.now, port, packet)
        self._collect(name)

    def run(self, until: Instant) -> None:
        """Let time run."""
        while True:
            due = [(router.next_ns, name) for name, router in self.routers.items()]
            next_ns, name = min(due, default=(until + 1, ""))
            if self._flying and self._flying[0][0] <= min(next_ns, until):
                self._arrive()
            elif next_ns <= until:
                self.now = next_ns
                self.routers[name].run(next_ns)
                self._collect(name)
            else:
                self.now = until
                return

    def ports(self, name: str, prefix: Prefix) -> tuple[str, ...]:
        """The neighbours to which a prefix leads, those left out aside."""
        table = self.tables[name]
        ports = table.table.get(prefix, ())
        return tuple(self.ends[name][port][0] for port in ports if port not in table.masked)

    def told(self, name: str, kind: type) -> list[Any]:
        """What a core has told of this kind."""
        return [event for one, event in self.events if one == name and isinstance(event, kind)]

    def _arrive(self) -> None:
        at_ns, _, name, port, packet = heappop(self._flying)
        self.now = at_ns
        if name in self.routers:
            self.arrivals.setdefault((name, port), []).append((at_ns, packet))
            self.routers[name].hear(at_ns, port, packet)
            self._collect(name)

    def _collect(self, name: str) -> None:
        router = self.routers[name]
        self.events += ((name, event) for event in router.events)
        router.events.clear()
        packets, router.out = router.out, []
        for at_ns, port, packet in packets:
            assert at_ns == self.now
            if (name, port) not in self.dead:
                peer, peer_port = self.ends[name][port]
                arrival = at_ns + self._delay_ns, next(self._numbers), peer, peer_port, bytes(packet)
                heappush(self._flying, arrival)


def prefixes_of(number: int, prefixes: int) -> list[Prefix]:
    """So many prefixes of 64 bits, unlike those of other numbers."""
    return [Prefix(0xFD << 120 | number << 96 | one << 64, 64) for one in range(prefixes)]


def clos(t0s: int, t1s: int, prefixes: int = 1, **knobs: Any) -> Speakers:
    """One plane: an AS for each T0, one for all T1s."""
    bottom, top = [f"t0-{one}" for one in range(t0s)], [f"t1-{one}" for one in range(t1s)]
    asns = {name: FIRST_ASN + 1 + number for number, name in enumerate(bottom)} | dict.fromkeys(top, FIRST_ASN)
    own = {name: prefixes_of(number, prefixes) for number, name in enumerate(bottom)}
    return Speakers(asns, own, [(a, b) for a in bottom for b in top], **knobs)


def three_tiers(pods: int, t0s: int, t1s: int, t2s: int, prefixes: int = 1, **knobs: Any) -> Speakers:
    """Pods of T0s and T1s, and `t2s` T2s above each T1 of a pod: an AS for each T0, for the T1s of a pod, for all T2s.

    T1 number n of each pod is below the T2s of group n.
    """
    asns: dict[str, int] = {}
    own: dict[str, list[Prefix]] = {}
    links = []
    for pod in range(pods):
        for t0 in range(t0s):
            name = f"{pod}-t0-{t0}"
            asns[name] = FIRST_ASN + 1_000 + pod * 100 + t0
            own[name] = prefixes_of(len(own), prefixes)
            links += [(name, f"{pod}-t1-{t1}") for t1 in range(t1s)]
    for pod in range(pods):
        for t1 in range(t1s):
            asns[f"{pod}-t1-{t1}"] = FIRST_ASN + 1 + pod
            links += [(f"{pod}-t1-{t1}", f"t2-{t1}-{t2}") for t2 in range(t2s)]
    asns |= {f"t2-{t1}-{t2}": FIRST_ASN for t1 in range(t1s) for t2 in range(t2s)}
    return Speakers(asns, own, links, **knobs)
