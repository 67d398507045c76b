"""The driver of cores in virtual time: any graph of nodes, no clock, no sockets, the same result every time.

Owns delivery, the order of inputs and the timetable of crashes and restarts. It knows a node only by `mrcfabric.node`.
Time moves in windows no longer than the shortest link delay. A frame sent inside a window cannot arrive inside it, so
the simulator advances the nodes of a window one after the other, in any order. A window starts at the next thing that
happens, so idle time costs nothing; the results do not depend on the windows.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Final, TypeAlias

from mrcfabric.node import Input, Node, Rank, split_due
from mrcfabric.orders import Orders
from mrcfabric.sim.trace import Trace
from mrcfabric.units import NEVER, Instant

End: TypeAlias = tuple[str, int]
"""A node's name and one of its ports."""
Factory: TypeAlias = Callable[[Instant], Node]
"""Makes a node that begins at the given instant."""
Script: TypeAlias = Callable[[], Iterable[tuple[Instant, Any]]]
"""The commands of a node that begins: instants later than its begin, and commands."""

_INDEX_BITS: Final = 20
_INDEX_MASK: Final = (1 << _INDEX_BITS) - 1
_FRAME: Final[Any] = int(Rank.FRAME)
"""An object, as inputs take it."""


class _Site:
    """The place of a node in the graph: it outlives crashes of its node."""

    __slots__ = ("commands", "core", "due", "inbox", "index", "links", "mortal", "name", "orders", "plan", "soonest",
                 "trace", "traces", "vanished")  # fmt: skip

    def __init__(self, name: str, index: int, core: Node) -> None:
        self.name = name
        self.index = index
        self.core: Node | None = core
        self.inbox: list[Input] = []
        """Plain tuples: they are made and sorted in a third of the time."""
        self.soonest: Instant = NEVER
        """The first instant in the inbox."""
        self.links: list[_Direction | None] = []
        """By port; None: unplugged."""
        self.plan: list[tuple[Instant, int, Factory | None, Script | None]] = []
        """Crashes (no factory) and restarts to come: instant, running number, factory, script."""
        self.commands = 0
        self.mortal: set[int] = set()
        """Numbers of commands that die with the node's present life."""
        self.orders = Orders()
        """The same ones: of several for one instant that set the same thing the last counts."""
        self.due: Instant = NEVER
        self.vanished = 0
        self.trace: Trace | None = None
        self.traces: list[Trace] = []


class _Direction:
    """One direction of a link, at the sender's port."""

    __slots__ = ("peer", "peer_port", "sequence")

    def __init__(self, peer: _Site, peer_port: int) -> None:
        self.peer = peer
        self.peer_port: Any = peer_port  # an object, as inputs take it
        self.sequence = 0


class Simulator:
    """Nodes and the links between them, from instant 0.

    `links` maps an end to the end it sends to; name both directions. A port without an entry is unplugged: its frames
    are dropped. `window_ns` is the delay of the shortest link (asserted as frames arrive). `keep` is None for no
    traces, else how many transmits and events each trace remembers. `on_events` sees what every advance reported, node
    by node; a command it issues in answer must lie at least `window_ns` after the event.
    """

    def __init__(
        self,
        nodes: Mapping[str, Node],
        links: Mapping[End, End],
        *,
        window_ns: int = 1_000,
        keep: int | None = None,
        on_events: Callable[[str, list[Any]], None] | None = None,
    ) -> None:
        assert window_ns > 0, "a window has a length"
        assert len(nodes) <= _INDEX_MASK, "the timetable has so many places"
        self.now_ns: Instant = 0
        """The simulation has run up to and including this instant."""
        self.frames = 0
        """Transmits carried over links so far."""
        self.frames_vanished = 0
        """Those transmits that reached a dead node."""
        self._window_ns = window_ns
        self._keep = keep
        self._on_events = on_events
        self._sites = {name: _Site(name, index, core) for index, (name, core) in enumerate(nodes.items())}
        self._order = list(self._sites.values())
        self._heap: list[int] = []
        """The timetable: due instant << _INDEX_BITS | index of the site. Numbers are compared faster than tuples."""
        self._changes = 0
        for (name, port), (peer, peer_port) in links.items():
            ports = self._sites[name].links
            ports.extend([None] * (port + 1 - len(ports)))
            ports[port] = _Direction(self._sites[peer], peer_port)
        for site in self._order:
            self._begin_trace(site)
            self._reschedule(site)

    # Queries and requests.

    def node(self, name: str) -> Node:
        """The core that runs there now; KeyError when it is dead or there never was one."""
        core = self._sites[name].core
        if core is None:
            raise KeyError(name)
        return core

    def alive(self, name: str) -> bool:
        """False between a crash and a restart."""
        return self._sites[name].core is not None

    def vanished(self, name: str) -> int:
        """Frames and commands that reached the node while it was dead."""
        return self._sites[name].vanished

    def under_way(self) -> int:
        """Frames that were sent and have not reached a node, dead ones included."""
        return sum(entry[1] == _FRAME for site in self._order for entry in site.inbox)

    def traces(self, name: str) -> list[Trace]:
        """One per incarnation, the latest last; empty without `keep`."""
        return self._sites[name].traces

    def command(self, name: str, at_ns: Instant | None, command: Any, *, mortal: bool = False) -> None:
        """Hand a command to a node at a future instant; None: the next one.

        `mortal`: only the node's present life gets it; otherwise the life that runs at that instant does.
        """
        self._tell(self._sites[name], self._future(at_ns), command, mortal)

    def crash(self, name: str, at_ns: Instant | None = None) -> None:
        """Let the node run up to and including `at_ns`, then die.

        Frames that it has sent still arrive. Of the commands for later only the `mortal` ones are lost.
        """
        self._change(name, at_ns, None)

    def restart(self, name: str, at_ns: Instant | None, factory: Factory, script: Script | None = None) -> None:
        """Start a new node at `at_ns`.

        It gets frames that arrive later than that; `script` is called at that instant. Of its commands for one instant
        that set the same thing (`mrcfabric.orders`) the last counts.
        """
        self._change(name, at_ns, factory, script)

    def stay(self, name: str) -> None:
        """Cancel the crashes and restarts of a node that are still to come."""
        site = self._sites[name]
        site.plan.clear()
        site.due = NEVER
        self._reschedule(site)

    # Time.

    def run(self, until: Instant) -> None:
        """Run everything up to and including `until`."""
        while (start := self.next_due()) is not None and start <= until:
            self._window(min(start + self._window_ns - 1, until))
        self.now_ns = max(self.now_ns, until)
        for site in self._order:
            if site.core is not None and site.core.now_ns < until:
                self._advance(site, until)

    def run_until(self, predicate: Callable[[], bool], deadline_ns: Instant, every_ns: int) -> bool:
        """Run until the predicate holds, tested every `every_ns`.

        False if the deadline or an idle fabric comes first.
        """
        while not predicate():
            if self.now_ns >= deadline_ns or self.next_due() is None:
                return False
            self.run(min(self.now_ns + every_ns, deadline_ns))
        return True

    def next_due(self) -> Instant | None:
        """The next instant at which something happens; None when the fabric is idle."""
        heap = self._heap
        while heap and self._order[heap[0] & _INDEX_MASK].due != heap[0] >> _INDEX_BITS:
            heappop(heap)
        return heap[0] >> _INDEX_BITS if heap else None

    def _window(self, until: Instant) -> None:
        heap = self._heap
        order = self._order
        ready = []
        end = until + 1 << _INDEX_BITS
        while heap and heap[0] < end:
            entry = heappop(heap)
            site = order[entry & _INDEX_MASK]
            if site.due == entry >> _INDEX_BITS:
                site.due = NEVER
                ready.append(site)
        self.now_ns = max(self.now_ns, until)
        for site in ready:
            while site.plan and site.plan[0][0] <= until:
                self._carry_out(site)
            self._advance(site, until)
            self._reschedule(site)

    def _advance(self, site: _Site, until: Instant) -> None:
        core = site.core
        inputs: list[Input] = []
        if site.soonest <= until:
            inputs, site.inbox, site.soonest = split_due(site.inbox, until)
            if site.orders.latest:
                inputs = site.orders.counting(inputs)
        if core is None:
            site.vanished += len(inputs)
            self.frames_vanished += sum(entry[1] == _FRAME for entry in inputs)
            return
        if core.now_ns >= until:
            assert not inputs
            return
        transmits = core.advance(inputs, until)
        events = core.drain_events()
        if site.trace is not None:
            site.trace.add(transmits, events)
        if transmits:
            self._deliver(site, transmits)
        if events and self._on_events is not None:
            self._on_events(site.name, events)

    def _deliver(self, site: _Site, transmits: Sequence[tuple[Any, Any, Any]]) -> None:
        """Put the frames that a node sent into the inboxes of its neighbours."""
        links, count = site.links, len(site.links)
        now_ns = self.now_ns
        self.frames += len(transmits)
        port: int
        arrival_ns: int
        # `sent_ns` is the same integer as an object: it goes from one tuple into the other and need not be made anew.
        for port, sent_ns, packet in transmits:
            arrival_ns = sent_ns
            direction = links[port] if port < count else None
            if direction is None:
                self.frames -= 1
                continue
            direction.sequence = sequence = direction.sequence + 1
            peer = direction.peer
            assert arrival_ns > now_ns, f"{site.name} port {port}: the link is shorter than a window"
            entry: Any = (sent_ns, _FRAME, direction.peer_port, sequence, packet)
            peer.inbox.append(entry)
            if arrival_ns < peer.soonest:
                peer.soonest = arrival_ns
                self._touch(peer, arrival_ns)

    # Timetable.

    def _future(self, at_ns: Instant | None) -> Instant:
        if at_ns is None:
            return self.now_ns + 1
        assert at_ns > self.now_ns, f"{at_ns} ns has passed: it is {self.now_ns} ns"
        return at_ns

    def _change(self, name: str, at_ns: Instant | None, factory: Factory | None, script: Script | None = None) -> None:
        site = self._sites[name]
        at_ns = self._future(at_ns)
        self._changes += 1
        insort(site.plan, (at_ns, self._changes, factory, script))
        self._touch(site, at_ns)

    def _carry_out(self, site: _Site) -> None:
        """Carry out the next crash or restart of a site, after everything before it."""
        at_ns, _, factory, script = site.plan.pop(0)
        self._advance(site, at_ns)
        if factory is None:
            site.core = None
            # Keep frames under way and commands that are not mortal: the next life gets them, if there is one by then.
            site.inbox = [entry for entry in site.inbox if entry[1] == _FRAME or entry[3] not in site.mortal]
            site.mortal.clear()
            site.orders = Orders()
            site.soonest = min((entry[0] for entry in site.inbox), default=NEVER)
            return
        site.core = factory(at_ns)
        assert site.core.now_ns == at_ns, f"{site.name} was to begin at {at_ns} ns"
        self._begin_trace(site)
        for told_ns, command in script() if script is not None else ():
            assert told_ns > at_ns, f"{site.name} begins at {at_ns} ns"
            self._tell(site, told_ns, command, True)

    def _begin_trace(self, site: _Site) -> None:
        if self._keep is not None:
            site.trace = Trace(self._keep)
            site.traces.append(site.trace)

    def _tell(self, site: _Site, at_ns: Instant, command: Any, mortal: bool) -> None:
        site.commands += 1
        if mortal:
            site.mortal.add(site.commands)
            site.orders.note(at_ns, site.commands, command)
        entry: Any = (at_ns, int(Rank.COMMAND), 0, site.commands, command)
        site.inbox.append(entry)
        site.soonest = min(site.soonest, at_ns)
        self._touch(site, at_ns)

    def _touch(self, site: _Site, at_ns: Instant) -> None:
        """Note that something will happen at this site at `at_ns`."""
        if at_ns < site.due:
            site.due = at_ns
            heappush(self._heap, at_ns << _INDEX_BITS | site.index)

    def _reschedule(self, site: _Site) -> None:
        due = site.plan[0][0] if site.plan else NEVER
        due = min(due, site.soonest)
        if site.core is not None:
            timeout = site.core.next_timeout()
            if timeout is not None and timeout < due:
                due = timeout
        self._touch(site, due)
