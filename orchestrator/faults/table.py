"""Which faults are in force when, and which commands to which daemons bring that about.

Pure: a `FaultTable` is told which faults are injected and healed, and answers with the scripts of the nodes' lives:
stamped commands, told long before their instants, so that the end of a fault needs nobody. The agent sends them over
the control channel, the simulator hands them to the cores; both get the same ones in the same order.

At every instant the state of a spot follows from the faults that bite there then (`effects.composed`). The table
compares it with what a node has been told for that instant, and tells it anew where the two differ: faults may overlap,
and be injected, healed and forgotten in any order. A NIC's port has carrier while its cable is not dark in both
directions and the T0 at its other end lives, which shows one link delay later. A switch sees nothing of its
neighbours (MRC 1.0 5: a dead link means silence).
"""

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
"""Faults of one fabric that are not over; deaths that have happened already are taken beyond that."""


@dataclass(slots=True, eq=False)
class _Entry:
    """A fault that is not over."""

    fault: Fault
    effects: list[Effects]
    """Per window, those with the same figures share one; empty for a fault that lets nodes die."""
    seen_ns: Instant
    """Neighbours cannot know of it before."""

    def window_at(self, at_ns: Instant) -> int | None:
        """The number of the window that bites at an instant."""
        windows = self.fault.windows
        if at_ns < windows[0].start_ns:
            return None
        place = bisect_right(windows, at_ns, key=_start_ns) - 1
        return place if place >= 0 and at_ns < windows[place].end_ns else None

    def spots(self) -> set[Spot]:
        """What it affects."""
        return {spot for state in {id(one): one for one in self.effects}.values() for spot in state}


class _Span(NamedTuple):
    """A time, both ends included."""

    first_ns: Instant
    last_ns: Instant


_ALWAYS: Final = _Span(0, NEVER - 1)


class FaultTable:
    """The faults of one fabric and the lives of its nodes.

    `now_ns` in what follows: everything up to it has happened; nothing is told for it or before it.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._absence_ns = absence_ns_min(topology)
        self._entries: dict[str, _Entry] = {}
        self._on: dict[Spot, dict[str, _Entry]] = {}
        """Faults by what they affect, in the order of injection."""
        self._deadly: dict[str, dict[str, _Entry]] = {}
        """Faults by the node that dies of them."""
        self._lives: dict[str, list[Life]] = {}
        self._cables: dict[Spot, tuple[Spot, Spot]] = {}
        self._ends: dict[str, list[PortLink]] = {}

    # Changes. They return the nodes whose scripts or lives are concerned.

    def add(self, fault: Fault, now_ns: Instant, *, seen_ns: Instant = 0) -> list[str]:
        """Take a fault in.

        `seen_ns`: it is a death that has happened already, and neighbours can hear of it from then on. Raises
        ConfigError for a fault that makes no sense; RefusedError for one that comes too late, or is one too many.
        """
        self.forget(now_ns)
        check(self.topology, fault)
        if fault.id in self._entries:
            raise RefusedError(f"there is a fault {shown(fault.id)} already")
        if len(self._entries) >= FAULTS_MAX and not seen_ns:
            raise RefusedError(f"{FAULTS_MAX} faults are not over yet; heal some first")
        if fault.start_ns <= now_ns and not seen_ns:
            raise RefusedError(f"{fault.start_ns} ns has passed: the fabric has reached {now_ns} ns")
        entry = _Entry(fault, self._effects(fault), seen_ns)
        self._entries[fault.id] = entry
        for spot in entry.spots():
            self._on.setdefault(spot, {})[fault.id] = entry
        if fault.kind in DEADLY:
            for node in fault.struck:
                self._deadly.setdefault(node, {})[fault.id] = entry
        return self._bring_about(entry, fault, now_ns)

    def heal(self, fault_id: str, at_ns: Instant, now_ns: Instant) -> list[str]:
        """End a fault at an instant. A node that is away comes back `checks.absence_ns_min` later: its neighbours need
        that long to hold back what is meant for its return.

        Raises RefusedError for a fault that is not there or is over, and for an instant that has passed.
        """
        if at_ns <= now_ns:
            raise RefusedError(f"{at_ns} ns has passed: the fabric has reached {now_ns} ns")
        self.forget(now_ns)
        entry = self._entries.get(fault_id)
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
        return self._bring_about(entry, former, now_ns)

    def forget(self, now_ns: Instant) -> None:
        """Let go of what is over and no longer shows."""
        echo_ns = self.topology.link_delay_ns
        for entry in [one for one in self._entries.values() if one.fault.end_ns + echo_ns <= now_ns]:
            self._drop(entry)
        for node, lives in self._lives.items():
            begun = [life for life in lives if life.start_ns <= now_ns]
            self._lives[node] = lives[len(begun) - 1 :]

    # What there is.

    def faults(self, now_ns: Instant) -> list[Fault]:
        """Every fault that is not over, in the order of injection."""
        return [entry.fault for entry in self._entries.values() if entry.fault.end_ns > now_ns]

    def active(self, now_ns: Instant) -> list[Fault]:
        """Those of them that bite."""
        return [entry.fault for entry in self._entries.values() if entry.window_at(now_ns) is not None]

    def last_edge_ns(self) -> Instant:
        """The last instant at which a fault is known to begin, to end or to change; 0 when there is none."""
        edges = (edge for entry in self._entries.values() for edge in entry.fault.windows[-1][:2] if edge != NEVER)
        return max(edges, default=0)

    def get(self, fault_id: str) -> Fault | None:
        """A fault as it stands, until it is over."""
        entry = self._entries.get(fault_id)
        return None if entry is None else entry.fault

    def life(self, node: str, at_ns: Instant) -> Life:
        """The life of a node that has begun by then, over or not."""
        return next(life for life in reversed(self._of(node)) if life.start_ns <= at_ns)

    def next_life(self, node: str, after_ns: Instant) -> Life | None:
        """The first life that begins later than that; None when none is to come."""
        return next((life for life in self._of(node) if life.start_ns > after_ns), None)

    def control_cut(self, node: str, at_ns: Instant) -> bool:
        """Whether the node's daemon hears nobody at an instant."""
        return self._state(Spot(node, Aspect.CONTROL), at_ns) is False

    def control_cuts(self, node: str) -> list[tuple[Instant, Instant]]:
        """When the node's daemon hears nobody, as (start, end), in order."""
        entries = self._on.get(Spot(node, Aspect.CONTROL), {}).values()
        found = united(Absence(*window[:2]) for entry in entries for window in entry.fault.windows)
        return [(start_ns, end_ns) for start_ns, end_ns in found]

    def told_whole(self, node: str) -> dict[str, Any]:
        """Op -> all windows of the faults that a daemon is told of as a whole, not by commands to its core."""
        return {"cut_control": self.control_cuts(node), "slow": self.slow_spells(node)}

    def slow_spells(self, node: str) -> list[tuple[Instant, Instant, int]]:
        """When the node's daemon may use only a part of wall time, as (start, end, per million), faults one by one."""
        spot = Spot(node, Aspect.PACE)
        return [
            (window.start_ns, window.end_ns, made[spot])
            for entry in self._on.get(spot, {}).values()
            for window, made in zip(entry.fault.windows, entry.effects, strict=False)
        ]

    # How it comes about.

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
        name = entry.fault.id
        del self._entries[name]
        for spot in entry.spots():
            del self._on[spot][name]
            if not self._on[spot]:
                del self._on[spot]
        for node in entry.fault.struck if entry.fault.kind in DEADLY else ():
            del self._deadly[node][name]
            if not self._deadly[node]:
                del self._deadly[node]

    def _end_ns(self, fault: Fault, window: Window, at_ns: Instant) -> Instant:
        """When a window that is healed at an instant ends."""
        return min(window.end_ns, at_ns + self._absence_ns) if fault.kind in DEADLY else at_ns

    def _bring_about(self, entry: _Entry, changed: Fault, now_ns: Instant) -> list[str]:
        """Tell everybody what has changed with a fault; it concerns no other time than the fault's own."""
        span = _Span(changed.start_ns, max(changed.end_ns + self.topology.link_delay_ns, entry.seen_ns))
        spots: dict[Spot, _Span] = {}
        for spot in entry.spots():
            spots.update(dict.fromkeys((spot, *self._carriers_of(spot)), span))
        concerned: set[str] = set()
        for node in entry.fault.struck if entry.fault.kind in DEADLY else ():
            self._lives[node] = lives_after(self._of(node), self._absences(node), now_ns)
            concerned.add(node)
            for spot in self._spots_of(node):
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
        """What follows from the lives of a node: all that it must be told, and the carrier of NICs beside it."""
        found = {spot for spot in self._on if spot.node == node}
        nic = self.topology.parse_node(node).tier == "nic"
        for end in self._ports(node):
            if nic:
                found.add(Spot(node, Aspect.CARRIER, end.port))
            elif end.towards == "nic":
                found.add(Spot(end.peer, Aspect.CARRIER, end.peer_port))
        return found

    def _carriers_of(self, spot: Spot) -> set[Spot]:
        """The carrier that depends on a direction of a cable."""
        if spot.aspect is not Aspect.IMPAIRMENT:
            return set()
        if self.topology.parse_node(spot.node).tier == "nic":
            return {Spot(spot.node, Aspect.CARRIER, spot.port)}
        end = self._ports(spot.node)[spot.port]
        return {Spot(end.peer, Aspect.CARRIER, end.peer_port)} if end.towards == "nic" else set()

    def _tell(self, life: Life, spot: Spot, now_ns: Instant, span: _Span) -> list[Stamped]:
        """What a life must be told of a spot for a time that it has not been told."""
        told = life.told.setdefault(spot, Told())
        told.forget(now_ns)
        first_ns = max(now_ns, life.start_ns) + 1
        within = _Span(max(first_ns, span.first_ns), min(life.end_ns, span.last_ns, NEVER - 1))
        instants = {at_ns for at_ns in self._edges(spot, within) if within.first_ns <= at_ns <= within.last_ns}
        instants.update(at_ns for at_ns in told.instants if within.first_ns <= at_ns <= within.last_ns)
        if life.start_ns >= now_ns:
            instants.add(first_ns)  # what is already in force when it begins
        orders = []
        for at_ns in sorted(instants):
            state = self._state(spot, at_ns)
            if told.at(at_ns, WHOLE[spot.aspect]) != state:
                told.tell(at_ns, state)
                orders.append(order(spot, state, at_ns))
        return orders

    def _edges(self, spot: Spot, span: _Span) -> Iterator[Instant]:
        """Every instant of a time at which the state of a spot may change, and perhaps others."""
        if spot.aspect is Aspect.CARRIER:
            near, far = self._cable(spot)
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
        """What the faults make of a spot at an instant."""
        if spot.aspect is Aspect.CARRIER:
            near, far = self._cable(spot)
            lit = self._state(near, at_ns).up or self._state(far, at_ns).up
            return lit and not self._is_seen_dead(far.node, at_ns)
        biting = [
            (entry, place) for entry in self._on.get(spot, {}).values() if (place := entry.window_at(at_ns)) is not None
        ]
        return composed(spot.aspect, [entry.effects[place][spot] for entry, place in biting])

    def _cable(self, carrier: Spot) -> tuple[Spot, Spot]:
        """Both sending directions of the cable at a NIC's port, the NIC's own first."""
        if carrier not in self._cables:
            end = self._ports(carrier.node)[carrier.port]
            near = Spot(carrier.node, Aspect.IMPAIRMENT, carrier.port)
            self._cables[carrier] = near, Spot(end.peer, Aspect.IMPAIRMENT, end.peer_port)
        return self._cables[carrier]

    def _ports(self, node: str) -> list[PortLink]:
        if node not in self._ends:
            self._ends[node] = self.topology.ports(node)
        return self._ends[node]

    def _seen(self, entry: _Entry, window: Window) -> tuple[Instant, Instant]:
        """From when until when the neighbours of a dead node know."""
        delay_ns = self.topology.link_delay_ns
        return max(window.start_ns + delay_ns, entry.seen_ns), min(window.end_ns + delay_ns, NEVER)

    def _is_seen_dead(self, node: str, at_ns: Instant) -> bool:
        for entry in self._deadly.get(node, {}).values():
            # One window further back may still show: the news travel for one link delay.
            place = bisect_right(entry.fault.windows, at_ns, key=_start_ns)
            for window in entry.fault.windows[max(0, place - 2) : place]:
                start_ns, end_ns = self._seen(entry, window)
                if start_ns <= at_ns < end_ns:
                    return True
        return False


def _start_ns(window: Window) -> Instant:
    return window.start_ns
