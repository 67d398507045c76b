"""What must hold, and what starts a fault: entries of `expect`, `steady_state` and `when`.

Owns their words and the units of their bounds. `orchestrator.measures.measures` has the measures and their checks;
`orchestrator.measures.judge` judges a recording.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from mrcfabric.units import Instant
from orchestrator.measures.checking import check
from orchestrator.measures.expectation import Expectation, Span
from orchestrator.measures.judge import met
from orchestrator.measures.measure import Measure, Unit
from orchestrator.measures.measures import find
from orchestrator.measures.recording import Recording
from orchestrator.measures.spans import recorded_ns
from orchestrator.scenario.method import Site
from orchestrator.scenario.model import Condition, Expect
from orchestrator.yamlfile.document import Spot
from orchestrator.yamlfile.spelling import amount, share

ANY_FAULT: Final = "faults"
"""In `during` and `after`: any fault."""


def expectation_of(
    site: Site, spot: Spot, entry: Expect, programs: Collection[str], faults: Collection[str], *, steady: bool = False
) -> Expectation:
    """One line of what must hold; `steady`: before the first fault. Raises ConfigError."""
    measure = find(entry.measure, spot.document.where((*spot.path, "measure")))
    span = _steady_span(site, spot, entry) if steady else _span(site, spot, entry)
    if (entry.relative_to == "baseline" or span.kind in ("fault", "after")) and not faults:
        key = "relative_to" if entry.relative_to == "baseline" else span.kind.replace("fault", "during")
        raise (spot / key).wrong("there is no fault in this scenario", "an entry of method")
    relative = entry.relative_to or measure.relative_default
    asked = Expectation(
        entry.name or _title(entry, steady=steady),
        entry.measure,
        _names(entry.of),
        span,
        None if entry.bin is None else site.scale.length(entry.bin),
        entry.reduce,
        entry.per_name,
        _bound(site, spot / "at_least", entry.at_least, measure, relative),
        _bound(site, spot / "at_most", entry.at_most, measure, relative),
        entry.relative_to,
    )
    check(asked, spot.document.where(spot.path), site.topology, programs, faults)
    return asked


def condition_of(
    site: Site,
    spot: Spot,
    entry: Condition,
    asked_from_ns: Instant,
    programs: Mapping[str, Instant],
    faults: Collection[str],
) -> tuple[str, Callable[[Recording], bool]]:
    """A condition in words, and a function that tests it on a recording. Raises ConfigError.

    Before `asked_from_ns` the condition never holds. `programs`: when each begins. A measure of their work is not taken
    of a time in which none of them had begun.
    """
    measure = find(entry.measure, spot.document.where((*spot.path, "measure")))
    over_ns = site.length(entry.over)
    if over_ns == 0:
        raise (spot / "over").wrong("looks at no time at all")
    if over_ns is None and measure.of_work and measure.binned:
        raise spot.wrong(f"{entry.measure} of how long?", "over: 10rtt")
    relative = entry.relative_to or measure.relative_default
    asked = Expectation(
        "condition",
        entry.measure,
        _names(entry.of),
        reduce=entry.reduce,
        at_least=_bound(site, spot / "at_least", entry.at_least, measure, relative),
        at_most=_bound(site, spot / "at_most", entry.at_most, measure, relative),
        relative_to=entry.relative_to,
    )
    check(asked, spot.document.where(spot.path), site.topology, programs, faults)
    if measure.of_work and over_ns is not None:
        begins = [programs[name] for name in asked.of if name in programs] or list(programs.values())
        asked_from_ns = max(asked_from_ns, min(begins, default=0) + over_ns)
    return _condition_text(entry), _Holds(asked, over_ns, asked_from_ns)


@dataclass(frozen=True, slots=True)
class _Holds:
    """Tests a condition on a recording. An object, because a plan must be pickled for a run in another process."""

    asked: Expectation
    over_ns: int | None
    asked_from_ns: Instant

    def __call__(self, recording: Recording) -> bool:
        return recorded_ns(recording) >= self.asked_from_ns and met(self.asked, recording, self.over_ns)


def _names(of: str | list[str] | None) -> tuple[str, ...]:
    if of is None:
        return ()
    return (of,) if isinstance(of, str) else tuple(of)


# Spans.


def _span(site: Site, spot: Spot, entry: Expect) -> Span:
    given = [key for key, value in (("during", entry.during), ("after", entry.after)) if value is not None]
    bounds = [key for key, value in (("from", entry.start), ("to", entry.end)) if value is not None]
    if len(given) + bool(bounds) > 1:
        raise (spot / (given + bounds)[-1]).wrong(
            f"cannot stand beside {given[0]}", "one of during, after, from and to"
        )
    skip_ns = site.scale.length(entry.skip)
    if bounds:
        if entry.skip:
            raise (spot / "skip").wrong("says nothing beside from and to")
        return Span("interval", "", site.length(entry.start) or 0, site.length(entry.end))
    if entry.during is not None:
        return Span("fault", "" if entry.during == ANY_FAULT else entry.during, skip_ns)
    if entry.after is not None:
        return Span("after", "" if entry.after == ANY_FAULT else entry.after, skip_ns)
    return Span("run", "", skip_ns)


def _steady_span(site: Site, spot: Spot, entry: Expect) -> Span:
    for key in ("during", "after", "start", "end"):
        if getattr(entry, key) is not None:
            word = {"start": "from", "end": "to"}.get(key, key)
            raise (spot / word).wrong("is said already: before the first fault", "or put it under expect")
    if entry.relative_to == "baseline":
        raise (spot / "relative_to").wrong("the steady state is the baseline", "relative_to: line")
    return Span("before", "", site.scale.length(entry.skip))


# Bounds.


def _bound(site: Site, spot: Spot, written: float | str | None, measure: Measure, relative: str | None) -> float | None:
    """A bound in the unit of the measure. Raises ConfigError for a bound in another unit."""
    if written is None:
        return None
    unit = Unit.SHARE if relative else measure.unit
    value = _WAYS[unit](site, written)
    if value is None:
        text = written if isinstance(written, str) else f"{written:.15g}"  # 100000, not 100000.0
        raise spot.wrong(f"{text} is no bound for this", f"it is {_WANTED[unit]}")
    return value


def _share(site: Site, written: float | str) -> float | None:
    if isinstance(written, str) and not written.endswith("%"):
        return None
    return float(share(written))


def _number(site: Site, written: float | str) -> float | None:
    return None if isinstance(written, str) else float(written)


def _time(site: Site, written: float | str) -> float | None:
    if isinstance(written, str):
        return float(site.scale.length(written)) if written.endswith(("rtt", "s")) else None
    return 0.0 if written == 0 else None


def _rtts(site: Site, written: float | str) -> float | None:
    if isinstance(written, str):
        return (
            float(Fraction(site.scale.length(written), site.scale.rtt_ns)) if written.endswith(("rtt", "s")) else None
        )
    return float(written)


def _bytes(site: Site, written: float | str) -> float | None:
    if isinstance(written, str):
        size = amount("bytes", written)
        return float(size) if isinstance(size, int) else None
    return float(written)


_WAYS: Final[dict[Unit, Callable[[Site, float | str], float | None]]] = {
    Unit.SHARE: _share,
    Unit.COUNT: _number,
    Unit.BPS: _number,
    Unit.NS: _time,
    Unit.RTT: _rtts,
    Unit.BYTES: _bytes,
}
_WANTED: Final = {
    Unit.SHARE: "a share, as 90% or 0.9",
    Unit.COUNT: "a number",
    Unit.BPS: "a number of bits per second",
    Unit.NS: "a length, as 40us or 3rtt",
    Unit.RTT: "a number of base RTTs, or a length",
    Unit.BYTES: "a number of bytes, as 64KiB",
}


# Words.


def _title(entry: Expect, *, steady: bool) -> str:
    words = [entry.measure, _of_text(entry.of)]
    if steady:
        words.append("in the steady state")
    elif entry.during is not None:
        words.append(f"during {entry.during}")
    elif entry.after is not None:
        words.append(f"after {entry.after}")
    elif entry.start is not None or entry.end is not None:
        words.append(f"from {entry.start or 0} to {entry.end or 'the end'}")
    if entry.bin is not None:
        words.append(f"per {entry.bin}")
    return " ".join(word for word in words if word)


def _of_text(of: str | list[str] | None) -> str:
    return "" if of is None else "of " + ", ".join(_names(of))


def _condition_text(entry: Condition) -> str:
    words: list[Any] = [entry.measure, _of_text(entry.of)]
    if entry.over is not None:
        words.append(f"over {entry.over}")
    bounds = [f"at least {_plain(entry.at_least)}"] if entry.at_least is not None else []
    bounds += [f"at most {_plain(entry.at_most)}"] if entry.at_most is not None else []
    words.append(" and ".join(bounds))
    if entry.relative_to is not None:
        words.append(f"of {entry.relative_to}")
    return " ".join(word for word in words if word)


def _plain(bound: float | str) -> str:
    return bound if isinstance(bound, str) else f"{bound:g}"
