"""Joins the statements of many nodes into journeys of packets.

Owns which packets are followed, which acknowledgements answer them, and when a journey is over. `mrcfabric.witness`
says what a node states; `paths` follows one packet. A departure and an arrival at the next node belong together when
cable, instant and print agree. Where a fault held the packet back, or bits were lost with a node, the joiner takes the
next arrival with that print that nothing else explains. It never needs a packet's bytes. Where a node has not stated
everything that it saw, a way ends `untold`; the joiner makes nothing up.

A look takes time for what is new and what is under way, never for what is over. Once a packet's sender has heard the
acknowledgement, the journey is finished as soon as nothing more can come, or `LINGER_NS` later.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, Instant
from mrcfabric.witness_packets import covers
from orchestrator.tracing.journey import Attempt, Journey, Way
from orchestrator.tracing.paths import Paths, Trail, doubled, sent_again
from orchestrator.tracing.statements import Statement, Statements

ANSWERS_MAX: Final = 4
"""How many acknowledgements of one attempt are reported."""
JOURNEYS_MAX: Final = 10_000
"""How many packets one trace follows at most."""
UNDER_WAY_MAX: Final = 4096
"""How many packets are followed at once, and `REPLIES_MAX` acknowledgements of them; what exceeds this is left out."""
REPLIES_MAX: Final = 4 * UNDER_WAY_MAX
LINGER_NS: Final = 1_000_000
"""For how much fabric time after its acknowledgement a packet's later attempts and copies are still followed."""

Key: TypeAlias = tuple[int, int, int, int]
"""Number of the sending NIC, number of the receiving NIC, QPN at the receiver, PSN."""
Qpns: TypeAlias = Mapping[tuple[int, int, int], int]
"""(the sender's NIC, the receiver's NIC, the receiver's QPN) -> the sender's QPN."""
_Order: TypeAlias = tuple[Instant, str, int]


class _Replies:
    """Acknowledgements from one NIC to another, in time order, as far as packets may still need them."""

    def __init__(self) -> None:
        self.gone = 0
        """How many came before the first one in `trails` and were forgotten."""
        self.trails: list[Trail] = []
        self.packets = 0
        """How many packets are followed in the other direction."""


class _Try:
    """One sending of a packet."""

    def __init__(self, trail: Trail) -> None:
        self.trail = trail
        self.answers: list[Trail] = []
        self.read = 0
        """How many acknowledgements have been looked at."""

    def told(self) -> list[Way]:
        """The answers to report: up to the first that arrived."""
        ways = [answer.way for answer in self.answers]
        taken = next((place for place, way in enumerate(ways) if way.outcome == "taken"), len(ways))
        return ways[: taken + 1]

    def read_on(self, psn: int, qpn: int | None, replies: _Replies) -> None:
        """Look at the acknowledgements that came since the last call."""
        way = self.trail.way
        if way.outcome != "taken" or way.end_ns is None or way.what.startswith("dropped"):
            return
        if not self.read:
            self.read = replies.gone + bisect_left(replies.trails, way.end_ns, key=lambda answer: answer.way.sent_ns)
        self.read = max(self.read, replies.gone)
        while self.read < replies.gone + len(replies.trails) and not self.answered:
            answer = replies.trails[self.read - replies.gone]
            self.read += 1
            says = answer.way.says
            mine = qpn in (None, answer.offer["packet"]["qpn"])
            if mine and (covers(says, psn) or says.get("wanted") == psn):
                self.answers.append(answer)
                answer.wanted += 1

    @property
    def answered(self) -> bool:
        """Whether no further answer is needed."""
        full = len(self.answers) == ANSWERS_MAX
        return full or any(answer.way.outcome == "taken" for answer in self.answers)

    def wants_since(self, told_ns: Instant) -> Instant:
        """From when on acknowledgements may still be looked at; every node has stated everything up to `told_ns`."""
        way = self.trail.way
        # A packet that has been out of sight for so long will hardly be seen again.
        given_up = way.outcome in ("untold", "unseen") and way.sent_ns + LINGER_NS < told_ns
        return NEVER if self.trail.final or given_up else way.sent_ns

    def over(self, copies: int) -> bool:
        """Whether nothing more can become known about this sending."""
        way = self.trail.way
        if way.outcome != "taken" or way.what.startswith("dropped"):
            return self.trail.final
        heard = self.answered and self.told()[-1].outcome == "taken"
        return heard and all(answer.final for answer in self.answers) and copies >= doubled(way)


class _Packet:
    """One packet that is followed."""

    def __init__(self, key: Key, order: _Order) -> None:
        self.key = key
        self.order = order
        self.qpn: int | None = None
        self.tries: list[_Try] = []
        self.journey: Journey | None = None
        """Its journey as reported last."""
        self.over = False
        """Whether its sender has heard the acknowledgement: hardly anything more will become known."""


class JourneyJoiner:
    """All statements of a fabric, and the journeys made of them.

    Statements of one node must come in order, but may come in portions of any size.
    """

    def __init__(self, topology: Topology, count: int = JOURNEYS_MAX, under_way_max: int = UNDER_WAY_MAX) -> None:
        """`count`: how many journeys are wanted; packets sent after so many have begun are left out."""
        self.topology = topology
        self.now_ns: dict[str, Instant] = {}
        """How far each node had come when it was asked last."""
        self.left_out = 0
        """How many packets were not followed because too many others were under way."""
        self.replies_left_out = 0
        """How many acknowledgements were not followed for that reason; packets may then seem unanswered."""
        self._count = count
        self._begun = 0
        self._under_way_max = under_way_max
        self._nics = set(topology.nic_names())
        self._statements: dict[str, Statements] = {}
        self._paths = Paths(topology, self._statements, self.now_ns)
        self._packets: dict[Key, _Packet] = {}
        self._replies: dict[tuple[int, int], _Replies] = {}
        self._held = 0
        """How many acknowledgements `_replies` holds."""
        self._trails: list[Trail] = []
        """Ways that have not ended, in the order in which they were taken up."""
        self._finished: list[tuple[_Order, Journey]] = []

    def begin(self, node: str, now_ns: Instant) -> None:
        """Note that a node begins to state what it sees, for the first time or again."""
        self._of(node).begin(now_ns)
        self.now_ns[node] = now_ns

    def down(self, node: str) -> None:
        """Note that a node went down: what it has not stated yet is lost."""
        self._of(node).down(self.now_ns.get(node, 0))

    def add(self, node: str, statements: Iterable[Statement], now_ns: Instant) -> None:
        """Add what a node has stated up to `now_ns`."""
        stated = self._of(node)
        for statement in statements:
            stated.add(statement)
        self.now_ns[node] = now_ns

    def strangers(self, qpns: Qpns) -> set[str]:
        """NICs that have sent since the last look with QPs that are not in `qpns`."""
        found = set()
        for node, stated in self._statements.items():
            abouts = (one["packet"] for one in stated.offers if one["packet"]["kind"] == "data")
            if any((about["source"], about["destination"], about["qpn"]) not in qpns for about in abouts):
                found.add(node)
        return found

    def settled(self, journey: Journey) -> bool:
        """Whether every node has stated everything up to the end of this journey."""
        return (journey.acknowledged_ns or NEVER) < self._told_ns()

    def look(self, since_ns: Instant = 0, qpns: Qpns | None = None) -> list[Journey]:
        """Journeys that may have changed since the last look, of packets first sent after `since_ns`, in that order."""
        before = len(self._finished)
        self._take_in(since_ns, qpns)
        self._advance(qpns, NEVER)
        told_ns = self._told_ns()
        for stated in self._statements.values():
            stated.forget(told_ns)
            stated.see_again(min([told_ns, *(packet.order[0] for packet in self._packets.values())]))
        return _in_order(self._finished[before:] + self._open(), since_ns)

    def journeys(self, since_ns: Instant = 0, qpns: Qpns | None = None) -> list[Journey]:
        """Journeys of all packets first sent after `since_ns`, in that order.

        `qpns`: the QPNs of senders, as far as they are known.
        """
        self.look(since_ns, qpns)
        return _in_order(self._finished + self._open(), since_ns)

    def _of(self, node: str) -> Statements:
        if node not in self._statements:
            self._statements[node] = Statements(node in self._nics)
        return self._statements[node]

    def _open(self) -> list[tuple[_Order, Journey]]:
        return [(packet.order, packet.journey) for packet in self._packets.values() if packet.journey is not None]

    def _take_in(self, since_ns: Instant, qpns: Qpns | None) -> None:
        """Begin to follow what NICs have sent. When there are too many packets, first finish those that are over."""
        fresh = 0
        for order, offer in self._offers():
            full = len(self._packets) >= self._under_way_max or self._held >= REPLIES_MAX
            if full and fresh >= self._under_way_max // 4:
                self._advance(qpns, order[0])
                self._finish([packet for packet in self._packets.values() if packet.over])
                fresh = 0
            fresh += self._begin_trail(order, offer, since_ns)

    def _offers(self) -> Iterator[tuple[_Order, Statement]]:
        """What NICs have sent since the last call, in time order."""
        offers = []
        for node, stated in self._statements.items():
            offers += [((one["at_ns"], node, one["n"]), one) for one in stated.offers]
            stated.offers = []
        yield from sorted(offers, key=lambda offer: offer[0])

    def _begin_trail(self, order: _Order, offer: Statement, since_ns: Instant) -> bool:
        """Begin to follow one packet; returns whether it is followed."""
        about = offer["packet"]
        if about["kind"] != "data":
            return self._begin_reply(order[1], offer)
        key = (about["source"], about["destination"], about["qpn"], about["psn"])
        packet = self._packets.get(key)
        if packet is None:
            if sent_again(offer) or order[0] <= since_ns or self._begun >= self._count:
                return False
            if len(self._packets) >= self._under_way_max:
                self.left_out += 1
                return False
            self._begun += 1
            packet = self._packets[key] = _Packet(key, order)
            self._replies.setdefault(key[:2], _Replies()).packets += 1
        packet.tries.append(_Try(self._trail(order[1], offer)))
        return True

    def _begin_reply(self, node: str, offer: Statement) -> bool:
        about = offer["packet"]
        pair = (about["destination"], about["source"])
        replies = self._replies.get(pair)
        if None in pair or (self._begun >= self._count and (replies is None or not replies.packets)):
            return False
        if self._held >= REPLIES_MAX:
            self.replies_left_out += 1
            return False
        self._held += 1
        trail = self._trail(node, offer)
        trail.wanted = 1
        self._replies.setdefault(pair, _Replies()).trails.append(trail)
        return True

    def _trail(self, node: str, offer: Statement) -> Trail:
        self._statements[node].hold(offer)
        trail = Trail(node, offer)
        self._trails.append(trail)
        return trail

    def _advance(self, qpns: Qpns | None, before_ns: Instant) -> None:
        """Follow every way as far as it goes. Everything sent before `before_ns` and stated has been taken up."""
        for trail in self._trails:
            self._paths.follow(trail)
        told_ns = min(before_ns, self._told_ns())
        over, wanted = [], dict.fromkeys(self._replies, before_ns)
        for packet in self._packets.values():
            copies = self._tell(packet, (qpns or {}).get(packet.key[:3]))
            journey = packet.journey
            assert journey is not None
            heard_ns = journey.acknowledged_ns
            known = qpns is None or packet.qpn is not None
            since_ns = min(one.wants_since(told_ns) for one in packet.tries) if known else packet.order[0]
            wanted[packet.key[:2]] = min(wanted[packet.key[:2]], since_ns)
            packet.over = heard_ns is not None and known and heard_ns < told_ns
            if packet.over and heard_ns is not None:
                rest = all(one.over(count) for one, count in zip(packet.tries, copies, strict=True))
                if rest or heard_ns + LINGER_NS < told_ns:
                    over.append(packet)
        self._finish(over)
        for pair, since_ns in wanted.items():
            self._let_go(pair, since_ns)
        self._trails = [trail for trail in self._trails if not trail.final]

    def _tell(self, packet: _Packet, qpn: int | None) -> list[int]:
        """Write the journey of a packet as known by now; returns the number of copies of each attempt."""
        if qpn != packet.qpn:
            # Until the QPN was known, acknowledgements of other QPs were taken for its own: look at all again.
            for one in packet.tries:
                self._want_no_more(one.answers)
                one.answers, one.read = [], 0
        packet.qpn = qpn
        copies = [self._paths.copies(one.trail) for one in packet.tries]
        for one in packet.tries:
            one.read_on(packet.key[3], qpn, self._replies[packet.key[:2]])
        packet.journey = self._journey(packet, copies)
        return copies

    def _journey(self, packet: _Packet, copies: list[int]) -> Journey:
        source, destination, number, psn = packet.key
        attempts, placed_ns, acknowledged_ns = [], None, None
        for one, count in zip(packet.tries, copies, strict=True):
            way, answers = one.trail.way, one.told()
            explained = self._paths.explained
            attempts.append(Attempt(explained(way), tuple(explained(answer) for answer in answers), count))
            if way.what == "placed":
                placed_ns = way.end_ns
            for answer in answers:
                told = answer.outcome == "taken" and covers(answer.says, psn)
                if told and (acknowledged_ns is None or (answer.end_ns or 0) < acknowledged_ns):
                    acknowledged_ns = answer.end_ns
        name = self.topology.node_name
        return Journey(
            name(source), packet.qpn, name(destination), number, psn, tuple(attempts), placed_ns, acknowledged_ns
        )

    def _finish(self, packets: Iterable[_Packet]) -> None:
        for packet in packets:
            assert packet.journey is not None
            self._finished.append((packet.order, packet.journey))
            for one in packet.tries:
                if doubled(one.trail.way):
                    self._statements[one.trail.way.where].count_no_further(one.trail.print)
                self._paths.leave(one.trail)
                self._want_no_more(one.answers)
            del self._packets[packet.key]
            self._replies[packet.key[:2]].packets -= 1

    def _want_no_more(self, answers: Iterable[Trail]) -> None:
        for answer in answers:
            answer.wanted -= 1
            if not answer.wanted:
                self._paths.leave(answer)

    def _let_go(self, pair: tuple[int, int], before_ns: Instant) -> None:
        """Forget acknowledgements that no packet under way needs and whose departures have all been stated."""
        replies = self._replies[pair]
        source = self.topology.node_name(pair[0])
        if source not in self._statements or self._statements[source].alive:
            before_ns = min(before_ns, self.now_ns.get(source, 0))
        count = bisect_left(replies.trails, before_ns, key=lambda answer: answer.way.sent_ns)
        self._want_no_more(replies.trails[:count])
        del replies.trails[:count]
        replies.gone += count
        self._held -= count
        if not replies.trails and not replies.packets:
            del self._replies[pair]

    def _told_ns(self) -> Instant:
        """The instant up to which every living node has stated everything."""
        lives = [
            now_ns
            for node, now_ns in self.now_ns.items()
            if node not in self._statements or self._statements[node].alive
        ]
        return min(lives, default=0)


def _in_order(found: list[tuple[_Order, Journey]], since_ns: Instant) -> list[Journey]:
    return [journey for order, journey in sorted(found, key=lambda one: one[0]) if order[0] > since_ns]
