"""Statements of many nodes, joined into journeys of packets.

Owns the joining alone: what a node says is `mrcfabric.witness`'s. A departure and the next node's arrival belong
together when cable, instant and print agree; where a fault held the packet back, or bits were lost with a node, the
next arrival with that print that nothing else explains is taken. A packet's bytes are never needed. Where a node has
not told all that it saw, a way ends `untold` and nothing is made up.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from mrcfabric.topology import PortLink, Topology
from mrcfabric.units import NEVER, Instant
from mrcfabric.witness import covers
from orchestrator.tracing.journey import Attempt, Hop, Journey, Outcome, Way

HOPS_MAX: Final = 8
"""More nodes than any way has."""
ANSWERS_MAX: Final = 4
"""Acknowledgements of one attempt that are told."""
WENT_DOWN: Final = "it went down"
FORGOT: Final = "it had to forget what it saw"
_SAYS: Final = ("cack", "caused", "base", "bitmap", "wanted", "reason", "msn", "syndrome")

Statement: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[int, int, int, int]
"""Numbers of both NICs, QPN at the receiver, PSN."""


class _Book:
    """What one node has said."""

    def __init__(self) -> None:
        self.offers: list[Statement] = []
        self.arrivals: dict[int, list[Statement]] = {}
        """By print: what came to this node and is not yet part of a way."""
        self.departs: dict[int, Statement] = {}
        self.carries: dict[int, Statement] = {}

    def add(self, statement: Statement, nic: bool) -> None:
        step = statement["step"]
        if step == "depart":
            self.departs[statement["of"]] = statement
        elif step == "carry":
            self.carries[statement["of"]] = statement
        else:
            # NICs forward nothing: what they offer is their own.
            if step == "offer" and nic:
                self.offers.append(statement)
            else:
                self.arrivals.setdefault(statement["packet"]["print"], []).append(statement)

    def arrival(self, number: int, at_ns: Instant) -> Statement | None:
        """The arrival of a packet that was to be here at `at_ns`; it is nobody else's from now on."""
        waiting = self.arrivals.get(number, [])
        exact = next((one for one in waiting if one["at_ns"] == at_ns), None)
        found = exact or next((one for one in waiting if one["at_ns"] > at_ns), None)
        if found is not None:
            waiting.remove(found)
        return found


class Stories:
    """All statements of a fabric, and what they come to. Statements of a node come in order, in any portions."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.now_ns: dict[str, Instant] = {}
        """How far each node had come when it was asked last."""
        self._nics = set(topology.nic_names())
        self._statements: dict[str, list[Statement]] = {}
        self._lives: dict[str, list[int]] = {}
        """Per node: what is added to the numbers of its present life, and the last number in it."""
        self._blind: dict[str, list[tuple[Instant, Instant, str]]] = {}
        """Per node: spans of which it has not told all, and why. A span may be open."""
        self._ports: dict[str, list[PortLink]] = {}
        self._books: dict[str, _Book] = {}

    def begin(self, node: str, now_ns: Instant) -> None:
        """The node begins to tell, for the first time or again."""
        blind = self._blind.get(node)
        if blind:
            blind[-1] = (blind[-1][0], now_ns, blind[-1][2])
        self.now_ns[node] = now_ns

    def down(self, node: str) -> None:
        """The node went down: what it has not told yet, it will not tell."""
        blind = self._blind.setdefault(node, [])
        if not blind or blind[-1][1] < NEVER:
            blind.append((self.now_ns.get(node, 0), NEVER, WENT_DOWN))

    def add(self, node: str, statements: Iterable[Statement], now_ns: Instant) -> None:
        """Take in what a node has said up to `now_ns`."""
        book = self._statements.setdefault(node, [])
        lives = self._lives.setdefault(node, [0, 0])
        for statement in statements:
            last = book[-1]["n"] if book else 0
            if statement["n"] <= lives[1]:
                # A node that has begun anew counts from 1 again.
                lives[0] = last
            elif statement["n"] > lives[1] + 1:
                # What was forgotten may have been said at the same instants as what was told before and after.
                since_ns = book[-1]["at_ns"] - 1 if book else -1
                self._blind.setdefault(node, []).append((since_ns, statement["at_ns"], FORGOT))
            lives[1] = statement["n"]
            moved = {**statement, "n": statement["n"] + lives[0]}
            if "of" in moved:
                moved["of"] += lives[0]
            book.append(moved)
        self.now_ns[node] = now_ns

    def journeys(self, since_ns: Instant = 0, qpns: dict[tuple[int, int, int], int] | None = None) -> list[Journey]:
        """Every packet that was sent for the first time after `since_ns`, in that order.

        `qpns`: the sender's QPN of (its NIC, the receiver's NIC, the receiver's QPN), where known.
        """
        self._books = {node: self._book(node) for node in self._statements}
        sent: dict[Key, list[Way]] = {}
        answers: dict[tuple[int, int], list[tuple[int, Way]]] = {}
        for node, statement in self._offers():
            about, way = statement["packet"], self._way(node, statement)
            if about["kind"] == "data":
                key = (about["source"], about["destination"], about["qpn"], about["psn"])
                sent.setdefault(key, []).append(way)
            else:
                answers.setdefault((about["destination"], about["source"]), []).append((about["qpn"], way))
        found = []
        for key, ways in sent.items():
            if ways[0].sent_ns > since_ns and not ways[0].rtx:
                qpn = (qpns or {}).get(key[:3])
                mine = [way for number, way in answers.get(key[:2], ()) if qpn in (None, number)]
                found.append(self._journey(key, qpn, ways, mine))
        return found

    def _book(self, node: str) -> _Book:
        book = _Book()
        for statement in self._statements[node]:
            book.add(statement, node in self._nics)
        return book

    def _offers(self) -> Iterator[tuple[str, Statement]]:
        """What NICs sent, in the order of time."""
        offers = [(node, one) for node, book in self._books.items() for one in book.offers]
        yield from sorted(offers, key=lambda offer: (offer[1]["at_ns"], offer[0], offer[1]["n"]))

    def _journey(self, key: Key, qpn: int | None, ways: list[Way], replies: list[Way]) -> Journey:
        psn = key[3]
        attempts, placed_ns, acknowledged_ns = [], None, None
        for way in ways:
            answers = tuple(_answers(way, psn, replies))
            attempts.append(Attempt(way, answers, self._copies(way)))
            if way.what == "placed":
                placed_ns = way.end_ns
            for answer in answers:
                told = answer.outcome == "taken" and covers(answer.says, psn)
                if told and (acknowledged_ns is None or (answer.end_ns or 0) < acknowledged_ns):
                    acknowledged_ns = answer.end_ns
        name = self.topology.node_name
        return Journey(name(key[0]), qpn, name(key[1]), key[2], psn, tuple(attempts), placed_ns, acknowledged_ns)

    def _copies(self, way: Way) -> int:
        """Further arrivals of the same packet where its way ended."""
        if way.outcome != "taken" or not any("duplicated" in hop.touched for hop in way.hops):
            return 0
        prints = self._books[way.where].arrivals
        return sum(
            one["packet"]["psn"] == way.psn and one["packet"]["ev"] == way.ev and one["packet"]["rtx"] == way.rtx
            for arrivals in prints.values()
            for one in arrivals
        )

    def _way(self, node: str, offer: Statement) -> Way:
        """Follow one packet from where it was made."""
        hops: list[Hop] = []
        here, ingress, statement = node, None, offer
        end: tuple[Outcome, str, str, Instant | None] = ("under way", here, "", None)
        while len(hops) < HOPS_MAX:
            if statement["step"] == "take":
                end = ("taken", here, statement["verdict"], statement["at_ns"])
                break
            book = self._books[here]
            depart, carry = book.departs.get(statement["n"]), book.carries.get(statement["n"], {})
            hops.append(_hop(here, ingress, statement, depart, carry))
            if statement["step"] == "drop" or statement["verdict"] not in ("queued", "trimmed"):
                end = ("dropped", here, hops[-1].verdict, statement["at_ns"])
                break
            if depart is None:
                why = self._why_silent(here, statement)
                end = ("untold", here, why, None) if why else ("waiting", here, "", None)
                break
            cable = self._cable(here, statement["port"])
            if "lost" in carry:
                end = ("lost", f"{here}>{cable.peer}", carry["lost"], carry["at_ns"])
                break
            peer = self._books.get(cable.peer)
            arrived = None if peer is None else peer.arrival(offer["packet"]["print"], depart["arrival_ns"])
            if arrived is None:
                end = self._unseen(cable.peer, hops[-1])
                break
            here, ingress, statement = cable.peer, cable.peer_port, arrived
        return _told(offer, hops, *end)

    def _why_silent(self, node: str, offer: Statement) -> str:
        """Why nothing was said of a packet that stood in a queue; empty when it may still stand there."""
        if offer["n"] <= self._lives[node][0]:
            return WENT_DOWN
        return next((why for _, end_ns, why in self._blind.get(node, ()) if end_ns > offer["at_ns"]), "")

    def _unseen(self, peer: str, hop: Hop) -> tuple[Outcome, str, str, Instant | None]:
        """The end of a way whose packet left and was not seen any more."""
        assert hop.arrival_ns is not None
        for since_ns, end_ns, why in self._blind.get(peer, ()):
            if since_ns < hop.arrival_ns <= end_ns:
                return "untold", peer, why, None
        # One that a fault holds back may still come.
        over = self.now_ns.get(peer, 0) >= hop.arrival_ns and not {"delayed", "reordered"} & set(hop.touched)
        return "unseen" if over else "under way", peer, "", None

    def _cable(self, node: str, port: int) -> PortLink:
        if node not in self._ports:
            self._ports[node] = self.topology.ports(node)
        return self._ports[node][port]


def _answers(way: Way, psn: int, replies: list[Way]) -> Iterator[Way]:
    """What the receiver said of a packet that it took, until some of it arrived."""
    if way.outcome != "taken" or way.end_ns is None or way.what.startswith("dropped"):
        return
    told = 0
    for answer in replies:
        if answer.sent_ns < way.end_ns or not (covers(answer.says, psn) or answer.says.get("wanted") == psn):
            continue
        yield answer
        told += 1
        if answer.outcome == "taken" or told == ANSWERS_MAX:
            return


def _hop(node: str, ingress: int | None, statement: Statement, depart: Statement | None, carry: Statement) -> Hop:
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
    )


def _told(offer: Statement, hops: list[Hop], outcome: Outcome, where: str, what: str, end_ns: Instant | None) -> Way:
    about = offer["packet"]
    return Way(
        kind=about["kind"],
        psn=about["psn"],
        ev=about["ev"],
        plane=offer["port"],
        size=about["size"],
        rtx=about["rtx"],
        cause=offer.get("cause"),
        says={name: about[name] for name in _SAYS if name in about},
        sent_ns=offer["at_ns"],
        hops=tuple(hops),
        outcome=outcome,
        where=where,
        what=what,
        end_ns=end_ns,
    )
