"""Making a failing case small: leave things out as long as it fails for the same reason.

Tries to drop mishaps, flows, messages, unruly links and settings, one at a time, halves first; keeps what still breaks
the same invariant. The smaller case is no longer its seed's, so it is shown as data.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final

from mrcfabric.errors import ConfigError
from orchestrator.planning.plan import check
from swarm.case import Case
from swarm.run import Outcome, run

RUNS_MAX: Final = 150
"""Runs spent on one case."""


def kind_of(outcome: Outcome) -> str:
    """What makes two failures the same: the invariant, or the kind of a core's error."""
    if outcome.violation is not None:
        return outcome.violation.invariant
    return type(outcome.crash).__name__ if outcome.crash is not None else ""


def shrink(case: Case, runs_max: int = RUNS_MAX, judge: Callable[[Case], Outcome] = run) -> Case:
    """The smallest case found that fails as `case` does; `case` itself when it does not fail."""
    wanted = kind_of(judge(case))
    if not wanted:
        return case
    left = runs_max
    smaller = True
    while smaller and left > 0:
        smaller = False
        for candidate in _smaller(case):
            left -= 1
            if left < 0:
                break
            if kind_of(judge(candidate)) == wanted:
                case, smaller = candidate, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Cases with something left out, much before little."""
    for faults in _without(case.faults):
        yield replace(case, faults=faults)
    for index in range(len(case.flows)):
        for side in ("forth", "back"):
            if getattr(case.flows[index], side) and _others(case, index, side):
                yield _with_writes(case, index, side, [])
    for index, flow in enumerate(case.flows):
        for side in ("forth", "back"):
            for writes in _without(getattr(flow, side)):
                if writes:
                    yield _with_writes(case, index, side, writes)
    if case.unruly:
        yield replace(case, copies_ppm=0, delays_ppm=0, harms_ppm=0)
    if case.profile:
        yield replace(case, profile={})
    if any(flow.terms for flow in case.flows):
        yield replace(case, flows=[replace(flow, terms={}) for flow in case.flows])
    yield from _fewer_settings(case)


def _without(items: list[Any]) -> Iterator[list[Any]]:
    """The list without its halves, its quarters, ... its single items."""
    size = len(items)
    while size:
        for start in range(0, len(items), size):
            yield items[:start] + items[start + size :]
        size //= 2


def _others(case: Case, index: int, side: str) -> bool:
    """Something is written besides this."""
    return any(
        getattr(flow, way)
        for number, flow in enumerate(case.flows)
        for way in ("forth", "back")
        if (number, way) != (index, side)
    )


def _with_writes(case: Case, index: int, side: str, writes: list[Any]) -> Case:
    """Numbers of flows stay, for mishaps name them."""
    flows = deepcopy(case.flows)
    setattr(flows[index], side, deepcopy(writes))
    return replace(case, flows=flows)


def _fewer_settings(case: Case) -> Iterator[Case]:
    plain = case.topology.to_dict()
    for group in ("nic", "switch"):
        names = list(plain[group])
        for kept in _without(names):
            settings = {name: plain[group][name] for name in kept}
            topology = case.topology.from_dict({**plain, group: settings})
            try:
                check(topology)
            except ConfigError:
                continue
            yield replace(case, topology=topology)
