"""The order of the tests: each worker is dealt its share of the long ones, and begins with them."""

import pytest

from tests.support.turns_of_tests import in_turn

LONG = {"h": 40.0, "d": 30.0, "j": 20.0, "a": 20.0}


def turns(names: str, workers: int) -> str:
    return "".join(in_turn(names, workers, lambda name: LONG.get(name, 0.0)))


def test_every_worker_begins_with_its_share_the_longest_first() -> None:
    assert turns("abcdefghij", 2) == "hjbcedafgi"
    assert turns("abcdefghij", 1) == "hdajbcefgi"


def test_one_worker_runs_the_whole_clusters_one_after_another() -> None:
    lasting = {"h": 100.0, "d": 90.0, "j": 40.0, "a": 30.0, "b": 20.0}
    assert "".join(in_turn("abcdefghij", 2, lambda name: lasting.get(name, 0.0))) == "hdjceabfgi"


@pytest.mark.parametrize("workers", range(1, 12))
def test_every_test_has_its_turn_and_those_that_say_nothing_stay_in_order(workers: int) -> None:
    found = turns("abcdefghij", workers)
    assert sorted(found) == [*"abcdefghij"]
    assert [name for name in found if name not in LONG] == [*"bcefgi"]


def test_what_nobody_is_dealt_is_no_mistake() -> None:
    assert turns("", 3) == ""
