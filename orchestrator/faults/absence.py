"""Reads from the faults of a run which nodes cannot be asked at an instant, and which nodes are about to die.

Pure. Both backends must agree on this, so they ask the timetable which nodes live, and not the processes. The rest of
`orchestrator.faults` says what the faults do.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from mrcfabric.units import NEVER, Instant
from orchestrator.faults.checks import DEADLY
from orchestrator.faults.fault import Fault

DEAFENING: Final = frozenset({"control_cut"})
"""Kinds whose targets live but cannot be asked."""


def dead(faults: Iterable[Fault], at_ns: Instant) -> frozenset[str]:
    """Nodes that are dead at an instant."""
    return _hit(faults, DEADLY, at_ns)


def deaf(faults: Iterable[Fault], at_ns: Instant) -> frozenset[str]:
    """Nodes that hear nothing on their control channel at an instant."""
    return _hit(faults, DEAFENING, at_ns)


def _hit(faults: Iterable[Fault], kinds: frozenset[str], at_ns: Instant) -> frozenset[str]:
    return frozenset(
        node for fault in faults if fault.kind in kinds and fault.at(at_ns) is not None for node in fault.struck
    )


def partings(faults: Iterable[Fault], after_ns: Instant, until_ns: Instant) -> list[tuple[Instant, tuple[str, ...]]]:
    """(instant, nodes) of every moment in (after, until] at which nodes die or stop hearing, in time order."""
    found: dict[Instant, list[str]] = {}
    for at_ns, node in _partings(faults):
        if after_ns < at_ns <= until_ns:
            found.setdefault(at_ns, []).append(node)
    return [(at_ns, tuple(sorted(set(found[at_ns])))) for at_ns in sorted(found)]


def edges(faults: Iterable[Fault], after_ns: Instant, until_ns: Instant) -> list[tuple[Instant, tuple[Fault, ...]]]:
    """(instant, faults) of every moment in (after, until] at which nodes die of faults or return, in time order.

    A dead node's neighbours count the packets that meet it. They do not know when it died, so they are asked then.
    """
    found: dict[Instant, list[Fault]] = {}
    for fault in faults:
        if fault.kind in DEADLY:
            for at_ns in {edge for window in fault.windows for edge in window[:2]}:
                if after_ns < at_ns <= until_ns:
                    found.setdefault(at_ns, []).append(fault)
    return [(at_ns, tuple(found[at_ns])) for at_ns in sorted(found)]


def _partings(faults: Iterable[Fault]) -> Iterator[tuple[Instant, str]]:
    for fault in faults:
        if fault.kind in DEADLY | DEAFENING:
            for window in fault.windows:
                for node in fault.struck:
                    yield window.start_ns, node


def to_come(fault: Fault, at_ns: Instant) -> bool:
    """Whether a fault will still begin or end by itself."""
    return fault.start_ns > at_ns or at_ns < fault.end_ns < NEVER
