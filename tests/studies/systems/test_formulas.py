"""The closed forms, by cases that can be counted on one's fingers."""

import random

import pytest

from studies.systems.formulas import (
    cut_rate,
    decayed_alpha,
    go_back_0,
    go_back_n,
    links_used,
    recovered_rate,
    window_after_loss,
)


def test_w_counts_the_packet_under_way_and_those_that_wait() -> None:
    assert window_after_loss(100, 300, 0) == 4
    assert window_after_loss(100, 301, 2) == 7


def test_go_back_n_without_loss_and_without_a_window() -> None:
    assert go_back_n(0.0, 100) == 1
    assert go_back_n(0.01, 1) == pytest.approx(0.99)


@pytest.mark.parametrize(("p", "w"), [(0.01, 8), (0.05, 20)])
def test_go_back_n_against_draws(p: float, w: int) -> None:
    draw = random.Random(1)
    losses = sum(1 for _ in range(200_000) for _ in iter(lambda: draw.random() < p, False))
    assert 200_000 / (200_000 + losses * w) == pytest.approx(go_back_n(p, w), rel=0.01)


def test_go_back_0_is_the_published_form_where_nothing_is_under_way() -> None:
    p, m = 0.01, 100
    assert go_back_0(p, m) == pytest.approx(m * p / ((1 - p) ** -m - 1))
    assert go_back_0(p, m, 10) < go_back_0(p, m)


def test_links_used_of_one_and_of_many_flows() -> None:
    assert links_used(1, 4) == 0.25
    assert links_used(2, 2) == 0.75
    assert links_used(10_000, 8) == pytest.approx(1)


def test_a_cut_its_way_back_and_alpha() -> None:
    assert cut_rate(1.0) == 0.5
    assert [recovered_rate(1.0, step) for step in (0, 1, 2, 3)] == [0.5, 0.75, 0.875, 0.9375]
    assert decayed_alpha(2, 0.25) == 0.5625
