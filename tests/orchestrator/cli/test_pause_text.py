"""Trees of pauses as text."""

import pytest

from orchestrator.cli.pause_text import render_trees
from orchestrator.live.pause_tree import PauseView, RootCause, pause_trees

CHAIN = (
    PauseView("p0-t0-1>p0-t1-0", 3, 0.25, 1200, False, "queue", ("p0-t1-0>p0-t0-0",)),
    PauseView("h003>p0-t0-1", 3, 0.5, 7, True, "queue", ("p0-t0-1>p0-t1-0",)),
)


def test_a_tree_goes_from_the_reason_to_those_that_wait() -> None:
    assert render_trees(CHAIN, pause_trees(CHAIN)).splitlines() == [
        "class 3: p0-t1-0, its port to p0-t0-0 is congested",
        "  p0-t1-0 pauses p0-t0-1  25.0% of the time, 1,200 frames",
        "    p0-t0-1 pauses h003  50.0% of the time, 7 frames, now too",
        "  at the end: h003",
    ]


@pytest.mark.parametrize(
    ("cause", "says"),
    [("slow_receiver", "more slowly"), ("storm", "without a reason"), ("unknown", "not known")],
)
def test_every_reason_has_words(cause: RootCause, says: str) -> None:
    pauses = [PauseView("p0-t0-0>h000", 3, 0.5, 7, True, cause, ())]  # type: ignore[arg-type]
    assert says in render_trees(pauses, pause_trees(pauses)).splitlines()[0]


def test_a_circle_is_called_what_it_may_be() -> None:
    ways = {"a>b": "b>a", "b>a": "a>b"}
    pauses = [PauseView(link, 3, 1.0, 1, True, "queue", (because,)) for link, because in ways.items()]
    lines = render_trees(pauses, pause_trees(pauses)).splitlines()
    assert "DEADLOCK" in lines[0]
    assert lines[1] == "  circle: a>b because of b>a because of a>b"
    assert lines[-1] == "  at the end: nobody"
