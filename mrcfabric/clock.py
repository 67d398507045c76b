"""The clock page: the processes of one host share fabric time through it and never wait for a message.

One memory page (a memfd that every process of the host inherits) holds, as 64-bit words:

- a *limit*: the instant at which fabric time stands still until the agent raises it;
- per node a *slot*: its horizon (the fabric time up to which it has advanced and sent), whether it has work pending,
  its process and incarnation, and how often the agent has ordered its birth or death;
- per link direction: how many frames were sent, how many were taken, and the horizon for which the peer is waiting;
- per node what it has counted in all its lives (`mrcfabric.tally`).

Every word has one writer. The exception: the agent may write the slot of a process that is dead or not yet born. A
writer stores a word with one aligned 64-bit store. The horizon rule (see `mrcfabric.runner`): a node may advance to the
smallest `horizon + link delay` of its neighbours. A dead node's horizon is NEVER, so it holds nobody back. A node that
restarts at a known instant keeps a horizon before that instant, so the fabric waits for it.

A fabric over several hosts has a replica of the page on each; `mrcfabric.clock_replica` synchronises them.

This module knows the layout, and no sockets or cores. The agent decides sleep, death and rebirth; the runner reads the
page and publishes in it.
"""

import mmap
import os
from array import array
from collections.abc import Sequence
from enum import IntEnum
from typing import Self

from mrcfabric import tally
from mrcfabric.units import NEVER, Instant

_MAGIC = 0x4D52_4346_4142_0004  # "MRCFAB", layout 4

HEADER_WORDS = 8
W_MAGIC, W_NODES, W_EDGES, W_STATE, W_DILATION_PPM, W_WAKES, W_LIMIT, W_FLOOR = range(8)

LIMIT_WORD = W_LIMIT
"""Nodes advance up to and including the instant in this word, and not beyond; NEVER: no limit."""
# W_FLOOR: on a host without the leader, the instant that the slowest node of the whole fabric has reached.

SLOT_WORDS = 8
S_HORIZON, S_STATE, S_PENDING, S_PID, S_INCARNATION, S_ORDERS, S_EDGE_BASE, S_PORTS = range(8)

ORDER_UNDER_WAY = 1 << 63
"""Set in S_ORDERS while the words of an order are being written."""

DILATION_UNIT = 1_000
"""Dilation is stored in thousandths."""


class PageState(IntEnum):
    """Whether fabric time runs."""

    SLEEP = 0
    """Nothing is pending anywhere: no node ticks, and fabric time stands still."""
    RUN = 1


class SlotState(IntEnum):
    """Whether a node lives, as its host sees it."""

    ABSENT = 0
    """Never started."""
    BOOTING = 1
    """Its process is starting; its horizon holds the neighbours back."""
    ALIVE = 2
    DEAD = 3
    """Its process is gone; its horizon holds nobody back."""


_THERE = (SlotState.BOOTING, SlotState.ALIVE)


class ClockPage:
    """The shared page of one host. The agent creates it; all other processes attach to it."""

    def __init__(self, fd: int) -> None:
        """Map the page behind `fd` (a memfd made by `create`). Raises ValueError when it is no clock page."""
        self.fd = fd
        self._map = mmap.mmap(fd, os.fstat(fd).st_size)
        self.words = memoryview(self._map).cast("Q")
        if self.words[W_MAGIC] != _MAGIC:
            raise ValueError("not a clock page")
        self.nodes = self.words[W_NODES]
        edges = self.words[W_EDGES]
        self._sent_base = HEADER_WORDS + self.nodes * SLOT_WORDS
        self._taken_base = self._sent_base + edges
        self._want_base = self._taken_base + edges
        self._tally_base = self._want_base + edges
        self._held: dict[int, Instant] = {}
        """In the agent: the horizons at which it holds nodes that are to be born."""

    @classmethod
    def create(cls, peers: Sequence[Sequence[tuple[int, int]]], dilation: float = 0.0) -> Self:
        """A page for `len(peers)` nodes; `peers[node][port]` is (peer node, peer port).

        `dilation` is the fastest pace in wall seconds per fabric second; 0 leaves the pace to the machine.
        The page starts asleep, every slot ABSENT with horizon 0.
        """
        edges = sum(len(ports) for ports in peers)
        size = 8 * (HEADER_WORDS + len(peers) * (SLOT_WORDS + tally.WORDS) + 3 * edges)
        fd = os.memfd_create("mrcfabric-clock")
        os.ftruncate(fd, size)
        with mmap.mmap(fd, size) as raw, memoryview(raw) as flat, flat.cast("Q") as words:
            words[W_MAGIC] = _MAGIC
            words[W_NODES] = len(peers)
            words[W_EDGES] = edges
            words[W_DILATION_PPM] = round(dilation * DILATION_UNIT)
            words[W_LIMIT] = words[W_FLOOR] = NEVER
            base = 0
            for node, ports in enumerate(peers):
                slot = HEADER_WORDS + node * SLOT_WORDS
                words[slot + S_EDGE_BASE] = base
                words[slot + S_PORTS] = len(ports)
                base += len(ports)
            want_base = HEADER_WORDS + len(peers) * SLOT_WORDS + 2 * edges
            for edge in range(edges):
                words[want_base + edge] = NEVER
        page = cls(fd)
        page._peers = [list(ports) for ports in peers]
        return page

    _peers: list[list[tuple[int, int]]] | None = None

    def close(self) -> None:
        """Unmap; the kernel frees the memory when the last process has closed it."""
        self.words.release()
        self._map.close()
        os.close(self.fd)

    # Word positions, for the runner, which reads and writes `words` itself.

    def horizon_word(self, node: int) -> int:
        return HEADER_WORDS + node * SLOT_WORDS + S_HORIZON

    def pending_word(self, node: int) -> int:
        return HEADER_WORDS + node * SLOT_WORDS + S_PENDING

    def incarnation_word(self, node: int) -> int:
        return HEADER_WORDS + node * SLOT_WORDS + S_INCARNATION

    def sent_word(self, node: int, port: int) -> int:
        """Frames that `node` has sent on `port`."""
        return self._sent_base + self._edge(node, port)

    def taken_word(self, node: int, port: int) -> int:
        """Frames that `node` has taken from `port`."""
        return self._taken_base + self._edge(node, port)

    def want_word(self, node: int, port: int) -> int:
        """The horizon of `node` for which its neighbour on `port` waits; NEVER when the neighbour does not wait."""
        return self._want_base + self._edge(node, port)

    def tally_words(self, node: int) -> slice:
        """The words of a node's tally, in the order of `tally.NAMES`."""
        start = self._tally_base + node * tally.WORDS
        return slice(start, start + tally.WORDS)

    def _edge(self, node: int, port: int) -> int:
        return int(self.words[HEADER_WORDS + node * SLOT_WORDS + S_EDGE_BASE]) + port

    # Pace and sleep.

    @property
    def dilation(self) -> float:
        return float(self.words[W_DILATION_PPM] / DILATION_UNIT)

    @property
    def state(self) -> PageState:
        return PageState(self.words[W_STATE])

    @property
    def asleep(self) -> bool:
        return self.words[W_STATE] == PageState.SLEEP

    def sleep(self) -> None:
        """Stop fabric time. Call `all_idle()` once more afterwards, and `wake()` if it now returns False."""
        self.words[W_STATE] = PageState.SLEEP

    def wake(self) -> None:
        """Let fabric time run; the caller rings every doorbell afterwards."""
        self.words[W_WAKES] += 1
        self.words[W_STATE] = PageState.RUN

    @property
    def wakes(self) -> int:
        return int(self.words[W_WAKES])

    @property
    def limit(self) -> Instant:
        """The instant at which fabric time stands still until somebody raises it; NEVER without one."""
        return int(self.words[W_LIMIT])

    def set_limit(self, at_ns: Instant) -> None:
        """Let time run up to and including `at_ns`; the caller rings every doorbell afterwards.

        A node that is already beyond it stays where it is.
        """
        self.words[W_LIMIT] = at_ns

    def all_idle(self, until_ns: Instant = 0) -> bool:
        """Whether nothing is pending: no node has work, no frame is between living nodes, all have reached `until_ns`.

        Needs the page of the process that created it.
        """
        assert self._peers is not None, "only the agent that made the page judges idleness"
        words = self.words
        for node, ports in enumerate(self._peers):
            state = words[HEADER_WORDS + node * SLOT_WORDS + S_STATE]
            if state == SlotState.BOOTING:
                return False
            if state != SlotState.ALIVE:
                continue
            if words[self.pending_word(node)] or words[self.horizon_word(node)] < until_ns:
                return False
            for port, (peer, peer_port) in enumerate(ports):
                if words[self.sent_word(peer, peer_port)] != words[self.taken_word(node, port)]:
                    peer_state = words[HEADER_WORDS + peer * SLOT_WORDS + S_STATE]
                    if peer_state == SlotState.ALIVE:
                        return False
        return True

    # Tallies.

    def tally(self, node: int) -> list[int]:
        """What a node has counted in all its lives, in the order of `tally.NAMES`."""
        return self.words[self.tally_words(node)].tolist()

    def set_tally(self, node: int, row: Sequence[int]) -> None:
        """Store what a node has counted. For each word the larger of the stored and the new value stays."""
        self.words[self.tally_words(node)] = array("Q", tally.later(self.tally(node), row))

    # Life and death.

    def slot_state(self, node: int) -> SlotState:
        return SlotState(self.words[HEADER_WORDS + node * SLOT_WORDS + S_STATE])

    def horizon(self, node: int) -> Instant:
        return int(self.words[self.horizon_word(node)])

    def reached(self, node: int) -> list[int]:
        """A node's horizon, then its counts of frames sent and taken, port by port."""
        ports = int(self.words[HEADER_WORDS + node * SLOT_WORDS + S_PORTS])
        sent, taken = self.sent_word(node, 0), self.taken_word(node, 0)
        return [self.horizon(node), *self.words[sent : sent + ports], *self.words[taken : taken + ports]]

    def set_reached(self, node: int, reached: Sequence[int]) -> None:
        """Write what `reached` returned on another page of the same shape. The node's process must have ended."""
        ports = int(self.words[HEADER_WORDS + node * SLOT_WORDS + S_PORTS])
        sent, taken = self.sent_word(node, 0), self.taken_word(node, 0)
        for port in range(ports):
            self.words[sent + port] = reached[1 + port]
            self.words[taken + port] = reached[1 + ports + port]
        self.words[self.horizon_word(node)] = reached[0]

    def pid(self, node: int) -> int:
        return int(self.words[HEADER_WORDS + node * SLOT_WORDS + S_PID])

    def incarnation(self, node: int) -> int:
        return int(self.words[HEADER_WORDS + node * SLOT_WORDS + S_INCARNATION])

    def orders(self, node: int) -> int:
        """How often the agent has ordered the node's birth or death."""
        return int(self.words[HEADER_WORDS + node * SLOT_WORDS + S_ORDERS])

    def mark_booting(self, node: int, horizon: Instant) -> int:
        """Order a birth. Until the node lives, its neighbours advance no further than horizon + link delay.

        Returns the number of the order. `orders` returns the same number unless somebody has overwritten it.
        """
        self._held[node] = horizon
        return self._order(node, ((S_HORIZON, horizon), (S_PENDING, 1), (S_STATE, SlotState.BOOTING)))

    def _order(self, node: int, words: Sequence[tuple[int, int]]) -> int:
        """Write these words of a slot in turn.

        ORDER_UNDER_WAY stays set meanwhile, so nobody reads a half-written order.
        """
        slot = HEADER_WORDS + node * SLOT_WORDS
        number = (int(self.words[slot + S_ORDERS]) & ~ORDER_UNDER_WAY) + 1
        while True:
            self.words[slot + S_ORDERS] = number | ORDER_UNDER_WAY
            for word, value in words:
                self.words[slot + word] = value
            self.words[slot + S_ORDERS] = number
            # A relay may have been writing news of the former life into the slot at the same moment. Nobody else writes
            # here, so write again until the words stay.
            if all(self.words[slot + word] == value for word, value in words):
                return number

    def mark_alive(self, node: int, pid: int, incarnation: int) -> None:
        """Called by the node's own process once its sockets are bound."""
        slot = HEADER_WORDS + node * SLOT_WORDS
        self.words[slot + S_PID] = pid
        self.words[slot + S_INCARNATION] = incarnation
        self.words[slot + S_STATE] = SlotState.ALIVE

    def mark_dead(self, node: int) -> int:
        """Order a death: nobody waits for the node any more.

        The caller rings the doorbells of its neighbours afterwards. Returns the number of the order, as `mark_booting`.
        """
        return self._order(node, ((S_STATE, SlotState.DEAD), (S_PENDING, 0), (S_HORIZON, NEVER)))

    def fabric_now(self) -> Instant:
        """The instant that every living or starting node has reached; 0 when there is none.

        A starting node counts with the horizon at which it is held: its neighbours may be dead and not wait for it. On
        a host that does not know every node, the result is at most what the leader of the fabric last said.
        """
        words, end = self.words, HEADER_WORDS + self.nodes * SLOT_WORDS
        # Two reads of the whole page: a relay calls this every millisecond.
        horizons = words[HEADER_WORDS + S_HORIZON : end : SLOT_WORDS].tolist()
        states = words[HEADER_WORDS + S_STATE : end : SLOT_WORDS].tolist()
        there = [horizon for horizon, state in zip(horizons, states, strict=True) if state in _THERE]
        return min(min(there, default=0), words[W_FLOOR])

    def fabric_front(self) -> Instant:
        """The latest instant that any living node has reached. A command stamped after it is never late.

        A node that is held at its birth has not reached its horizon yet. Only the agent, which holds it, can tell.
        """
        words, held = self.words, self._held
        front: Instant = 0
        for node in range(self.nodes):
            slot = HEADER_WORDS + node * SLOT_WORDS
            if words[slot + S_STATE] == SlotState.ALIVE:
                horizon = words[slot + S_HORIZON]
                if horizon > front and horizon != held.get(node):
                    front = horizon
        return front


def restart_horizon(crash_ns: Instant, restart_ns: Instant, delay_ns_max: int, serialization_ns_max: int) -> Instant:
    """The horizon to hold for a node that died at `crash_ns` and restarts at `restart_ns`.

    A neighbour must not send a frame that arrives after `restart_ns` before the new process has bound its sockets. It
    sends such a frame no earlier than `restart_ns - delay - serialization`, and neighbours pass the horizon by one more
    delay.
    """
    return max(crash_ns, restart_ns - 2 * delay_ns_max - serialization_ns_max - 1)
