"""The lives of a node: what absences come to, and that a life keeps its script as long as it keeps its start."""

from mrcfabric.units import NEVER
from orchestrator.faults.lives import Absence, Life, Told, lives_after, united


def test_absences_that_touch_are_one() -> None:
    assert united([Absence(50, 60), Absence(10, 20), Absence(20, 30), Absence(15, 18)]) == [
        Absence(10, 30),
        Absence(50, 60),
    ]
    assert united([Absence(10, NEVER), Absence(20, 30)]) == [Absence(10, NEVER)]
    assert united([]) == []


def spans(lives: list[Life]) -> list[tuple[int, int]]:
    return [(life.start_ns, life.end_ns) for life in lives]


def test_lives_are_what_lies_between_absences() -> None:
    first = Life(0, NEVER)
    lives = lives_after([first], [Absence(10, 20), Absence(40, 50)], 0)
    assert spans(lives) == [(0, 10), (20, 40), (50, NEVER)]
    assert lives[0] is first
    assert spans(lives_after(lives, [Absence(10, NEVER)], 0)) == [(0, 10)]


def test_a_life_that_keeps_its_start_keeps_its_script() -> None:
    lives = lives_after([Life(0, NEVER)], [Absence(10, 20), Absence(40, 50)], 0)
    later = lives_after(lives, [Absence(10, 20)], 5)
    assert later[1] is lives[1]
    assert spans(later) == [(0, 10), (20, NEVER)]


def test_what_has_happened_stays() -> None:
    lives = lives_after([Life(0, NEVER)], [Absence(10, NEVER)], 5)
    assert spans(lives_after(lives, [Absence(10, 30)], 15)) == [(0, 10), (30, NEVER)]
    assert spans(lives_after(lives, [], 5)) == [(0, NEVER)]


def test_of_what_a_spot_was_told_for_an_instant_the_last_counts() -> None:
    told = Told()
    told.tell(20, "b")
    told.tell(10, "a")
    told.tell(20, "c")
    assert [told.at(at_ns, "whole") for at_ns in (9, 10, 19, 20, 99)] == ["whole", "a", "a", "c", "c"]
    told.forget(15)
    assert [told.at(at_ns, "whole") for at_ns in (15, 20)] == ["a", "c"]
    told.forget(30)
    assert told.instants == [20]
