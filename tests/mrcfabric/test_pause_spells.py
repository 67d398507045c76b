"""Spells of pauses: what is worth an event, when it is over, and how few events there are."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.pause_spells import PauseBegun, PauseEnded, PauseEvent, PauseSpells
from mrcfabric.units import NEVER

LEAST = 1_000


def told(steps: list[tuple[int, int]], least: int = LEAST, early: bool = False) -> list[PauseEvent]:
    """What is told of pauses (instant, until), each instant before the next; `early`: with useless calls between."""
    spells, found, due = PauseSpells(least), [], NEVER
    for at_ns, until_ns in [*steps, (NEVER - 1, 0)]:
        while due < at_ns:
            if early:
                assert spells.come(due - 1, 2, 3)[0] is None
            event, due = spells.come(due, 2, 3)
            if event is not None:
                found.append(event)
        if at_ns < NEVER - 1:
            due = spells.heard(at_ns, 2, 3, until_ns)
    return found


def test_a_long_pause_is_told_of_when_it_is_long_and_when_it_is_over() -> None:
    assert told([(100, 60_000), (5_000, 5_000)]) == [
        PauseBegun(1_100, 2, 3, 100, 1),
        PauseEnded(6_000, 2, 3, 100, 5_000, 4_900, 1),
    ]


def test_short_pauses_add_up_while_their_breaks_are_short() -> None:
    flutter = [(at, until) for start in range(0, 10_000, 500) for at, until in ((start, 60_000), (start + 200, 0))]
    assert told(flutter) == [
        PauseBegun(2_200, 2, 3, 0, 5),
        PauseEnded(10_700, 2, 3, 0, 9_700, 20 * 200, 20),
    ]


@pytest.mark.parametrize(("gap", "events"), [(999, 2), (1_000, 2), (1_001, 0)])
def test_a_break_as_long_as_a_pause_worth_telling_ends_the_spell(gap: int, events: int) -> None:
    assert len(told([(0, 600), (600 + gap, 1_200 + gap)])) == events


def test_frames_that_repeat_a_pause_make_no_events() -> None:
    refreshed = [(at, at + 5_000) for at in range(0, 1_000_000, 2_500)]
    assert [type(event) for event in told(refreshed)] == [PauseBegun, PauseEnded]


def test_it_can_be_off() -> None:
    assert told([(0, 1 << 40), (1 << 39, 0)], least=0) == []


def test_classes_and_ports_have_spells_of_their_own() -> None:
    spells = PauseSpells(LEAST)
    spells.heard(0, 1, 3, 5_000)
    assert spells.heard(0, 1, 4, 500) == 1_500
    assert spells.come(1_500, 1, 4) == (None, NEVER)
    event, due = spells.come(1_000, 1, 3)
    assert (event, due) == (PauseBegun(1_000, 1, 3, 0, 1), 6_000)
    assert spells.heard(10, 2, 3, 10) == NEVER


PAUSES = st.lists(st.tuples(st.integers(1, 2_500), st.integers(0, 4_000)), max_size=60)


@settings(max_examples=150, deadline=None)
@given(PAUSES)
def test_any_pauses_are_told_as_a_count_of_every_nanosecond_has_it(gaps: list[tuple[int, int]]) -> None:
    steps, now = [], 0
    for gap, length in gaps:
        now += gap
        steps.append((now, now + length if length > 100 else 0))
    found = told(steps)
    assert found == told(steps, early=True)
    assert found == counted(steps)
    for one, other in itertools.pairwise(found):
        assert one.at_ns <= other.at_ns
        assert type(one) is not type(other)
    span = steps[-1][0] + 10_000 if steps else 1
    assert len(found) <= 2 * (span // (2 * LEAST) + 1)


def counted(steps: list[tuple[int, int]]) -> list[PauseEvent]:
    """The same by intervals: those in which the class was paused, put together over short breaks."""
    pauses: list[list[int]] = []  # start, end, frames
    for at_ns, until_ns in steps:
        if pauses and pauses[-1][1] >= at_ns:
            pauses[-1][1] = max(at_ns, until_ns)
        elif until_ns > at_ns:
            pauses.append([at_ns, until_ns])
    spells: list[list[list[int]]] = []
    for pause in pauses:
        if spells and pause[0] - spells[-1][-1][1] <= LEAST:
            spells[-1].append(pause)
        else:
            spells.append([pause])
    found: list[PauseEvent] = []
    for spell in spells:
        first, last = spell[0][0], spell[-1][1]
        heard = [at for at, until in steps if first <= at <= last and until > at]
        total = 0
        for start, end in spell:
            if total < LEAST <= total + end - start:
                worth = start + LEAST - total
                found.append(PauseBegun(worth, 2, 3, first, sum(at <= worth for at in heard)))
            total += end - start
        if total >= LEAST:
            found.append(PauseEnded(last + LEAST, 2, 3, first, last, total, len(heard)))
    return found
