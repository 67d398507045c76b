"""What a packet's switches learnt too late: of each that hashed it to a way that was dead, when it stopped doing so.

Pure. Owns which hops of a journey are asked about; `orchestrator.measures.convergence` finds the answer in the event
log of a fabric whose switches route for themselves.
"""

from collections.abc import Iterable
from typing import Final

from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from orchestrator.measures.convergence import Line, detector, left_port
from orchestrator.tracing.journey import Hindsight, Journey, Way

ASTRAY: Final = frozenset({"link_down", "no_route", "hop_limit", "frozen"})
"""Why a packet went no further, where another way might have been better."""


def lost_ways(journey: Journey) -> list[Way]:
    """The ways of a journey that ended where routing led them astray: a dead link, a dead node, no route, a loop."""
    ways = [way for attempt in journey.attempts for way in (attempt.way, *attempt.answers)]
    return [
        way for way in ways if way.outcome == "unseen" or (way.outcome in ("lost", "dropped") and way.what in ASTRAY)
    ]


def hindsight(topology: Topology, journey: Journey, lines: Iterable[Line]) -> tuple[Hindsight, ...]:
    """What became of the switches that sent lost packets on; those from which the loss did not follow are left out.

    A hop counts when its switch later left that port: it then was part of the dead way. The last hop of a way counts
    anyhow. The same switch and port is told of once, with the first packet.
    """
    known = sorted(lines, key=lambda line: line["at_ns"])
    found: dict[tuple[str, int], Hindsight] = {}
    for way in lost_ways(journey):
        switches = [hop for hop in way.hops if hop.ingress is not None and hop.port is not None]
        for hop in switches:
            assert hop.port is not None
            end = topology.ports(hop.node)[hop.port]
            if end.towards == "nic" or (hop.node, hop.port) in found:
                continue
            learnt = left_port(known, hop.node, hop.port, hop.at_ns)
            if learnt is None and hop is not switches[-1]:
                continue
            found[hop.node, hop.port] = _of(hop.node, hop.port, end.peer, hop.at_ns, learnt)
    return tuple(found.values())


def _of(node: str, port: int, towards: str, sent_ns: Instant, learnt: tuple[Line, Line] | None) -> Hindsight:
    if learnt is None:
        return Hindsight(node, port, towards, sent_ns, None, "", "", None)
    knew, left = learnt
    return Hindsight(node, port, towards, sent_ns, knew["at_ns"], detector(knew), knew.get("peer", ""), left["at_ns"])
