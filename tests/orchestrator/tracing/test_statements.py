"""What a node has said: numbers over several lives, what is kept, and what is forgotten."""

from typing import Any

from orchestrator.tracing.statements import FORGOT, WENT_DOWN, Statements


def offer(number: int, at_ns: int, mark: int = 3) -> dict[str, Any]:
    return {"n": number, "at_ns": at_ns, "step": "offer", "packet": {"print": mark}}


def depart(number: int, at_ns: int, of: int) -> dict[str, Any]:
    return {"n": number, "at_ns": at_ns, "step": "depart", "of": of}


def told(*statements: dict[str, Any]) -> Statements:
    stated = Statements(nic=False)
    for statement in statements:
        stated.add(statement)
    return stated


def test_numbers_go_on_in_the_next_life() -> None:
    stated = told(offer(1, 10), depart(2, 20, of=1), offer(1, 30, mark=4), depart(2, 40, of=1))
    assert stated.died_after == 2
    assert {number: one["at_ns"] for number, one in stated.departs.items()} == {1: 20, 3: 40}


def test_an_arrival_is_taken_once_and_at_its_instant_if_it_can_be() -> None:
    stated = told(offer(1, 10), offer(2, 20), offer(3, 30))
    found = [stated.arrival(3, at_ns) for at_ns in (20, 20, 20, 5)]
    assert [one and one["at_ns"] for one in found] == [20, 30, None, 10]


def test_what_is_part_of_a_way_is_kept_until_it_is_released() -> None:
    stated = told(offer(1, 10), depart(2, 20, of=1), offer(3, 30, mark=4), depart(4, 40, of=3))
    held = stated.arrival(3, 10)
    assert held is not None
    stated.forget(1_000)
    assert list(stated.departs) == [1]
    assert stated.arrival(4, 30) is None
    stated.release(held)
    assert stated.departs == {}


def test_further_arrivals_are_kept_while_they_are_counted() -> None:
    stated = told(offer(1, 10), offer(2, 20))
    assert stated.arrival(3, 10) is not None
    assert len(stated.count_further(3)) == 1
    stated.forget(1_000)
    assert len(stated.count_further(3)) == 1
    stated.count_no_further(3)
    assert stated.count_further(3) == []


def test_spans_of_blindness() -> None:
    stated = told(offer(1, 10), offer(3, 30))
    stated.down(50)
    stated.down(60)
    alive = [stated.alive]
    stated.begin(90)
    assert [*alive, stated.alive] == [False, True]
    assert stated.blind == [(9, 30, FORGOT), (50, 90, WENT_DOWN)]
    stated.see_again(40)
    assert stated.blind == [(50, 90, WENT_DOWN)]


def test_no_more_is_kept_than_there_is_room_for_and_who_needs_it_is_told_so() -> None:
    most, more = 100, 3
    stated = Statements(nic=False, most=most)
    for number in range(1, most + more + 1):
        stated.add(offer(number, 10 * number, mark=number))
    stated.forget(0)
    assert stated.blind == [(9, 10 * more, FORGOT)]
    assert stated.arrival(more, 10 * more) is None
    assert stated.arrival(more + 1, 10 * (more + 1)) is not None
