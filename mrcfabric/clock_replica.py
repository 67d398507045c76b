"""Keeps the replicas of a clock page in step: what a host sends the others of its page, and how it takes their news.

A fabric over several hosts has a page on each, all of the same shape, so the horizon rule holds between hosts as it
does within one. Every word has one source:

- The leader (the host of the orchestrator) writes the *header* (run or sleep, limit) and the *orders* (a node is being
  started, a node is dead). Orders of one slot are numbered.
- A host sends what its processes write of their nodes (horizon, pending, counts). Tallies go to the leader alone, less
  often, and come back with an order: a host that is started anew remembers nothing.

A host drops news of a slot that carry an older order than its page has: they belong to a life that is over. It also
drops all news of a node that the leader has ordered dead. If the leader gave a host up and that host still runs, its
processes do not know it; they must not hold anybody back, nor be heard. News are written with the counts first and the
horizon last, as a process publishes: a reader that sees a horizon can ask for all frames sent before it. So a slow
network makes the fabric slower, never wrong, and no host needs another's wall clock.

A leader receives news of every node. Another host receives news of the neighbours of its own nodes; for the rest it
gets the *floor*, the instant that the slowest node of the fabric has reached. News carry state, not changes: after a
lost connection a host sends everything again. `orchestrator.hosts.clock.relay` carries the bytes; this module does no
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
"""Behind the words of news and orders come the counts of a node's ports, sent and then taken; behind those of an order
its tally."""
_TALLY_RECORD_WORDS = 1 + tally.WORDS
_STATES = frozenset(map(int, SlotState))


class StrangeNewsError(ValueError):
    """Another host sent bytes that are no news of this fabric."""


@dataclass(slots=True)
class Rings:
    """The processes to ring after news have been taken."""

    nodes: set[int] = field(default_factory=set)
    everybody: bool = False
    agent: bool = False
    """Work is pending in a sleeping fabric: the leader's agent must wake it."""


class Replica:
    """The replica of one host."""

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
        """What our nodes had counted when we last told the leader."""
        self._seen = bytes(len(self._slots))
        """All slots at the last look: if nothing has changed, one comparison shows it."""
        self._header = b""
        others = sorted({*host_of, leader} - {here})
        self._about = {host: [node for node in self._own if self._concerns(node, host)] for host in others}
        """Host -> those of our nodes whose news we send it."""
        self._ordered = {
            host: [node for node in range(page.nodes) if host_of[node] == host or self._concerns(node, host)]
            for host in others
            if here == leader
        }
        """Host -> nodes whose births and deaths we tell it."""
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
        """For each of our nodes with a port to another host: the want word through which we ask it to ring."""
        self._count_words = [
            (len(ports), page.sent_word(node, 0), page.taken_word(node, 0)) if ports else (0, 0, 0)
            for node, ports in enumerate(peers)
        ]
        """For each node: how many ports it has, and the first words of its sent and of its taken counts."""

    def _concerns(self, node: int, host: int) -> bool:
        return host == self.leader or any(self._host_of[peer] == host for peer, _ in self._peers[node])

    @property
    def others(self) -> list[int]:
        """The hosts to which we send news."""
        return list(self._about)

    # Sending.

    def set_floor(self) -> None:
        """On the leader: put the instant of the slowest node into the next news."""
        self._floor = self.page.fabric_now()

    _floor = NEVER

    def look(self) -> dict[int, bytes]:
        """What has changed on this page since the last look, per host; empty when nothing has.

        Asks each of our nodes with a neighbour on another host to ring at its next publication.
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
                # Orders first: they must arrive before the header that wakes the fabric for a birth.
                news[host] = orders + (header if moved else b"") + news.get(host, b"")
        for node, order in told.items():
            if order:
                self._orders[node] = order[1]

    def everything(self, host: int) -> bytes:
        """All that a host needs to know of this page, for a new connection."""
        told = b"".join(self._record(node) for node in self._about[host])
        if host == self.leader:
            self._tallied.clear()
            return told + self.counted()
        if self.here != self.leader:
            return told
        orders = b"".join([self._order(node).tobytes() for node in self._ordered[host]])
        return orders + self._header_record() + told

    def counted(self) -> bytes:
        """For the leader: the tallies of those of our nodes that have counted more since the last call."""
        told = array("Q")
        for node in self._own:
            row = self.page.tally(node)
            if row != self._tallied.get(node):
                self._tallied[node] = row
                told.extend([_TALLY << _KIND_SHIFT | node, *row])
        return told.tobytes()

    @staticmethod
    def asked() -> bytes:
        """News for the leader: a node here has work while the fabric sleeps."""
        return array("Q", [_ASKED << _KIND_SHIFT]).tobytes()

    def _has_moved(self, node: int, seen: bytes, now: bytes) -> bool:
        """Whether a slot differs between two looks; if so, ask its node to ring at its next publication.

        A node whose slot has not changed has not rung since it was asked, so it need not be asked again.
        """
        start = node * _ROW_BYTES
        if seen[start : start + _ROW_BYTES] == now[start : start + _ROW_BYTES]:
            return False
        bell = self._bells[node]
        if bell is not None:
            # From the row just read, so that a publication after this read rings.
            horizon = int.from_bytes(now[start : start + WORD_BYTES], sys.byteorder)
            self.page.words[bell] = min(horizon + 1, NEVER)
        return True

    def _record(self, node: int) -> bytes:
        """A node's news; empty while an order is being written, because the slot then differs at the next look too."""
        words, base = self.page.words, self._word(node, 0)
        orders = words[base + S_ORDERS]
        if orders & ORDER_UNDER_WAY:
            return b""
        horizon = words[base + S_HORIZON]  # before the counts: they include every frame sent by then
        counts = self._counts(node)
        record = [
            _NEWS << _KIND_SHIFT | node,
            orders,
            words[base + S_STATE],
            words[base + S_PENDING],  # after the counts: a process sets this before it counts a frame as taken
            words[base + S_PID],
            words[base + S_INCARNATION],
            horizon,
        ]
        return array("Q", record + counts).tobytes()

    def _order(self, node: int) -> "array[int]":
        """The latest order about a node; empty while it is being written, and then the caller must look again."""
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

    # Receiving.

    def take(self, source: int, news: bytes) -> Rings:
        """Write the news of a host into the page.

        Raises StrangeNewsError; the records before the bad one stay written.
        """
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
            return  # only the leader declares nodes dead
        if orders == words[base + S_ORDERS] and horizon < words[base + S_HORIZON]:
            return  # older than what the node had reached when it died (`ClockPage.set_reached`)
        if pending:
            words[base + S_PENDING] = pending
            rings.agent = rings.agent or (self.here == self.leader and self.page.asleep)
        # Before the counts: a reader of the new life's counts must already see its incarnation.
        words[base + S_INCARNATION] = incarnation
        ports, first_sent, first_taken = self._count_words[node]
        for port in range(ports):
            words[first_sent + port] = record[_NEWS_WORDS + port]
            words[first_taken + port] = record[_NEWS_WORDS + ports + port]
        words[base + S_PID] = pid
        words[base + S_STATE] = state
        words[base + S_PENDING] = pending
        words[base + S_HORIZON] = horizon
        # Last: if the leader's agent has written an order meanwhile, it now sees that we have overwritten it.
        words[base + S_ORDERS] = orders
        self._ring_waiting(node, horizon, rings)

    def _take_order(self, node: int, record: "array[int]", rings: Rings) -> None:
        _, orders, state, horizon = record[:_ORDER_WORDS]
        words, base = self.page.words, self._word(node, 0)
        known = words[base + S_ORDERS]
        # The node's host may have heard of its death before us, and told us so in the news of another life.
        unheard = orders == known and state == SlotState.DEAD != words[base + S_STATE]
        if not (orders > known or unheard) or state not in (SlotState.BOOTING, SlotState.DEAD):
            return
        # A host that is started anew remembers nothing, but sequence numbers must continue.
        first_sent, first_taken = self.page.sent_word(node, 0), self.page.taken_word(node, 0)
        ports = len(self._peers[node])
        for port in range(ports):
            words[first_sent + port] = max(words[first_sent + port], record[_ORDER_WORDS + port])
            words[first_taken + port] = max(words[first_taken + port], record[_ORDER_WORDS + ports + port])
        # It has forgotten the tallies too, and the lives to come add to them.
        self.page.set_tally(node, record[-tally.WORDS :])
        words[base + S_PENDING] = int(state == SlotState.BOOTING)
        words[base + S_STATE] = state
        words[base + S_HORIZON] = horizon
        # Last: the host that sees this number starts the process, which then writes its life into these words.
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
        """Ring those of our nodes that wait for this horizon, as the node's own process would."""
        words = self.page.words
        for port, peer in self._local_ports[node]:
            want = self.page.want_word(node, port)
            if words[want] <= horizon:
                words[want] = NEVER
                rings.nodes.add(peer)

    @staticmethod
    def _word(node: int, word: int) -> int:
        return HEADER_WORDS + node * SLOT_WORDS + word
