"""The replicas of a clock page: what one host tells the others of its page, and what it makes of their news.

A fabric over several hosts has a page on each, all of the same shape, so that the horizon rule holds between hosts as
it does within one. Every word has one source:

- the *header* (run or sleep, limit) and the *orders* (a node is being started, a node is dead) are the leader's, the
  host of the orchestrator; orders of one slot are numbered;
- what a process writes of its node (horizon, pending, counts) is the news of the host it runs on; what it has counted
  goes to the leader alone, less often, and comes back with an order: a host that is started anew remembers nothing.

News of a slot under an older order than the page has are those of a life that is over, and are dropped. So are all
news of a node that the leader has ordered dead: where its host was given up and still runs, its process does not know
it, and must neither bind anybody nor be heard any more. News tell
counts first and the horizon last, as a process publishes: whoever sees a horizon can ask for all frames sent before it.
So a slow network makes the fabric slower, never wrong, and no host needs another's wall clock.

A leader hears of every node; another host of the neighbours of its own nodes, and of the rest by the *floor*, the
instant that the slowest node of the fabric has reached. What is told is state, not changes of state: after a lost
connection everything is told anew. Bytes on their way are `orchestrator.hosts.clock.relay`'s; this module does no
I/O.
"""

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from mrcfabric import tally
from mrcfabric.clock import (
    HEADER_WORDS,
    ORDER_UNDER_WAY,
    S_HORIZON,
    S_INCARNATION,
    S_ORDERS,
    S_PENDING,
    S_PID,
    S_STATE,
    SLOT_WORDS,
    W_FLOOR,
    W_LIMIT,
    W_STATE,
    W_WAKES,
    ClockPage,
    SlotState,
)
from mrcfabric.units import NEVER

WORD_BYTES = 8
_ROW_BYTES = SLOT_WORDS * WORD_BYTES
_KIND_SHIFT = 32
_NODE_MASK = (1 << _KIND_SHIFT) - 1
_NEWS, _ORDER, _HEADER, _ASKED, _TALLY = 1, 2, 3, 4, 5
_NEWS_WORDS, _ORDER_WORDS, _HEADER_RECORD_WORDS, _ASKED_WORDS = 7, 4, 5, 1
"""The counts of a node's ports, sent and then taken, follow the words of news and orders; orders end with its tally."""
_TALLY_RECORD_WORDS = 1 + tally.WORDS
_STATES = frozenset(map(int, SlotState))


class StrangeNewsError(ValueError):
    """Bytes of another host that are no news of this fabric."""


@dataclass(slots=True)
class Rings:
    """Who has to look at the page again after news have been taken."""

    nodes: set[int] = field(default_factory=set)
    everybody: bool = False
    agent: bool = False
    """Something meets a sleeping fabric: the leader's agent is to wake it."""


class Replica:
    """One host's page among its like."""

    def __init__(
        self,
        page: ClockPage,
        peers: Sequence[Sequence[tuple[int, int]]],
        host_of: Sequence[int],
        here: int,
        leader: int,
    ) -> None:
        """`peers` as for `ClockPage.create`; `host_of[node]` is a host's number, `here` ours."""
        self.page = page
        self.here = here
        self.leader = leader
        self._peers = peers
        self._host_of = host_of
        self._own = [node for node in range(page.nodes) if host_of[node] == here]
        first, end = HEADER_WORDS, HEADER_WORDS + page.nodes * SLOT_WORDS
        self._slots = page.words[first:end].cast("B")
        self._order_words = page.words[first + S_ORDERS : end : SLOT_WORDS]
        self._tallied: dict[int, list[int]] = {}
        """What our nodes had counted when the leader was last told."""
        self._seen = bytes(len(self._slots))
        """All slots at the last look: one comparison tells that nothing has changed."""
        self._header = b""
        others = sorted({*host_of, leader} - {here})
        self._about = {host: [node for node in self._own if self._concerns(node, host)] for host in others}
        """Host -> those of our nodes of which it is told."""
        self._ordered = {
            host: [node for node in range(page.nodes) if host_of[node] == host or self._concerns(node, host)]
            for host in others
            if here == leader
        }
        """Host -> nodes of whose births and deaths it is told."""
        self._orders = [0] * page.nodes
        self._local_ports = [
            [(port, peer) for port, (peer, _) in enumerate(ports) if host_of[peer] == here] for ports in peers
        ]
        self._bells = [
            next((page.want_word(node, port) for port, (peer, _) in enumerate(ports) if host_of[peer] != here), None)
            if host_of[node] == here
            else None
            for node, ports in enumerate(peers)
        ]
        """Per node of ours that has a port to another host: where we wish for its next publication."""
        self._count_words = [
            (len(ports), page.sent_word(node, 0), page.taken_word(node, 0)) if ports else (0, 0, 0)
            for node, ports in enumerate(peers)
        ]
        """Per node: its ports, and where its counts of frames sent and of frames taken begin."""

    def _concerns(self, node: int, host: int) -> bool:
        return host == self.leader or any(self._host_of[peer] == host for peer, _ in self._peers[node])

    @property
    def others(self) -> list[int]:
        """The hosts that are told."""
        return list(self._about)

    # What we tell.

    def set_floor(self) -> None:
        """On the leader: tell the others, with the next news, how far the slowest node is."""
        self._floor = self.page.fabric_now()

    _floor = NEVER

    def look(self) -> dict[int, bytes]:
        """What has changed on this page since the last look, per host; empty when nothing has.

        Each of our nodes with a neighbour elsewhere is asked to ring at its next publication.
        """
        news: dict[int, bytes] = {}
        seen, now = self._seen, bytes(self._slots)
        if now != seen:
            self._seen = now
            records = {node: self._record(node) for node in self._own if self._has_moved(node, seen, now)}
            for host, nodes in self._about.items():
                told = b"".join([records[node] for node in nodes if node in records]) if records else b""
                if told:
                    news[host] = told
        if self.here == self.leader:
            self._add_orders(news)
        return news

    def _add_orders(self, news: dict[int, bytes]) -> None:
        header = self._header_record()
        moved = header != self._header
        self._header = header
        now = self._order_words.tolist()
        if not moved and now == self._orders:
            return
        told = {node: self._order(node) for node in range(self.page.nodes) if now[node] != self._orders[node]}
        for host, nodes in self._ordered.items():
            orders = b"".join([told[node].tobytes() for node in nodes if node in told])
            if moved or orders:
                # Orders first: a fabric that is woken for a birth must know of it.
                news[host] = orders + (header if moved else b"") + news.get(host, b"")
        for node, order in told.items():
            if order:
                self._orders[node] = order[1]

    def everything(self, host: int) -> bytes:
        """All that a host is to know of this page: for a new connection."""
        told = b"".join(self._record(node) for node in self._about[host])
        if host == self.leader:
            self._tallied.clear()
            return told + self.counted()
        if self.here != self.leader:
            return told
        orders = b"".join([self._order(node).tobytes() for node in self._ordered[host]])
        return orders + self._header_record() + told

    def counted(self) -> bytes:
        """For the leader: what those of our nodes have counted that have counted more since the last call."""
        told = array("Q")
        for node in self._own:
            row = self.page.tally(node)
            if row != self._tallied.get(node):
                self._tallied[node] = row
                told.extend([_TALLY << _KIND_SHIFT | node, *row])
        return told.tobytes()

    @staticmethod
    def asked() -> bytes:
        """Something here has met a sleeping fabric."""
        return array("Q", [_ASKED << _KIND_SHIFT]).tobytes()

    def _has_moved(self, node: int, seen: bytes, now: bytes) -> bool:
        """Whether a slot differs between two looks; if so its node is asked to ring at its next publication.

        One that has not has not rung either.
        """
        start = node * _ROW_BYTES
        if seen[start : start + _ROW_BYTES] == now[start : start + _ROW_BYTES]:
            return False
        bell = self._bells[node]
        if bell is not None:
            # From the row just read: what is published after it rings.
            horizon = int.from_bytes(now[start : start + WORD_BYTES], sys.byteorder)
            self.page.words[bell] = min(horizon + 1, NEVER)
        return True

    def _record(self, node: int) -> bytes:
        """Empty while the node is being ordered something: then the slot will have changed at the next look."""
        words, base = self.page.words, self._word(node, 0)
        orders = words[base + S_ORDERS]
        if orders & ORDER_UNDER_WAY:
            return b""
        horizon = words[base + S_HORIZON]  # before the counts: what is sent by then is in them
        counts = self._counts(node)
        record = [
            _NEWS << _KIND_SHIFT | node,
            orders,
            words[base + S_STATE],
            words[base + S_PENDING],  # after the counts: who has taken a frame says so before it counts it
            words[base + S_PID],
            words[base + S_INCARNATION],
            horizon,
        ]
        return array("Q", record + counts).tobytes()

    def _order(self, node: int) -> "array[int]":
        """The latest order about a node; empty while it is being given, which is to be looked at again."""
        words, base = self.page.words, self._word(node, 0)
        orders = words[base + S_ORDERS]
        record = [orders, words[base + S_STATE], words[base + S_HORIZON], *self._counts(node), *self.page.tally(node)]
        if orders & ORDER_UNDER_WAY or words[base + S_ORDERS] != orders:
            return array("Q")
        return array("Q", [_ORDER << _KIND_SHIFT | node, *record])

    def _counts(self, node: int) -> list[int]:
        ports, first_sent, first_taken = self._count_words[node]
        words = self.page.words
        return [*words[first_sent : first_sent + ports], *words[first_taken : first_taken + ports]]

    def _header_record(self) -> bytes:
        words = self.page.words
        record = [_HEADER << _KIND_SHIFT, words[W_STATE], words[W_WAKES], words[W_LIMIT], self._floor]
        return array("Q", record).tobytes()

    # What we are told.

    def take(self, source: int, news: bytes) -> Rings:
        """Write the news of a host into the page. Raises StrangeNewsError; what came before that is written."""
        if len(news) % WORD_BYTES:
            raise StrangeNewsError(f"{len(news)} bytes are no words")
        words = array("Q", news)
        rings = Rings()
        at = 0
        while at < len(words):
            kind, node = words[at] >> _KIND_SHIFT, words[at] & _NODE_MASK
            if node >= self.page.nodes:
                raise StrangeNewsError(f"node {node} of {self.page.nodes}")
            size = self._size(kind, node)
            record = words[at : at + size]
            if len(record) < size:
                raise StrangeNewsError("a record is cut off")
            at += size
            if kind == _NEWS and self._host_of[node] == source:
                self._take_news(node, record, rings)
            elif kind == _ORDER and source == self.leader:
                self._take_order(node, record, rings)
            elif kind == _HEADER and source == self.leader:
                self._take_header(record, rings)
            elif kind == _TALLY and self.here == self.leader and self._host_of[node] == source:
                self.page.set_tally(node, record[1:])
            elif kind == _ASKED and self.here == self.leader:
                rings.agent = True
            else:
                raise StrangeNewsError(f"a record of kind {kind} about node {node} from host {source}")
        return rings

    def _size(self, kind: int, node: int) -> int:
        if kind in (_NEWS, _ORDER):
            words = _NEWS_WORDS if kind == _NEWS else _ORDER_WORDS + tally.WORDS
            return words + 2 * len(self._peers[node])
        if kind == _TALLY:
            return _TALLY_RECORD_WORDS
        return _HEADER_RECORD_WORDS if kind == _HEADER else _ASKED_WORDS

    def _take_news(self, node: int, record: "array[int]", rings: Rings) -> None:
        _, orders, state, pending, pid, incarnation, horizon = record[:_NEWS_WORDS]
        words, base = self.page.words, self._word(node, 0)
        if orders < words[base + S_ORDERS] or state not in _STATES:
            return
        if state == SlotState.DEAD or (orders == words[base + S_ORDERS] and words[base + S_STATE] == SlotState.DEAD):
            return  # who is dead is the leader's word alone
        if orders == words[base + S_ORDERS] and horizon < words[base + S_HORIZON]:
            return  # overtaken by what the node had reached when it died (`ClockPage.set_reached`)
        if pending:
            words[base + S_PENDING] = pending
            rings.agent = rings.agent or (self.here == self.leader and self.page.asleep)
        # Before the counts: whoever sees those of a new life knows that it is one.
        words[base + S_INCARNATION] = incarnation
        ports, first_sent, first_taken = self._count_words[node]
        for port in range(ports):
            words[first_sent + port] = record[_NEWS_WORDS + port]
            words[first_taken + port] = record[_NEWS_WORDS + ports + port]
        words[base + S_PID] = pid
        words[base + S_STATE] = state
        words[base + S_PENDING] = pending
        words[base + S_HORIZON] = horizon
        # Last: should the leader's agent have ordered something meanwhile, it sees that we have overwritten it.
        words[base + S_ORDERS] = orders
        self._ring_waiting(node, horizon, rings)

    def _take_order(self, node: int, record: "array[int]", rings: Rings) -> None:
        _, orders, state, horizon = record[:_ORDER_WORDS]
        words, base = self.page.words, self._word(node, 0)
        known = words[base + S_ORDERS]
        # Its host may have heard of its death before us, and told us so in the news of who lives on there.
        unheard = orders == known and state == SlotState.DEAD != words[base + S_STATE]
        if not (orders > known or unheard) or state not in (SlotState.BOOTING, SlotState.DEAD):
            return
        # A host that has been started anew remembers nothing; sequence numbers must go on all the same.
        first_sent, first_taken = self.page.sent_word(node, 0), self.page.taken_word(node, 0)
        ports = len(self._peers[node])
        for port in range(ports):
            words[first_sent + port] = max(words[first_sent + port], record[_ORDER_WORDS + port])
            words[first_taken + port] = max(words[first_taken + port], record[_ORDER_WORDS + ports + port])
        # Nor what its nodes had counted, and the lives to come count on.
        self.page.set_tally(node, record[-tally.WORDS :])
        words[base + S_PENDING] = int(state == SlotState.BOOTING)
        words[base + S_STATE] = state
        words[base + S_HORIZON] = horizon
        # Last: who sees it starts the process, which says in these words that it lives.
        words[base + S_ORDERS] = orders
        self._ring_waiting(node, horizon, rings)

    def _take_header(self, record: "array[int]", rings: Rings) -> None:
        _, state, wakes, limit, floor = record
        words = self.page.words
        rings.everybody = rings.everybody or (words[W_STATE], words[W_LIMIT]) != (state, limit)
        words[W_FLOOR] = floor
        words[W_LIMIT] = limit
        words[W_WAKES] = wakes
        words[W_STATE] = state

    def _ring_waiting(self, node: int, horizon: int, rings: Rings) -> None:
        """As the node's own process would: ring those of our nodes that wait for this horizon."""
        words = self.page.words
        for port, peer in self._local_ports[node]:
            want = self.page.want_word(node, port)
            if words[want] <= horizon:
                words[want] = NEVER
                rings.nodes.add(peer)

    @staticmethod
    def _word(node: int, word: int) -> int:
        return HEADER_WORDS + node * SLOT_WORDS + word
