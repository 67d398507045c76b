"""Checks expectations against the table of measures: what can never be judged is refused with the reason.

Owns the refusals. `measures` has the table; `judge` compares what was measured with bounds.
"""

from collections.abc import Collection
from math import isfinite
from typing import get_args

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.measures import counts
from orchestrator.measures.expectation import Expectation
from orchestrator.measures.measure import Measure, Of, Reduce, Unit, matching
from orchestrator.measures.measures import find


def check(
    asked: Expectation, where: str, topology: Topology, programs: Collection[str], faults: Collection[str]
) -> None:
    """Raises ConfigError for an expectation that can never be judged: unknown measure, meaningless name, no bounds.

    `where` names the expectation in the message; `programs` and `faults` are the names in the scenario.
    """
    measure = find(asked.measure, where)
    if asked.at_least is None and asked.at_most is None:
        raise ConfigError(where, f"{asked.measure} has no bound", "at_least, at_most, or both")
    _check_numbers(asked, where)
    if asked.at_least is not None and asked.at_most is not None and asked.at_least > asked.at_most:
        raise ConfigError(where, f"nothing is {_bounds(asked, measure)}")
    _check_reach(asked, measure, where)
    averaged = asked.measure == "recovery_rtts"
    if asked.bin_ns is not None and not measure.binned and not averaged:
        raise ConfigError(where, f"{asked.measure} cannot be told bin by bin")
    if asked.bin_ns is not None and asked.bin_ns <= 0:
        raise ConfigError(where, "a bin has a width above 0")
    if asked.relative_to is not None and asked.relative_to not in measure.relative:
        known = " or ".join(measure.relative) or "to nothing"
        raise ConfigError(where, f"{asked.measure} is not told relative to {asked.relative_to}", known)
    if asked.reduce is not None and asked.reduce not in get_args(Reduce):
        raise ConfigError(where, f"figures cannot be reduced to {asked.reduce!r}", ", ".join(get_args(Reduce)))
    span = asked.during
    if span.kind in ("fault", "after") and span.fault and span.fault not in faults:
        raise ConfigError(where, f"no fault is called {span.fault!r}", f"faults are {', '.join(faults) or 'none'}")
    if span.end_ns is not None and span.end_ns <= span.start_ns:
        raise ConfigError(where, "the span ends before it begins")
    _check_of(asked, measure, where, topology, programs)


def _check_numbers(asked: Expectation, where: str) -> None:
    for key, bound in (("at_least", asked.at_least), ("at_most", asked.at_most)):
        if bound is None:
            continue
        if not isinstance(bound, int | float) or isinstance(bound, bool) or not isfinite(bound):
            raise ConfigError(where, f"{key}: {bound!r} is no bound", "a finite number")


def _check_reach(asked: Expectation, measure: Measure, where: str) -> None:
    """Raises ConfigError for a bound that no figure can meet: no figure is below 0, and no part more than the whole."""
    if asked.at_most is not None and asked.at_most < 0:
        raise ConfigError(where, f"{asked.measure} is never at most {asked.at_most:.6g}", "no figure is below 0")
    # Sums of shares exceed 1, and so does goodput in a bin of few packets: each counts where its last bit arrives.
    line = (not asked.relative_to and measure.relative_default == "line") or asked.relative_to == "line"
    capped = (line and asked.bin_ns is None) or (measure.unit is Unit.SHARE and not asked.relative_to)
    summed = (asked.reduce or measure.reduce) == "sum"
    if capped and not summed and asked.at_least is not None and asked.at_least > 1:
        raise ConfigError(
            where, f"{asked.measure} is never at least {asked.at_least:.6g}", "a share is at most 1, as 90%"
        )


def _bounds(asked: Expectation, measure: Measure) -> str:
    """Both bounds with their unit, as they were converted: a file may have base RTTs where the measure has ns."""
    assert asked.at_least is not None
    assert asked.at_most is not None
    if asked.relative_to or measure.relative_default or measure.unit is Unit.SHARE:
        return f"at least {asked.at_least:.6g} and at most {asked.at_most:.6g} (as shares)"
    unit = "" if measure.unit is Unit.COUNT else f" {measure.unit}"
    return f"at least {asked.at_least:.15g}{unit} and at most {asked.at_most:.15g}{unit}"


def _check_of(asked: Expectation, measure: Measure, where: str, topology: Topology, programs: Collection[str]) -> None:
    if measure.of_needed and not asked.of:
        raise ConfigError(where, f"{asked.measure} needs to know of what", _spelling(measure))
    if asked.of and not measure.of:
        raise ConfigError(where, f"{asked.measure} is told of all together only")
    for pattern in asked.of:
        sorts = _meant(pattern, measure, topology, programs)
        if not sorts:
            raise ConfigError(where, f"{asked.measure} of {pattern!r} is the measure of nothing", _spelling(measure))
        if len(sorts) > 1:
            raise ConfigError(
                where, f"{pattern!r} may mean a {' or a '.join(sorts)}", "which of them is to be told apart"
            )


def _meant(pattern: str, measure: Measure, topology: Topology, programs: Collection[str]) -> list[Of]:
    """The kinds of things, among those that the measure can be taken of, that a name or pattern means."""
    names: dict[Of, list[str]] = {
        Of.NIC: [*topology.nic_names()],
        Of.PLANE: [str(plane) for plane in range(topology.planes)],
        Of.PROGRAM: list(programs),
        Of.LABEL: list(measure.labels),
        Of.NODE: list(topology.node_names()),
    }
    if Of.LABEL in measure.of:
        names[Of.NIC].append(counts.SWITCHES)
    first, colon, rest = pattern.partition(":")
    if not colon:
        return [one for one in measure.of if matching((pattern,), names.get(one, ()))]
    if Of.FLOW in measure.of and rest.count(">") == 1 and matching((first,), programs):
        return [Of.FLOW]
    nodes = [name for one in (Of.NIC, Of.PLANE) if one in measure.of for name in names[one]]
    return [Of.LABEL] if matching((first,), nodes) and matching((rest,), measure.labels) else []


def _spelling(measure: Measure) -> str:
    examples = {
        Of.NIC: "a NIC as h003",
        Of.PLANE: "a plane as 5",
        Of.PROGRAM: "a workload by its name",
        Of.FLOW: "a flow as train:h001>h000",
        Of.NODE: "a node as p0-t1-2",
        Of.LABEL: f"one of {', '.join(measure.labels)}",
    }
    return "of " + ", ".join(examples[one] for one in measure.of)
