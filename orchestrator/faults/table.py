"""Which faults are in force when, and which commands make the daemons carry them out.

Pure. A `FaultTable` is told which faults are injected and healed. It answers with the script of each life of a node:
stamped commands, sent long before their instants, so that nobody needs to act when a fault ends. The agent sends them
over the control channel; the simulator hands them to the cores. Both get the same commands in the same order.

At every instant the state of a spot follows from the faults in force there (`effects.composed`). The table compares
this state with what the node has been told for that instant, and sends a new command where they differ. So faults may
overlap, and may be injected, healed and forgotten in any order. A NIC's port has carrier while at least one direction
of its cable carries light and the T0 at the other end lives; a change there shows one link delay later. A switch
notices nothing of its neighbours (MRC 1.0 5: a dead link means silence), but in InfiniBand, whose links are down when
either end is: there a port towards a switch has carrier while that switch lives, and what its own cable does besides,
it knows itself.
"""

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from mrcfabric.errors import RefusedError
from mrcfabric.naming import shown
from mrcfabric.topology import PortLink, Topology
from mrcfabric.units import NEVER, Instant
from orchestrator.faults.checks import DEADLY, absence_ns_min, check
from orchestrator.faults.effects import TOLD_WHOLE, WHOLE, Aspect, Effects, Spot, Stamped, composed, effects, order
from orchestrator.faults.fault import Fault, Window
from orchestrator.faults.lives import Absence, Life, Told, lives_after, united

__all__ = ["FAULTS_MAX", "FaultTable", "Stamped"]

FAULTS_MAX: Final = 1024
"""How many faults of one fabric may not have ended yet; deaths that have already happened may exceed this."""


@dataclass(slots=True, eq=False)
class _Entry:
    """A fault that has not ended, or whose end the neighbours cannot see yet."""

    fault: Fault
    effects: list[Effects]
    """For each window, what it does. Windows with the same figures share one. Empty for a fault that kills nodes."""
    seen_ns: Instant
    """The earliest instant at which neighbours can notice the fault."""
    number: int
    """Different for every entry of a table."""
    cleared: bool = False
    """It was healed and is about to end: another fault may have its name."""

    def window_at(self, at_ns: Instant) -> int | None:
        """The number of the window in force at an instant; None: none is."""
        windows = self.fault.windows
        if at_ns < windows[0].start_ns:
            return None
        place = bisect_right(windows, at_ns, key=_start_ns) - 1
        return place if place >= 0 and at_ns < windows[place].end_ns else None

    def spots(self) -> set[Spot]:
        """Every spot that the fault changes."""
        return {spot for state in {id(one): one for one in self.effects}.values() for spot in state}


class _Span(NamedTuple):
    """A stretch of time, both ends included."""

    first_ns: Instant
    last_ns: Instant


_ALWAYS: Final = _Span(0, NEVER - 1)


class FaultTable:
    """The faults of one fabric and the lives of its nodes.

    `now_ns` in these methods: everything up to it has happened, so no command is given for it or for earlier.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._absence_ns = absence_ns_min(topology)
        self._numbers = itertools.count()
        self._entries: dict[int, _Entry] = {}
        self._named: dict[str, _Entry] = {}
        """Id -> the fault that has it now. A fault that has ended or is about to gives its id to the next."""
        self._on: dict[Spot, dict[int, _Entry]] = {}
        """Spot -> the faults that change it, in the order of injection."""
        self._deadly: dict[str, dict[int, _Entry]] = {}
        """Node -> the faults that kill it."""
        self._lives: dict[str, list[Life]] = {}
        self._cables: dict[Spot, tuple[Spot, Spot]] = {}
        self._ends: dict[str, list[PortLink]] = {}
        self._trained = topology.switch.get("lossless") == "credits"
        """Links are down when either end is dead."""

    # Changes. Each returns the nodes whose scripts or lives it changed.

    def add(self, fault: Fault, now_ns: Instant, *, seen_ns: Instant = 0) -> list[str]:
        """Add a fault.

        `seen_ns` is given for a death that has already happened: neighbours can notice it from then on. Raises
        ConfigError for a fault that makes no sense, RefusedError for one that comes too late or exceeds `FAULTS_MAX`.
        """
        self.forget(now_ns)
        check(self.topology, fault)
        namesake = self._named.get(fault.id)
        if namesake is not None and not namesake.cleared and namesake.fault.end_ns > now_ns:
            raise RefusedError(f"there is a fault {shown(fault.id)} already")
        if len(self._entries) >= FAULTS_MAX and not seen_ns:
            raise RefusedError(f"{FAULTS_MAX} faults are not over yet; heal some first")
        if fault.start_ns <= now_ns and not seen_ns:
            raise RefusedError(_passed(fault.start_ns, now_ns))
        entry = _Entry(fault, self._effects(fault), seen_ns, next(self._numbers))
        self._entries[entry.number] = self._named[fault.id] = entry
        for spot in entry.spots():
            self._on.setdefault(spot, {})[entry.number] = entry
        if fault.kind in DEADLY:
            for node in fault.struck:
                self._deadly.setdefault(node, {})[entry.number] = entry
        return self._bring_about(entry, fault, now_ns)

    def heal(self, fault_id: str, at_ns: Instant, now_ns: Instant, *, soon: bool = False) -> list[str]:
        """End a fault at an instant. `soon`: that is as soon as possible, so its id is free from now on.

        A node that is dead returns `checks.absence_ns_min` later: its neighbours need that long to hold back what they
        send for its return. Raises RefusedError when there is no such fault or it is over, and for an instant that has
        passed.
        """
        if at_ns <= now_ns:
            raise RefusedError(_passed(at_ns, now_ns))
        self.forget(now_ns)
        entry = self._named.get(fault_id)
        if entry is None or entry.fault.end_ns <= now_ns:
            raise RefusedError(f"there is no fault {shown(fault_id)}, or it is over")
        former = entry.fault
        windows = [window for window in former.windows if window.start_ns < at_ns]
        if windows and windows[-1].end_ns > at_ns:
            windows[-1] = windows[-1]._replace(end_ns=self._end_ns(entry.fault, windows[-1], at_ns))
        if windows:
            entry.fault = replace(former, windows=tuple(windows))
        else:
            self._drop(entry)
        entry.cleared = entry.cleared or soon
        return self._bring_about(entry, former, now_ns)

    def forget(self, now_ns: Instant) -> None:
        """Drop faults that have ended and whose end all neighbours can see, and lives that are over."""
        echo_ns = self.topology.link_delay_ns
        for entry in [one for one in self._entries.values() if one.fault.end_ns + echo_ns <= now_ns]:
            self._drop(entry)
        for node, lives in self._lives.items():
            begun = [life for life in lives if life.start_ns <= now_ns]
            self._lives[node] = lives[len(begun) - 1 :]

    # Queries.

    def faults(self, now_ns: Instant) -> list[Fault]:
        """Every fault that has not ended, in the order of injection, but those whose id another one has now."""
        return [one.fault for one in self._listed() if one.fault.end_ns > now_ns]

    def active(self, now_ns: Instant) -> list[Fault]:
        """Those of `faults` that are in force."""
        return [one.fault for one in self._listed() if one.window_at(now_ns) is not None]

    def _listed(self) -> Iterator[_Entry]:
        return (one for one in self._entries.values() if self._named.get(one.fault.id) is one)

    def of_kind(self, kind: str) -> list[Fault]:
        """Every fault of a kind in the table, whether or not it has ended or another one has its id."""
        return [entry.fault for entry in self._entries.values() if entry.fault.kind == kind]

    def last_edge_ns(self) -> Instant:
        """The last instant at which a fault is known to begin, end or change; 0 when there is none."""
        edges = (edge for entry in self._entries.values() for edge in entry.fault.windows[-1][:2] if edge != NEVER)
        return max(edges, default=0)

    def get(self, fault_id: str) -> Fault | None:
        """The present state of the fault with this id; None when it is over."""
        entry = self._named.get(fault_id)
        return None if entry is None else entry.fault

    def life(self, node: str, at_ns: Instant) -> Life:
        """The latest life of a node that has begun by an instant, over or not."""
        return next(life for life in reversed(self._of(node)) if life.start_ns <= at_ns)

    def next_life(self, node: str, after_ns: Instant) -> Life | None:
        """The first life that begins after an instant; None when none is planned."""
        return next((life for life in self._of(node) if life.start_ns > after_ns), None)

    def control_cut(self, node: str, at_ns: Instant) -> bool:
        """Whether the node's daemon hears nothing at an instant."""
        return self._state(Spot(node, Aspect.CONTROL), at_ns) is False

    def control_cuts(self, node: str) -> list[tuple[Instant, Instant]]:
        """When the node's daemon hears nothing, as (start, end), in order."""
        entries = self._on.get(Spot(node, Aspect.CONTROL), {}).values()
        found = united(Absence(*window[:2]) for entry in entries for window in entry.fault.windows)
        return [(start_ns, end_ns) for start_ns, end_ns in found]

    def told_whole(self, node: str) -> dict[str, Any]:
        """Op -> all windows of the faults that a daemon is told all at once, not by commands to its core."""
        return {"cut_control": self.control_cuts(node), "slow": self.slow_spells(node)}

    def slow_spells(self, node: str) -> list[tuple[Instant, Instant, int]]:
        """When the node's daemon may use only a part of wall time: (start, end, per million) for each window."""
        spot = Spot(node, Aspect.PACE)
        return [
            (window.start_ns, window.end_ns, made[spot])
            for entry in self._on.get(spot, {}).values()
            for window, made in zip(entry.fault.windows, entry.effects, strict=False)
        ]

    # Scripts.

    def _of(self, node: str) -> list[Life]:
        return self._lives.setdefault(node, [Life(0, NEVER)])

    def _effects(self, fault: Fault) -> list[Effects]:
        if fault.kind in DEADLY:
            return []
        known: list[tuple[Mapping[str, Any], Effects]] = []
        found: list[Effects] = []
        for window in fault.windows:
            same = next((made for figures, made in known if figures == window.figures), None)
            if same is None:
                same = effects(self.topology, fault.kind, fault.struck, window.figures)
                known.append((window.figures, same))
            found.append(same)
        return found

    def _drop(self, entry: _Entry) -> None:
        number, name = entry.number, entry.fault.id
        del self._entries[number]
        if self._named.get(name) is entry:
            del self._named[name]
        for spot in entry.spots():
            del self._on[spot][number]
            if not self._on[spot]:
                del self._on[spot]
        for node in entry.fault.struck if entry.fault.kind in DEADLY else ():
            del self._deadly[node][number]
            if not self._deadly[node]:
                del self._deadly[node]

    def _end_ns(self, fault: Fault, window: Window, at_ns: Instant) -> Instant:
        """When a window ends that is healed at an instant."""
        return min(window.end_ns, at_ns + self._absence_ns) if fault.kind in DEADLY else at_ns

    def _bring_about(self, entry: _Entry, changed: Fault, now_ns: Instant) -> list[str]:
        """Send the nodes what a changed fault changes for them, within the time of the fault."""
        span = _Span(changed.start_ns, max(changed.end_ns + self.topology.link_delay_ns, entry.seen_ns))
        spots: dict[Spot, _Span] = {}
        for spot in entry.spots():
            # A carrier depends on both directions of its cable, so it may change with one of them.
            spots.update(dict.fromkeys((spot, *self._carriers_of(spot)), span))
        concerned: set[str] = set()
        for node in entry.fault.struck if entry.fault.kind in DEADLY else ():
            self._lives[node] = lives_after(self._of(node), self._absences(node), now_ns)
            concerned.add(node)
            for spot in self._spots_of(node):
                # A new life begins whole, so it must be told of every fault on its node, whenever that holds.
                spots[spot] = _ALWAYS if spot.node == node else span
        news: dict[int, tuple[Life, list[Stamped]]] = {}
        for spot in sorted(spots):
            if spot.aspect in TOLD_WHOLE:
                concerned.add(spot.node)
                continue
            for life in self._of(spot.node):
                if life.end_ns > now_ns and (told := self._tell(life, spot, now_ns, spots[spot])):
                    news.setdefault(id(life), (life, []))[1].extend(told)
                    concerned.add(spot.node)
        for life, orders in news.values():
            life.script.extend(sorted(orders, key=lambda one: one.at_ns))
        return sorted(concerned, key=self.topology.node_index)

    def _absences(self, node: str) -> list[Absence]:
        entries = self._deadly.get(node, {}).values()
        return united(Absence(*window[:2]) for entry in entries for window in entry.fault.windows)

    def _spots_of(self, node: str) -> set[Spot]:
        """The spots that a node's lives affect: all of its own, and the carriers of its neighbours."""
        found = {spot for spot in self._on if spot.node == node}
        nic = self._is_nic(node)
        for end in self._ports(node):
            if nic:
                found.add(Spot(node, Aspect.CARRIER, end.port))
            elif end.towards == "nic":
                found.add(Spot(end.peer, Aspect.CARRIER, end.peer_port))
            elif self._trained:
                found |= {Spot(node, Aspect.CARRIER, end.port), Spot(end.peer, Aspect.CARRIER, end.peer_port)}
        return found

    def _carriers_of(self, spot: Spot) -> set[Spot]:
        """The carrier that depends on one direction of a cable; empty between switches."""
        if spot.aspect is not Aspect.IMPAIRMENT:
            return set()
        if self._is_nic(spot.node):
            return {Spot(spot.node, Aspect.CARRIER, spot.port)}
        end = self._ports(spot.node)[spot.port]
        return {Spot(end.peer, Aspect.CARRIER, end.peer_port)} if end.towards == "nic" else set()

    def _tell(self, life: Life, spot: Spot, now_ns: Instant, span: _Span) -> list[Stamped]:
        """Update what a life has been told about a spot within a span; returns the new commands."""
        told = life.told.setdefault(spot, Told())
        told.forget(now_ns)
        first_ns = max(now_ns, life.start_ns) + 1
        within = _Span(max(first_ns, span.first_ns), min(life.end_ns, span.last_ns, NEVER - 1))
        instants = {at_ns for at_ns in self._edges(spot, within) if within.first_ns <= at_ns <= within.last_ns}
        instants.update(at_ns for at_ns in told.instants if within.first_ns <= at_ns <= within.last_ns)
        if life.start_ns >= now_ns:
            instants.add(first_ns)  # for faults that are already in force when the life begins
        orders = []
        for at_ns in sorted(instants):
            state = self._state(spot, at_ns)
            if told.at(at_ns, WHOLE[spot.aspect]) != state:
                told.tell(at_ns, state)
                orders.append(order(spot, state, at_ns))
        return orders

    def _edges(self, spot: Spot, span: _Span) -> Iterator[Instant]:
        """Every instant of a span at which the state of a spot may change; may include others."""
        if spot.aspect is Aspect.CARRIER:
            near, far = self._cable(spot)
            if self._is_nic(spot.node):
                yield from self._edges(near, span)
                yield from self._edges(far, span)
            for entry in self._deadly.get(far.node, {}).values():
                for window in entry.fault.windows:
                    yield from self._seen(entry, window)
            return
        for entry in self._on.get(spot, {}).values():
            if entry.fault.start_ns <= span.last_ns and entry.fault.end_ns >= span.first_ns:
                for start_ns, end_ns, _ in entry.fault.windows:
                    yield start_ns
                    yield end_ns

    def _state(self, spot: Spot, at_ns: Instant) -> Any:
        """The state that the faults give a spot at an instant."""
        if spot.aspect is Aspect.CARRIER:
            near, far = self._cable(spot)
            lit = not self._is_nic(spot.node) or self._state(near, at_ns).up or self._state(far, at_ns).up
            return lit and not self._is_seen_dead(far.node, at_ns)
        biting = [
            (entry, place) for entry in self._on.get(spot, {}).values() if (place := entry.window_at(at_ns)) is not None
        ]
        return composed(spot.aspect, [entry.effects[place][spot] for entry, place in biting])

    def _cable(self, carrier: Spot) -> tuple[Spot, Spot]:
        """Both sending directions of the cable at a port, its own first."""
        if carrier not in self._cables:
            end = self._ports(carrier.node)[carrier.port]
            near = Spot(carrier.node, Aspect.IMPAIRMENT, carrier.port)
            self._cables[carrier] = near, Spot(end.peer, Aspect.IMPAIRMENT, end.peer_port)
        return self._cables[carrier]

    def _is_nic(self, node: str) -> bool:
        return self.topology.parse_node(node).tier == "nic"

    def _ports(self, node: str) -> list[PortLink]:
        if node not in self._ends:
            self._ends[node] = self.topology.ports(node)
        return self._ends[node]

    def _seen(self, entry: _Entry, window: Window) -> tuple[Instant, Instant]:
        """From when until when the neighbours of a dead node see it dead."""
        delay_ns = self.topology.link_delay_ns
        return max(window.start_ns + delay_ns, entry.seen_ns), min(window.end_ns + delay_ns, NEVER)

    def _is_seen_dead(self, node: str, at_ns: Instant) -> bool:
        for entry in self._deadly.get(node, {}).values():
            # The window before may still show, because the news takes one link delay to arrive.
            place = bisect_right(entry.fault.windows, at_ns, key=_start_ns)
            for window in entry.fault.windows[max(0, place - 2) : place]:
                start_ns, end_ns = self._seen(entry, window)
                if start_ns <= at_ns < end_ns:
                    return True
        return False


def _start_ns(window: Window) -> Instant:
    return window.start_ns


def _passed(at_ns: Instant, now_ns: Instant) -> str:
    return f"{at_ns:,} ns has passed: the fabric has reached {now_ns:,} ns (without an instant: as soon as possible)"
