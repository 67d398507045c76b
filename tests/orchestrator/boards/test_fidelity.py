"""Emulator fidelity: about the machine, so rates are of wall time."""

from orchestrator.boards.catalogue import BOARDS
from orchestrator.boards.fidelity import BOARD
from orchestrator.boards.query import PACE
from tests.support.boards import expressions


def test_nothing_here_is_of_fabric_time() -> None:
    assert not [one for one in expressions(BOARD) if PACE in one]


def test_all_other_rates_are_of_fabric_time() -> None:
    for board in BOARDS:
        if board is not BOARD:
            for expression in expressions(board):
                ratio = "histogram_quantile" in expression or " / " in expression
                assert PACE in expression or ratio or "rate(" not in expression, expression
