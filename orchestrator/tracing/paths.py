"""Follows one packet from node to node, as far as nodes have stated what they saw.

Owns what joins a departure to the arrival at the next node, and how a way ends. A way that has not ended is continued
where it stopped. `joiner` decides which packets are followed, and for how long.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from mrcfabric.topology import PortLink, Topology
from mrcfabric.units import Instant
from orchestrator.tracing.journey import Hop, Outcome, Pause, Way
from orchestrator.tracing.pauses import PauseRecord, causes
from orchestrator.tracing.statements import WENT_DOWN, Statement, Statements

HOPS_MAX: Final = 8
"""More nodes than any way passes."""
_SAYS: Final = ("cack", "caused", "base", "bitmap", "wanted", "reason", "msn", "syndrome")
_WAITS: Final = ("queued", "trimmed")
"""Verdicts of packets that wait for their port."""
_FINAL: Final = ("taken", "dropped", "lost")
_End = tuple[Outcome, str, str, Instant | None]


class Trail:
    """One packet that is followed."""

    __slots__ = ("final", "offer", "steps", "wanted", "way")

    def __init__(self, node: str, offer: Statement) -> None:
        self.offer = offer
        self.steps: list[tuple[str, int | None, Statement]] = [(node, None, offer)]
        """The nodes that it has reached: (node, port of arrival, statement)."""
        self.way: Way = _told(offer, [], ("under way", node, "", None))
        """Its way as known by now."""
        self.final = False
        """Whether nothing more will become known."""
        self.wanted = 0
        """For an acknowledgement: how many attempts report it, plus one while others may come to need it."""

    @property
    def print(self) -> int:
        """The number by which nodes recognise it."""
        number: int = self.offer["packet"]["print"]
        return number


class Paths:
    """Where packets can go in a fabric, and what its nodes have stated. Takes arrivals out of the statements."""

    def __init__(self, topology: Topology, statements: Mapping[str, Statements], now_ns: Mapping[str, Instant]) -> None:
        self._topology = topology
        self._statements = statements
        self._now_ns = now_ns
        self._ports: dict[str, list[PortLink]] = {}

    def follow(self, trail: Trail) -> None:
        """Continue the way of a packet as far as it goes now."""
        if trail.final:
            return
        hops: list[Hop] = []
        end: _End | None = None
        while end is None and len(hops) < HOPS_MAX:
            end = self._step(trail, len(hops), hops)
        trail.way = _told(trail.offer, hops, end or ("under way", trail.steps[-1][0], "", None))
        if trail.way.outcome in _FINAL:
            self.leave(trail)

    def explained(self, way: Way) -> Way:
        """The way with what is known by now of why its hops were paused."""
        if not any(hop.pauses for hop in way.hops):
            return way
        return replace(way, hops=tuple(self._explained(hop) if hop.pauses else hop for hop in way.hops))

    def _explained(self, hop: Hop) -> Hop:
        assert hop.port is not None
        assert hop.traffic_class is not None
        queue = hop.port, hop.traffic_class
        found = [
            replace(pause, causes=causes(self._pauses_of, self._cable, hop.node, queue, pause.since_ns, pause.until_ns))
            for pause in hop.pauses
        ]
        return replace(hop, pauses=tuple(found))

    def _pauses_of(self, node: str) -> PauseRecord | None:
        return self._statements[node].pauses if node in self._statements else None

    def leave(self, trail: Trail) -> None:
        """Stop following it."""
        trail.final = True
        for node, _, statement in trail.steps:
            self._statements[node].release(statement)
        del trail.steps[1:]

    def copies(self, trail: Trail) -> int:
        """How many more times the same packet arrived where its way ended."""
        if not doubled(trail.way):
            return 0
        way = trail.way
        found = [one["packet"] for one in self._statements[way.where].count_further(trail.print)]
        sent = trail.offer["packet"]
        return sum(all(one.get(name) == sent.get(name) for name in ("psn", "ev", "rtx")) for one in found)

    def _step(self, trail: Trail, index: int, hops: list[Hop]) -> _End | None:
        """Go one node further; returns the end when the way ends here."""
        here, ingress, statement = trail.steps[index]
        if statement["step"] == "take":
            return "taken", here, statement["verdict"], statement["at_ns"]
        stated = self._statements[here]
        depart, carry = stated.departs.get(statement["n"]), stated.carries.get(statement["n"], {})
        hops.append(self._hop(here, ingress, statement, depart, carry))
        if statement["step"] == "drop" or statement["verdict"] not in _WAITS:
            return "dropped", here, hops[-1].verdict, statement["at_ns"]
        if depart is None:
            why = _why_silent(stated, statement)
            return ("untold", here, why, None) if why else ("waiting", here, "", None)
        cable = self._cable(here, statement["port"])
        if "lost" in carry:
            return "lost", f"{here}>{cable.peer}", carry["lost"], carry["at_ns"]
        if index + 1 == len(trail.steps):
            peer = self._statements.get(cable.peer)
            arrived = None if peer is None else peer.arrival(trail.print, depart["arrival_ns"], self._others(trail))
            if arrived is None:
                return self._unseen(cable.peer, hops[-1])
            trail.steps.append((cable.peer, cable.peer_port, arrived))
        return None

    def _others(self, trail: Trail) -> Callable[[Instant], bool]:
        """Whether a packet with the print of this one, but sent separately, may have come from the same node then."""
        here = trail.steps[-1][0]
        if "sport" not in trail.offer["packet"]:
            # Two packets of MRC have two prints.
            return lambda _at_ns: False
        # RC sends the same packet again. It is another one that came where a departure says so, or may still say so.
        return lambda at_ns: self._now_ns.get(here, 0) < at_ns or self._statements[here].bound(trail.print, at_ns)

    def _unseen(self, peer: str, hop: Hop) -> _End:
        """The end of a way whose packet left for `peer` and was not seen there."""
        assert hop.arrival_ns is not None
        stated = self._statements.get(peer)
        for since_ns, end_ns, why in [] if stated is None else stated.blind:
            if since_ns < hop.arrival_ns <= end_ns:
                return "untold", peer, why, None
        # A packet that a fault holds back may still arrive.
        over = self._now_ns.get(peer, 0) >= hop.arrival_ns and not {"delayed", "reordered", "retried"} & set(
            hop.touched
        )
        return "unseen" if over else "under way", peer, "", None

    def _hop(
        self, node: str, ingress: int | None, statement: Statement, depart: Statement | None, carry: Statement
    ) -> Hop:
        port, cls = statement.get("port"), statement.get("class")
        ecmp = statement.get("ecmp", {})
        pauses: list[Pause] = []
        if cls is not None and port is not None and statement.get("verdict") in _WAITS:
            until_ns = self._now_ns.get(node, 0) if depart is None else depart["at_ns"]
            by = self._cable(node, port).peer
            spans = self._statements[node].pauses.within((port, cls), statement["at_ns"], until_ns)
            pauses = [Pause(since_ns, end_ns, by, ()) for since_ns, end_ns in spans]
        return Hop(
            node=node,
            ingress=ingress,
            port=statement.get("port"),
            at_ns=statement["at_ns"],
            data_bytes=statement.get("data_bytes", 0),
            control_bytes=statement.get("control_bytes", 0),
            wire_ns=statement.get("wire_ns", 0),
            verdict=statement.get("verdict") or statement["reason"],
            start_ns=None if depart is None else depart["at_ns"],
            arrival_ns=None if depart is None else depart["arrival_ns"],
            marked=depart is not None and depart["marked"],
            touched=tuple(carry.get("touched", ())),
            traffic_class=cls,
            class_bytes=statement.get("class_bytes"),
            ecmp_members=tuple(ecmp.get("members", ())),
            ecmp_hash=ecmp.get("hash"),
            pauses=tuple(pauses),
        )

    def _cable(self, node: str, port: int) -> PortLink:
        if node not in self._ports:
            self._ports[node] = self._topology.ports(node)
        return self._ports[node][port]


def doubled(way: Way) -> bool:
    """Whether the packet may arrive at its end more than once."""
    return way.outcome == "taken" and any("duplicated" in hop.touched for hop in way.hops)


def _why_silent(stated: Statements, offer: Statement) -> str:
    """Why nothing was stated of a packet that stood in a queue; empty when it may still stand there."""
    if offer["n"] <= stated.died_after:
        return WENT_DOWN
    return next((why for _, end_ns, why in stated.blind if end_ns > offer["at_ns"]), "")


def sent_again(offer: Statement) -> bool:
    """Whether a packet that a NIC offers had been sent before. RC's packets do not say so, the NIC does."""
    about = offer["packet"]
    return bool(about["rtx"]) or ("sport" in about and "cause" in offer)


def _told(offer: Statement, hops: list[Hop], end: _End) -> Way:
    about = offer["packet"]
    outcome, where, what, end_ns = end
    return Way(
        kind=about["kind"],
        psn=about["psn"],
        ev=about.get("ev"),
        sport=about.get("sport"),
        dlid=about.get("dlid"),
        plane=offer["port"],
        size=about["size"],
        rtx=sent_again(offer),
        cause=offer.get("cause"),
        says={name: about[name] for name in _SAYS if name in about},
        sent_ns=offer["at_ns"],
        hops=tuple(hops),
        outcome=outcome,
        where=where,
        what=what,
        end_ns=end_ns,
    )
