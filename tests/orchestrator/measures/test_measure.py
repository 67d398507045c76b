"""Names and patterns of what a measure is taken of."""

from orchestrator.measures.measure import matching


def test_names_patterns_and_all_together() -> None:
    names = ["h000", "h001", "p[1]"]
    assert matching((), names) == [""]
    assert matching(("h*",), names) == ["h000", "h001"]
    assert matching(("h001", "h000"), names) == ["h000", "h001"]
    assert matching(("p[1]",), names) == ["p[1]"]
    assert matching(("x",), names) == []


def test_a_pattern_means_things_of_as_many_parts() -> None:
    names = ["h000", "h000:gap", "train:h001>h000"]
    assert matching(("h*",), names) == ["h000"]
    assert matching(("h*:*",), names) == ["h000:gap"]
    assert matching(("*:*>h000",), names) == ["train:h001>h000"]
