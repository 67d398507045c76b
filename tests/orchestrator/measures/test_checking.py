"""What can never be judged is refused with the reason; what means something is let through."""

from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.measures.checking import check
from orchestrator.measures.expectation import Expectation, Span
from tests.support.recordings import sample_topology


def refusal(measure: str, **asked: Any) -> str:
    asked = {"at_least": 1} | asked
    with pytest.raises(ConfigError) as caught:
        check(Expectation("x", measure, **asked), "expect.0", sample_topology(), ("train", "aside"), ("flaps",))
    return str(caught.value)


@pytest.mark.parametrize(
    ("measure", "asked", "part"),
    [
        ("godput", {}, "nearest is goodput"),
        ("goodput", {"at_least": None}, "has no bound"),
        ("goodput", {"at_least": 2, "at_most": 1}, "nothing is at least 2 and at most 1 (as shares)"),
        ("step_time", {"at_least": 5e6, "at_most": 40e3}, "nothing is at least 5000000 ns and at most 40000 ns"),
        ("qp_errors", {"at_least": 2, "at_most": 1}, "nothing is at least 2 and at most 1"),
        ("qp_errors", {"at_least": None, "at_most": -1}, "qp_errors is never at most -1 (no figure is below 0)"),
        ("goodput", {"relative_to": "baseline", "at_least": None, "at_most": -0.5}, "never at most -0.5"),
        ("completed", {"at_least": 1.01}, "completed is never at least 1.01 (a share is at most 1, as 90%)"),
        ("goodput", {"at_least": 100}, "goodput is never at least 100 (a share is"),
        ("goodput", {"at_least": 1.5, "relative_to": "line"}, "never at least 1.5"),
        ("qp_errors", {"at_least": float("nan")}, "at_least: nan is no bound (a finite number)"),
        ("qp_errors", {"at_most": float("inf")}, "at_most: inf is no bound"),
        ("step_time", {"bin_ns": 5_000}, "cannot be told bin by bin"),
        ("goodput", {"bin_ns": 0}, "a width above 0"),
        ("qp_errors", {"relative_to": "line"}, "is not told relative to line"),
        ("step_time", {"relative_to": "line"}, "baseline"),
        ("step_time", {"reduce": "p42"}, "p95"),
        ("goodput", {"during": Span("fault", "kill")}, "no fault is called 'kill' (faults are flaps)"),
        ("goodput", {"during": Span("interval", "", 5, 5)}, "ends before it begins"),
        ("evs", {}, "needs to know of what"),
        ("marks", {"of": ("h000",)}, "all together only"),
        ("goodput", {"of": ("h004",)}, "the measure of nothing"),
        ("goodput", {"of": ("2",)}, "a plane as 5"),
        ("goodput", {"of": ("ring",)}, "a workload by its name"),
        ("goodput", {"of": ("ring:h000>h001",)}, "a flow as"),
        ("retransmissions", {"of": ("gasp",)}, "one of gap, timeout"),
        ("retransmissions", {"of": ("h000:gasp",)}, "the measure of nothing"),
        ("evs", {"of": ("2:assumed_bad",)}, "the measure of nothing"),
        ("goodput", {"of": ("*",)}, "may mean a nic or a plane or a program"),
    ],
)
def test_what_can_never_be_judged_is_refused(measure: str, asked: dict[str, Any], part: str) -> None:
    message = refusal(measure, **asked)
    assert message.startswith("expect.0: ")
    assert part in message


@pytest.mark.parametrize(
    ("measure", "of"),
    [
        ("goodput", ("h00*", "1", "train", "aside:h000>h003")),
        ("retransmissions", ("h003:timeout", "gap", "h*")),
        ("evs", ("1:assumed_bad", "denied", "h*:skip")),
        ("drops", ("icrc", "switches", "switches:unknown_usid")),
        ("fidelity", ("host_drops",)),
        ("recovery_rtts", ("h001",)),
    ],
)
def test_what_means_something_is_let_through(measure: str, of: tuple[str, ...]) -> None:
    check(Expectation("x", measure, of=of, at_most=1), "expect.0", sample_topology(), ("train", "aside"), ())


@pytest.mark.parametrize(
    ("measure", "asked"),
    [
        ("completed", {"at_least": 1}),
        ("qp_errors", {"at_least": 100, "at_most": 100}),
        ("qp_errors", {"at_most": 0}),
        ("goodput", {"at_least": 1.2, "relative_to": "baseline"}),
        ("goodput", {"at_least": 1.2, "bin_ns": 1000, "reduce": "max"}),
        ("goodput", {"at_least": 1.2, "of": ("h00*",), "reduce": "sum"}),
        ("step_time", {"at_least": 2, "relative_to": "baseline"}),
    ],
)
def test_bounds_that_a_figure_can_meet_are_let_through(measure: str, asked: dict[str, Any]) -> None:
    check(Expectation("x", measure, **asked), "expect.0", sample_topology(), ("train",), ("flaps",))
