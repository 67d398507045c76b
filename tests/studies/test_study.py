"""What claims say of rows, and what they say when they fail."""

from studies.study import Departure, More, Mostly, NoLess, Reaches, Rows

ROWS: Rows = {
    "good": {"share": [0.9, 0.95, 1.0]},
    "near": {"share": [0.88, 0.91, 0.94]},
    "bad": {"share": [0.3, None, 0.4]},
}


def test_more_wants_ranges_that_do_not_touch() -> None:
    assert not More("", "share", "good", "bad").fails(ROWS)
    assert "0.94" in More("", "share", "good", "near").fails(ROWS)


def test_what_never_came_counts_as_nothing() -> None:
    assert "0 at least" in More("", "share", "bad", "good").fails(ROWS)


def test_mostly_compares_seed_by_seed() -> None:
    assert not Mostly("", "share", "good", "near").fails(ROWS)
    assert Mostly("", "share", "near", "good").fails(ROWS) == "in 0 of 3 seeds"


def test_no_less_allows_what_the_seeds_differ_by() -> None:
    assert not NoLess("", "share", "near", "good").fails(ROWS)
    assert NoLess("", "share", "bad", "good").fails(ROWS)


def test_a_share_must_be_reached_in_every_seed() -> None:
    assert not Reaches("", "share", "good", 0.9).fails(ROWS)
    assert "below" in Reaches("", "share", "good", 0.95).fails(ROWS)
    assert "above" in Reaches("", "share", "good", 0.9, most=0.99).fails(ROWS)


def test_a_share_of_another_row_is_taken_seed_by_seed() -> None:
    assert not Reaches("", "share", "near", 0.93, of="good").fails(ROWS)
    assert Reaches("", "share", "near", 0.95, of="good").fails(ROWS)


def test_a_departure_fails_when_it_is_over() -> None:
    shown, missing = Reaches("a", "share", "good", 0.9), Reaches("b", "share", "bad", 0.9)
    assert Departure(shown, "because").fails(ROWS)
    assert not Departure(missing, "because").fails(ROWS)
    assert Departure(missing, "because").text == "b"
