"""NIC and QP: every panel obeys the choice of NICs."""

from tests.support.boards import expressions, variables
from tools.grafana.nics import BOARD


def test_everything_is_of_the_chosen_nics() -> None:
    for expression in expressions(BOARD):
        assert "node" in variables(expression), expression
