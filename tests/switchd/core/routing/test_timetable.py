"""Timers: the next one first, set anew, stopped, and many of them."""

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.units import NEVER
from switchd.core.routing.timetable import Kind, Timetable


def test_of_one_instant_the_kind_counts_and_then_the_port() -> None:
    timetable = Timetable()
    for kind, port in ((Kind.BFD, 0), (Kind.HOLD, 2), (Kind.HOLD, 1), (Kind.FIB, 9)):
        timetable.set(kind, port, 50)
    found = [timetable.take(50) for _ in range(5)]
    assert found == [(50, Kind.FIB, 9), (50, Kind.HOLD, 1), (50, Kind.HOLD, 2), (50, Kind.BFD, 0), None]
    assert timetable.next_ns == NEVER


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from((*range(1, 40), NEVER))), max_size=200))
def test_only_the_last_setting_counts(settings: list[tuple[int, int]]) -> None:
    timetable, wanted = Timetable(), {}
    for port, at_ns in settings:
        timetable.set(Kind.HOLD, port, at_ns)
        wanted[port] = at_ns
        assert timetable.due(Kind.HOLD, port) == at_ns
        assert timetable.next_ns == min(wanted.values())
    found = []
    while (taken := timetable.take(100)) is not None:
        found.append((taken[0], taken[2]))
    assert found == sorted((at_ns, port) for port, at_ns in wanted.items() if at_ns != NEVER)


def test_a_timer_that_is_put_off_for_ever_leaves_nothing_behind() -> None:
    timetable = Timetable()
    for at_ns in range(1, 10_000):
        timetable.set(Kind.HOLD, 0, 10_000_000 - at_ns)
    assert len(timetable._heap) < 200
