"""Medians and spreads of repeated measurements."""

from bench.measure import Figure, repeat, rounded


def test_the_median_stands_for_the_runs() -> None:
    figure = Figure((1.0, 100.0, 3.0))
    assert figure.median == 3.0
    assert figure.record() == {"runs": [1.0, 100.0, 3.0], "spread": 16.5}


def test_a_steady_figure_has_no_spread() -> None:
    assert repeat(3, lambda: 7.0) == Figure((7.0, 7.0, 7.0))
    assert repeat(3, lambda: 7.0).spread == 0
    assert Figure((0.0, 0.0)).spread == 0


def test_figures_keep_four_digits() -> None:
    assert [rounded(value) for value in (0, 123_456, 98.7654, 0.0123456)] == [0, 123_500, 98.77, 0.01235]
