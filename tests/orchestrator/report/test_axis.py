"""Round steps, and where instants lie."""

import re

import pytest

from orchestrator.report.axis import LEFT, ROOM, TimeAxis, number, tick_step


@pytest.mark.parametrize(
    ("span", "wanted", "step"),
    [(100, 10, 10), (95, 10, 10), (3400, 10, 500), (1, 4, 0.5), (6400, 4, 2000)],
)
def test_ticks_are_round(span: float, wanted: int, step: float) -> None:
    assert tick_step(span, wanted) == pytest.approx(step)


def test_instants_lie_between_the_ends() -> None:
    axis = TimeAxis(20_000, 120_000)
    assert [axis.x(at_ns) for at_ns in (0, 20_000, 70_000, 120_000, 500_000)] == [
        LEFT,
        LEFT,
        LEFT + ROOM / 2,
        LEFT + ROOM,
        LEFT + ROOM,
    ]


def test_labels_count_from_the_zero_of_the_axis() -> None:
    def labels(axis: TimeAxis) -> list[str]:
        return re.findall(r">([^<]+)</text>", axis.labels(100))

    assert labels(TimeAxis(20_000, 120_000, 20_000)) == [f"{us}" for us in range(0, 101, 10)] + ["us"]
    assert labels(TimeAxis(25_000, 115_000)) == [f"{us}" for us in range(30, 111, 10)] + ["us"]
    assert labels(TimeAxis(19_500, 120_000, 20_000))[0] == "0"
    # An axis without length, as of a run that ended when it began.
    assert labels(TimeAxis(5_000, 5_000, 5_000))[-1] == "us"


def test_labels_have_no_digits_that_say_nothing() -> None:
    assert [number(value) for value in (0.0, 0.5, 2000.0)] == ["0", "0.5", "2,000"]
