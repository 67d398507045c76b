"""Measures that are read from looks: increases of counters between two looks, and gauges at one look.

Owns the arithmetic over cumulative counters and gauges. These measures are only as fine as the looks: a window reaches
from the look at or before its start to the one at or after its end. A bin reaches from look to look, so that nothing is
counted twice.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from mrcfabric.units import Instant
from orchestrator.measures.measure import Figure, Question, matching
from orchestrator.measures.recording import RATES, WINDOWS, Look, Recording

SWITCHES = "switches"
"""The name of all switches together, used where NICs have names."""
Cells: TypeAlias = dict[str, int]
"""One look as a measure sees it: name -> figure, "" for all together."""
Reading: TypeAlias = Callable[[Look], Cells]


def look_at(recording: Recording, at_ns: Instant) -> Look | None:
    """The newest look at or before an instant."""
    place = bisect_right(recording.looks, at_ns, key=lambda look: look.at_ns)
    return recording.looks[place - 1] if place else None


def look_after(recording: Recording, at_ns: Instant) -> Look | None:
    """The oldest look at or after an instant; the newest of all if there is none."""
    place = bisect_left(recording.looks, at_ns, key=lambda look: look.at_ns)
    return recording.looks[min(place, len(recording.looks) - 1)] if recording.looks else None


def counted(reading: Reading) -> Callable[[Question], list[Figure]]:
    """Measures how much a cumulative counter grew in every window."""
    return partial(_counted, reading)


def _counted(reading: Reading, question: Question) -> list[Figure]:
    found = []
    after: Cells = {}
    last = None
    for window in question.windows:
        first = look_at(question.recording, window.start_ns)
        # Bins lie end to end: the reading at the end of one is that at the start of the next.
        before = {} if first is None else after if first is last else reading(first)
        last = (look_at if question.binned else look_after)(question.recording, window.end_ns)
        if last is None:
            continue
        after = reading(last)
        start = window.start_ns if first is None else first.at_ns
        found += [
            Figure(after.get(name, 0) - before.get(name, 0), name, start, last.at_ns)
            for name in matching(question.of, after)
        ]
    return found


def standing(reading: Reading) -> Callable[[Question], list[Figure]]:
    """Measures a gauge at the end of every window."""
    return partial(_standing, reading)


def _standing(reading: Reading, question: Question) -> list[Figure]:
    found = []
    for window in question.windows:
        look = look_at(question.recording, window.end_ns)
        if look is not None:
            cells = reading(look)
            found += [Figure(cells.get(name, 0), name, look.at_ns, look.at_ns) for name in matching(question.of, cells)]
    return found


def levels(reading: Reading) -> Callable[[Question], list[Figure]]:
    """Measures a gauge at every look of every window; for a window without one, at the look before its end."""
    return partial(_levels, reading)


def _levels(reading: Reading, question: Question) -> list[Figure]:
    found = []
    for window in question.windows:
        looks = [look for look in question.recording.looks if window.start_ns <= look.at_ns <= window.end_ns]
        if not looks and (before := look_at(question.recording, window.end_ns)) is not None:
            looks = [before]
        for look in looks:
            cells = reading(look)
            span = window if question.binned else (look.at_ns, look.at_ns)
            # A look at which nobody has such a gauge tells nothing.
            found += [Figure(cells[name], name, *span) for name in matching(question.of, cells) if name in cells]
    return found


def windows(look: Look) -> Cells:
    """Congestion windows and bytes in flight: by NIC and name (`h003:cwnd`); by name alone, the sum or the least."""
    cells: Cells = {"": 0, **dict.fromkeys(WINDOWS, 0)}
    seen = {nic: told.windows for nic, told in look.nics.items() if told.windows}
    for name in WINDOWS:
        values = [told[name] for told in seen.values()]
        if values:
            cells[name] = min(values) if name == "cwnd_min" else sum(values)
        cells |= {f"{nic}:{name}": told[name] for nic, told in seen.items()}
    return cells


def rates(look: Look) -> Cells:
    """What RC QPs may send: the mean ("") and the least (`min`), over all NICs that have such QPs and of each NIC."""
    seen = {nic: told.rates for nic, told in look.nics.items() if told.rates}
    if not seen:
        return {}
    mean, least = RATES
    cells = {"": sum(told[mean] for told in seen.values()) // len(seen)}
    cells[least] = min(told[least] for told in seen.values())
    for nic, told in seen.items():
        cells |= {nic: told[mean], f"{nic}:{least}": told[least]}
    return cells


def queues(look: Look) -> Cells:
    """Bytes waiting in the fullest port: of the whole fabric, and of each node."""
    return {"": max(look.queues.values(), default=0), **look.queues}


def queue_peaks(look: Look) -> Cells:
    """The most bytes that ever waited in a port: of the whole fabric, and of each node."""
    return {"": max(look.queue_peaks.values(), default=0), **look.queue_peaks}


def of_nics(*counters: str) -> Reading:
    """Reads a plain counter, or the sum of several: of all NICs, and of each."""

    def read(look: Look) -> Cells:
        each = {name: sum(nic.counts.get(counter, 0) for counter in counters) for name, nic in look.nics.items()}
        return {"": sum(each.values()), **each}

    return read


def of_all(counter: str) -> Reading:
    """Reads a plain counter: of all NICs and switches together, and of each NIC."""

    def read(look: Look) -> Cells:
        each = {name: nic.counts.get(counter, 0) for name, nic in look.nics.items()}
        return {"": look.switches.get(counter, 0) + sum(each.values()), **each}

    return read


def by_label(prefix: str, labels: tuple[str, ...] = (), *, switches: bool = False) -> Reading:
    """Reads a counter with labels (`retransmits.gap`): in all, of a NIC, of a label, of one NIC's label (`h003:gap`).

    With `switches` those count too, as a node called `switches`. Labels in `labels` are present even when their count
    is 0.
    """

    return partial(_by_label, prefix, labels, switches)


def _by_label(prefix: str, labels: tuple[str, ...], switches: bool, look: Look) -> Cells:
    cells: Cells = {"": 0, **dict.fromkeys(labels, 0)}
    nodes = [(name, nic.counts) for name, nic in look.nics.items()]
    if switches:
        nodes.append((SWITCHES, look.switches))
    for node, counts in nodes:
        cells.setdefault(node, 0)
        for key, count in counts.items():
            if key.startswith(prefix):
                label = key[len(prefix) :]
                for name in ("", node, label, f"{node}:{label}"):
                    cells[name] = cells.get(name, 0) + count
    return cells


def of_switches(counter: str) -> Reading:
    """Reads a counter of all switches together."""
    return lambda look: {"": look.switches.get(counter, 0)}


def ev_states(look: Look) -> Cells:
    """EVs by state: in the fabric, of a NIC (`h003:assumed_bad`), of a plane (`5:assumed_bad`)."""
    cells: Cells = {"": 0}
    for nic, seen in look.nics.items():
        for plane, states in enumerate(seen.evs):
            for state, count in states.items():
                for name in ("", state, f"{nic}:{state}", f"{plane}:{state}"):
                    cells[name] = cells.get(name, 0) + count
    return cells


def steps(look: Look) -> Cells:
    """Steps that every rank has finished, of all programs and of each."""
    return {"": sum(look.steps.values()), **look.steps}


def ports_down(look: Look) -> Cells:
    """NIC ports without carrier: of all NICs, of each, and of the planes."""
    cells: Cells = {"": 0}
    for nic, seen in look.nics.items():
        for plane, up in enumerate(seen.ports_up):
            for name in ("", nic, str(plane)):
                cells[name] = cells.get(name, 0) + (not up)
    return cells


def received(look: Look) -> Cells:
    """Bytes of whole messages received: of all flows, of a program, of a flow."""
    cells: Cells = {"": 0}
    for flow, size in look.flows.items():
        for name in ("", flow.partition(":")[0], flow):
            cells[name] = cells.get(name, 0) + size
    return cells
