"""What tables must be once all has been told and written: the shortest ways up and down over what lives.

Owns the graph without its dead parts, and the comparison of cores with it and with one another. It knows nothing of how
a routing core works: a T1 reaches a rack by the link to its T0, and a T0 by every T1 to which both T0s have a link.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.prefix import Prefix
from mrcfabric.topology import Topology
from swarm.invariant import InvariantError
from switchd.compose_routing import rack_prefixes
from switchd.core.routing.router import Router
from switchd.core.routing.session import ESTABLISHED


class Graph(NamedTuple):
    """A fabric of one plane without its dead parts."""

    topology: Topology
    links: frozenset[str]
    """Names of dead links."""
    switches: frozenset[str]
    """Names of dead switches."""

    def has(self, t0: int, t1: int) -> bool:
        """Whether packets pass between two switches."""
        ends = t0_name(0, t0), t1_name(0, t1)
        return not self.switches & {*ends} and "~".join(ends) not in self.links

    def prefixes(self) -> dict[Prefix, int]:
        """What living T0s tell of -> the number of the T0."""
        topology, each = self.topology, self.topology.switch.get("bgp_prefixes") == "nic"
        found: dict[Prefix, int] = {}
        for t0 in range(topology.t0_per_plane):
            for place, prefix in enumerate(rack_prefixes(topology, t0, each)):
                cable = f"{nic_name(t0 * topology.nics_per_t0 + place)}~{t0_name(0, t0)}"
                if t0_name(0, t0) not in self.switches and not (each and cable in self.links):
                    found[prefix] = t0
        return found

    def table(self, name: str) -> dict[Prefix, tuple[int, ...]]:
        """The table of a switch."""
        topology = self.topology
        tier, _, number = topology.parse_node(name)
        most = int(topology.switch.get("bgp_maximum_paths", 64))
        first = topology.nics_per_t0
        found: dict[Prefix, tuple[int, ...]] = {}
        for prefix, t0 in self.prefixes().items():
            ports: tuple[int, ...]
            if tier == "t1":
                ports = (t0,) if self.has(t0, number) else ()
            elif t0 == number:
                continue
            else:
                ways = [t1 for t1 in range(topology.t1_per_plane) if self.has(number, t1) and self.has(t0, t1)]
                # Of equal paths those of the neighbours with the lowest identifiers.
                ports = tuple(first + t1 for t1 in ways[:most])
            if ports:
                found[prefix] = ports
        return found


def compare(graph: Graph, routers: Mapping[str, Router], at_ns: int) -> None:
    """All is told, all is written, and every table is that of the graph. Raises InvariantError."""
    for name, router in routers.items():
        if name in graph.switches:
            continue
        _at_rest(name, router, at_ns)
        _sessions(graph, name, router, at_ns)
        masked: Collection[int] = router.writer._masked
        table = {
            prefix: left
            for prefix, ports in router.writer.fib.table.items()
            if (left := tuple(port for port in ports if port not in masked))
        }
        expected = graph.table(name)
        if table != expected:
            wrong = [str(one) for one in sorted({*table, *expected}) if table.get(one) != expected.get(one)]
            what = {
                one: (table.get(one, ()), expected.get(one, ())) for one in (*table, *expected) if str(one) in wrong
            }
            shown = "; ".join(f"{one} leads to {here}, not {there}" for one, (here, there) in sorted(what.items()))
            raise InvariantError("table", name, at_ns, shown)
    for name, router in routers.items():
        if name not in graph.switches:
            _told(graph.topology, name, router, routers, at_ns)


def _at_rest(name: str, router: Router, at_ns: int) -> None:
    left: dict[str, Any] = {
        "prefixes to be written": len(router.writer.waiting),
        "work": router.processor.waiting,
        "damped routes": 0 if router.dampening is None else len(router.dampening.damped),
        "stale routes": len(router._stale),
        "deferred timers": len(router._deferred),
        "swallowed writes": len(router.writer._swallowed),
        "stuck routes": len(router._zombies._said),
    }
    if what := {key: count for key, count in left.items() if count}:
        raise InvariantError("rest", name, at_ns, f"left: {what}")


def _sessions(graph: Graph, name: str, router: Router, at_ns: int) -> None:
    for port, session in router.sessions.items():
        ends = sorted((name, session.neighbor.name))
        live = session.neighbor.name not in graph.switches and "~".join(ends) not in graph.links
        if (session.state == ESTABLISHED) != live:
            what = (
                f"port {port} to {session.neighbor.name}: {session.state}, and the link is {'up' if live else 'dead'}"
            )
            raise InvariantError("session", name, at_ns, what)
        if (heard := router.watch.is_up(port)) is not None and heard != live:
            what = f"port {port}: BFD is {'up' if heard else 'down'}, and the link is {'up' if live else 'dead'}"
            raise InvariantError("session", name, at_ns, what)
        if (port in router.writer._masked) and live:
            raise InvariantError(
                "repair", name, at_ns, f"port {port} is left out of groups, and its neighbour is there"
            )


def _told(topology: Topology, name: str, router: Router, routers: Mapping[str, Router], at_ns: int) -> None:
    """What a neighbour has been told is what it has heard, but for loops."""
    for end in topology.ports(name):
        if end.towards == "nic" or end.peer not in routers or router.sessions[end.port].state != ESTABLISHED:
            continue
        peer = routers[end.peer]
        told = {
            prefix: offer.as_path
            for prefix, offer in router.outbound[end.port].told.items()
            if peer.config.asn not in offer.as_path
        }
        heard = {
            prefix: routes[end.peer_port].as_path
            for prefix, routes in peer.rib.heard.items()
            if end.peer_port in routes
        }
        if told != heard:
            what = f"{end.peer} has heard of {len(heard)} prefixes, and was told of {len(told)}, or by other paths"
            raise InvariantError("told", name, at_ns, what)
