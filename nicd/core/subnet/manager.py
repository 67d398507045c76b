"""The subnet manager: finds the subnet by directed routes, computes tables, writes them block by block, and watches.

Owns what it knows of the subnet, which requests are out, and when it looks again. `routes` computes, `interface` sends
and hears. Everything happens in fabric time.

A *heavy sweep* asks every node who it is, along every port of every switch that answers; then it writes what differs
from what it knows to be written. A *light sweep* only asks each switch whether a port has changed. No more than
`outstanding` requests are out; one without an answer is asked again, and given up after `retries` more times.

Who finds a master, or a better one that begins too, stands by: it writes nothing, asks that one whether it lives, and
takes over when it has not answered for some time. Then it sweeps, and finds the LIDs that switches have.

A switch is called by a LID that the manager gives it; one that does not know its LID has begun anew, and its whole
table is written again. A NIC has its LIDs by its number, and says them.

Sources: IBTA 14.4 (subnet manager); the figures are those of opensm.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeAlias

from mrcfabric.errors import ConfigError
from mrcfabric.units import NS_PER_S, Instant
from mrcfabric.wire.smp import (
    GET,
    LFT,
    NODE_INFO,
    OK,
    PORT_ACTIVE,
    PORT_INFO,
    SET,
    SM_INFO,
    SWITCH,
    SWITCH_INFO,
    TRAP,
    Smp,
    request,
)
from mrcfabric.wire.smp_attributes import NodeInfo, PortInfo, SmInfo, SwitchInfo
from nicd.core.events import NicEvent, SubnetSwept
from nicd.core.subnet.answer_queue import AnswerQueue
from nicd.core.subnet.routes import Node, blocks, tables
from nicd.core.timers import Timer, Timers

Then: TypeAlias = Callable[[Instant, Smp | None], None]
"""Takes the answer to a request; None: there was none."""
Send: TypeAlias = Callable[[Instant, Smp], None]
Tell: TypeAlias = Callable[[NicEvent], None]

PRIORITY_MAX: Final = 15
DISCOVERING: Final = 1
STANDBY: Final = 2
MASTER: Final = 3
"""States of a manager, as it says them."""
_HOPS_MAX: Final = 20
"""No path that is longer is followed: the shapes here have a few hops."""


@dataclass(frozen=True, slots=True)
class ManagerConfig:
    """How a manager works. Times in nanoseconds. Raises ConfigError."""

    port: int
    """The NIC's port by which it reaches its subnet, from 0."""
    guid: int
    lid: int
    """The NIC's own first LID."""
    lmc: int
    switch_lids: int
    """The first LID that it may give to a switch."""
    sweep_ns: int = 10 * NS_PER_S
    """From the end of a sweep to the next light one."""
    timeout_ns: int = NS_PER_S // 5
    retries: int = 3
    outstanding: int = 4
    priority: int = 0
    """Of managers that begin together the one with the highest is the master, of equals that of the smallest GUID."""
    poll_ns: int = 10 * NS_PER_S
    """A standby asks the master so often whether it lives."""
    polls: int = 4
    """And takes over when so many in a row had no answer."""

    def __post_init__(self) -> None:
        least = min(self.sweep_ns, self.timeout_ns, self.outstanding, self.poll_ns, self.polls)
        if least < 1 or self.retries < 0 or not 0 <= self.priority <= PRIORITY_MAX:
            raise ConfigError("subnet manager", "times and counts must be at least 1, retries 0")


class _Ask:
    """One request and who waits for its answer."""

    __slots__ = ("due_ns", "smp", "then", "tries")

    def __init__(self, smp: Smp, then: Then) -> None:
        self.smp = smp
        self.then = then
        self.tries = 0
        self.due_ns: Instant = 0


class SubnetManager:
    """One manager of one subnet."""

    def __init__(self, config: ManagerConfig, timers: Timers, send: Send, tell: Tell) -> None:
        self.config = config
        self._send = send
        self._tell = tell
        self.nodes: dict[int, Node] = {}
        """By GUID, as the last heavy sweep that is over found them."""
        self.sweeps = 0
        self.requests = 0
        self.unanswered = 0
        self.blocks_written = 0
        self.queue = AnswerQueue(timers, self._deal)
        """What comes for the manager: `take` it there."""
        self._found: dict[int, Node] = {}
        self._lids: dict[int, int] = {}  # what switches are called
        self._strangers: set[int] = set()  # switches that do not know their LID, or this manager
        self._written: dict[int, dict[int, bytes]] = {}
        """By GUID of a switch: the blocks that it is known to have."""
        self._blocks = 0
        self._began_ns: Instant = 0
        self._asked_before = 0
        self._waiting: deque[_Ask] = deque()
        self._out: dict[int, _Ask] = {}
        self._number = 0
        self._over: Callable[[Instant], None] | None = None
        """What comes when no request is out any more."""
        self._again = False  # something has changed since the sweep began
        self.state = DISCOVERING
        self._master: tuple[int, ...] | None = None  # the way to a manager that goes before this one
        self._missed = 0  # polls in a row that had no answer
        self._late = Timer(timers, self._on_late)
        self._next = Timer(timers, self._light_sweep)
        self._poll = Timer(timers, self._on_poll)

    @property
    def busy(self) -> bool:
        """Whether a sweep is under way."""
        return self._over is not None

    def counters(self) -> dict[str, int]:
        """`state` (1 discovering, 2 standby, 3 master), sweeps, requests, those without answer, nodes known by kind."""
        switches = sum(node.switch for node in self.nodes.values())
        return {
            "state": self.state, "sweeps": self.sweeps, "requests": self.requests, "unanswered": self.unanswered,
            "blocks_written": self.blocks_written, "switches": switches, "nics": len(self.nodes) - switches,
        }  # fmt: skip

    def start(self, now: Instant) -> None:
        """Sweep, and then watch."""
        self._heavy_sweep(now)

    def stop(self) -> None:
        """Ask nothing more."""
        for timer in (self._late, self._next, self._poll):
            timer.cancel()
        self.queue.clear()
        self._waiting.clear()
        self._out.clear()
        self._over = None

    def _deal(self, now: Instant, smp: Smp) -> None:
        if smp.method == TRAP:
            self.changed(now)
        else:
            self.heard(now, smp)

    def changed(self, now: Instant) -> None:
        """Something in the subnet is said to have changed."""
        if self.busy:
            self._again = True
        elif self.state == MASTER:
            self._heavy_sweep(now)

    def heard(self, now: Instant, smp: Smp) -> None:
        """An answer has come."""
        ask = self._out.pop(smp.transaction_id, None)
        if ask is None:
            return
        ask.then(now, smp)
        self._pump(now)

    # Sweeps.

    def _heavy_sweep(self, now: Instant) -> None:
        self._next.cancel()
        self._again = False
        self._master = None
        self._began_ns, self._asked_before, self._blocks = now, self.requests, 0
        config = self.config
        own = Node(config.guid, False, config.port + 1, (), config.lid)
        self._found = {config.guid: own}
        self._strangers.clear()
        self._over = self._write
        self._explore(own, config.port + 1)
        self._pump(now)

    def _light_sweep(self, now: Instant) -> None:
        self._over = self._watch
        for node in self.nodes.values():
            if node.switch:
                self._ask(GET, SWITCH_INFO, node.path, self._is_unchanged)
        self._pump(now)

    def _is_unchanged(self, now: Instant, smp: Smp | None) -> None:
        if smp is None or smp.status != OK or SwitchInfo.parse(smp.data).port_state_change:
            self._again = True

    def _watch(self, now: Instant) -> None:
        """A light sweep is over."""
        self._over = None
        if self._again:
            self._heavy_sweep(now)
        else:
            self._next.set(now + self.config.sweep_ns)

    # Finding.

    def _explore(self, node: Node, port: int) -> None:
        """Ask who is behind a port of a node."""
        path = (*node.path, port)
        if len(path) <= _HOPS_MAX:
            self._ask(GET, NODE_INFO, path, lambda now, smp: self._on_node(node, port, path, smp))

    def _on_node(self, before: Node, port: int, path: tuple[int, ...], smp: Smp | None) -> None:
        if smp is None or smp.status != OK:
            return
        info = NodeInfo.parse(smp.data)
        node = self._found.get(info.node_guid)
        before.neighbours[port] = info.node_guid, info.local_port
        if node is not None:
            node.neighbours[info.local_port] = before.guid, port
            return
        node = Node(info.node_guid, info.node_type == SWITCH, info.ports, path)
        node.neighbours[info.local_port] = before.guid, port
        self._found[node.guid] = node
        if not node.switch:
            self._ask(GET, PORT_INFO, path, lambda now, smp: self._on_lid(node, smp), info.local_port)
            return
        self._ask(GET, PORT_INFO, path, lambda now, smp: self._on_lid(node, smp))
        for other in range(1, node.ports + 1):
            if other != info.local_port:
                self._explore(node, other)

    def _on_lid(self, node: Node, smp: Smp | None) -> None:
        info = PortInfo.parse(smp.data) if smp is not None and smp.status == OK else PortInfo(0, 0, 0)
        if not node.switch:
            node.lid = info.lid
            if self.state != MASTER:
                self._ask(GET, SM_INFO, node.path, lambda now, smp: self._on_manager(node, smp))
            return
        wanted = self._lids.get(node.guid, 0)
        if not wanted:
            taken = set(self._lids.values())
            known = info.lid if info.lid >= self.config.switch_lids and info.lid not in taken else 0
            wanted = known or next(one for one in count(self.config.switch_lids) if one not in taken)
            self._lids[node.guid] = wanted
        node.lid = wanted
        if (info.lid, info.master_sm_lid) != (wanted, self.config.lid):
            self._strangers.add(node.guid)

    # Several managers.

    def info(self) -> SmInfo:
        """How this manager stands."""
        return SmInfo(self.config.guid, self.requests & 0xFFFFFFFF, self.config.priority, self.state)

    def _on_manager(self, node: Node, smp: Smp | None) -> None:
        """Another NIC may run a manager that goes before this one."""
        if smp is None or smp.status != OK:
            return
        other = SmInfo.parse(smp.data)
        better = (-other.priority, other.guid) < (-self.config.priority, self.config.guid)
        if other.state == MASTER or (better and other.state in (DISCOVERING, STANDBY)):
            self._master = node.path

    def _stand_by(self, now: Instant) -> None:
        self._over = None
        self.state = STANDBY
        self._missed = 0
        # When it takes over, switches are called what they are called then.
        self._lids.clear()
        self._poll.set(now + self.config.poll_ns)

    def _on_poll(self, now: Instant) -> None:
        """Ask the master whether it lives."""
        assert self._master is not None
        self._over = self._polled
        self._ask(GET, SM_INFO, self._master, self._on_poll_answer)
        self._pump(now)

    def _on_poll_answer(self, now: Instant, smp: Smp | None) -> None:
        lives = smp is not None and smp.status == OK
        self._missed = 0 if lives else self._missed + 1

    def _polled(self, now: Instant) -> None:
        self._over = None
        if self._missed < self.config.polls:
            self._poll.set(now + self.config.poll_ns)
            return
        self.state = DISCOVERING
        self._heavy_sweep(now)

    # Writing.

    def _write(self, now: Instant) -> None:
        """All is found that answers: write what differs, unless another manager goes before this one."""
        self.nodes = self._found
        if self._master is not None:
            self._stand_by(now)
            return
        self.state = MASTER
        self._over = self._end
        for guid, table in tables(self.nodes, self.config.lmc).items():
            path = self.nodes[guid].path
            if guid in self._strangers:
                # It has begun anew, and knows nothing of what was written; or another manager has written it.
                self._written.pop(guid, None)
                data = PortInfo(self.nodes[guid].lid, PORT_ACTIVE, 0, master_sm_lid=self.config.lid).emit()
                self._ask(SET, PORT_INFO, path, lambda now, smp: None, 0, data)
            known = self._written.setdefault(guid, {})
            for number, block in blocks(table).items():
                if known.get(number) != block:
                    self._blocks += 1
                    self.blocks_written += 1
                    known.pop(number, None)
                    self._ask(SET, LFT, path, self._keeper(guid, number, block), number, block)
            seen = SwitchInfo(0, max(table, default=0), port_state_change=1)
            self._ask(SET, SWITCH_INFO, path, lambda now, smp: None, 0, seen.emit())
        self._pump(now)

    def _keeper(self, guid: int, number: int, block: bytes) -> Then:
        """Notes that a switch has a block; if it does not answer, the next sweep writes it again."""

        def keep(now: Instant, smp: Smp | None) -> None:
            if smp is not None and smp.status == OK:
                self._written[guid][number] = block
            else:
                self._again = True

        return keep

    def _end(self, now: Instant) -> None:
        """A heavy sweep is over."""
        self._over = None
        self.sweeps += 1
        switches = sum(node.switch for node in self.nodes.values())
        self._tell(
            SubnetSwept(
                now, self.config.port, switches, len(self.nodes) - switches, self._blocks,
                self.requests - self._asked_before, now - self._began_ns,
            )
        )  # fmt: skip
        # What is still wrong then is looked at again when a light sweep is due.
        self._next.set(now + self.config.sweep_ns)

    # Requests.

    def _ask(
        self, method: int, attribute: int, path: tuple[int, ...], then: Then, modifier: int = 0, data: bytes = b""
    ) -> None:
        self._number += 1
        self._waiting.append(_Ask(request(method, attribute, path, self._number, modifier, data), then))

    def _pump(self, now: Instant) -> None:
        """Send what may be sent, and go on when nothing is out."""
        while self._waiting and len(self._out) < self.config.outstanding:
            self._put(now, self._waiting.popleft())
        if self._out:
            self._late.set(min(ask.due_ns for ask in self._out.values()))
            return
        self._late.cancel()
        if self._over is not None:
            self._over(now)

    def _put(self, now: Instant, ask: _Ask) -> None:
        ask.tries += 1
        ask.due_ns = now + self.config.timeout_ns
        self._out[ask.smp.transaction_id] = ask
        self.requests += 1
        self._send(now, ask.smp)

    def _on_late(self, now: Instant) -> None:
        """Answers that are late do not come any more: ask again, or give up."""
        for ask in [one for one in self._out.values() if one.due_ns <= now]:
            del self._out[ask.smp.transaction_id]
            if ask.tries <= self.config.retries:
                self._put(now, ask)
            else:
                self.unanswered += 1
                ask.then(now, None)
        self._pump(now)
