"""Emulator fidelity: about the machine, so rates are of wall time."""

from tests.support.boards import expressions
from tools.grafana.catalogue import BOARDS
from tools.grafana.fidelity import BOARD
from tools.grafana.query import PACE


def test_nothing_here_is_of_fabric_time() -> None:
    assert not [one for one in expressions(BOARD) if PACE in one]


def test_all_other_rates_are_of_fabric_time() -> None:
    for board in BOARDS:
        if board is not BOARD:
            for expression in expressions(board):
                ratio = "histogram_quantile" in expression or " / " in expression
                assert PACE in expression or ratio or "rate(" not in expression, expression
