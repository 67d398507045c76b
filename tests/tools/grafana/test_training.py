"""Training steps: times by job, wrong bytes among the first figures."""

from tests.support.boards import expressions, variables
from tools.grafana.training import BOARD


def test_wrong_bytes_are_among_the_first_figures() -> None:
    assert "Wrong bytes" in [panel.title for panel in BOARD.rows[0].panels]


def test_it_has_no_planes() -> None:
    assert not any("plane" in variables(expression) for expression in expressions(BOARD))
