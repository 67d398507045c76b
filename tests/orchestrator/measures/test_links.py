"""How soon a mapper found what a fault struck, and how much it held bad."""

import pytest

from mrcfabric.topology import Topology
from orchestrator.faults.fault import Fault, Window
from orchestrator.measures.goodput import Goodput
from orchestrator.measures.links import held, mapping_rtts
from orchestrator.measures.measure import Question
from orchestrator.measures.recording import Injected, LinksFound, Look, Recording
from orchestrator.measures.spans import Interval

SHAPE = Topology(name="links", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2)
RTT_NS = SHAPE.base_rtt_ns()
START_NS = 10 * RTT_NS


def recorded(links: list[LinksFound] | None, *targets: str) -> Question:
    """A question about a fault that struck these targets at `START_NS`."""
    fault = Fault("broken", "loss", targets, (Window(START_NS, 90 * RTT_NS, {}),))
    look = Look(100 * RTT_NS, {}, {}, {}, {}, {}, 0, 0)
    recording = Recording(
        "links", "sim", "seed", SHAPE, 1000, 0, 100 * RTT_NS, Goodput.of(SHAPE), [look], faults=[Injected(fault)],
        links=links,
    )  # fmt: skip
    windows = (Interval(0, 30 * RTT_NS), Interval(30 * RTT_NS, 60 * RTT_NS))
    return Question(recording, (), windows, faults=tuple(recording.faults))


def found(rtts: int, *bad: str) -> LinksFound:
    return LinksFound(rtts * RTT_NS, bad, bad[:1])


@pytest.mark.parametrize(
    ("target", "bad"),
    [
        ("p0-t0-0~p0-t1-1", "p0-t0-0~p0-t1-1"),
        ("p0-t1-1>p0-t0-0", "p0-t0-0~p0-t1-1"),
        ("p0-t0-0~p0-t1-1", "p0-t1-1"),
        ("p0-t1-1", "p0-t1-1"),
        ("p0-t1-1", "p0-t0-0~p0-t1-1"),
        ("h001:1", "h001~p1-t0-0"),
        ("1", "p1-t1-0"),
        ("1", "h003~p1-t0-1"),
    ],
)
def test_a_part_is_found_when_something_is_held_bad_that_means_it(target: str, bad: str) -> None:
    (figure,) = mapping_rtts(recorded([found(5, bad), found(7), found(14, bad)], target))
    assert figure.value == 4, "what was held before the fault says nothing about it"


@pytest.mark.parametrize(
    ("target", "bad"),
    [
        ("p0-t0-0~p0-t1-1", "p0-t0-1~p0-t1-1"),
        ("p0-t0-0~p0-t1-1", "p0-t1-0"),
        ("h001:1", "h001~p0-t0-0"),
        ("h001:1", "h000~p1-t0-0"),
        ("1", "p0-t1-1"),
    ],
)
def test_what_means_something_else_has_not_found_it(target: str, bad: str) -> None:
    (figure,) = mapping_rtts(recorded([found(14, bad)], target))
    assert figure.value is None


def test_the_most_at_a_time_counts_and_what_a_window_begins_with() -> None:
    changes = [found(5, "p0-t1-1"), found(10, "p0-t1-1", "p0-t1-0"), found(12, "p0-t1-0"), found(40)]
    question = recorded(changes, "p0-t1-1")
    assert [figure.value for figure in held(lambda one: len(one.bad))(question)] == [2, 1]
    assert [figure.value for figure in held(lambda one: len(one.avoided))(question)] == [1, 1]


def test_a_run_without_a_mapper_has_no_figures() -> None:
    question = recorded(None, "p0-t1-1")
    assert mapping_rtts(question) == held(lambda one: len(one.bad))(question) == []
