"""Plane and switch: everything about switches obeys both variables."""

from tests.support.boards import expressions, variables
from tools.grafana.planes import BOARD


def test_switches_are_chosen_by_plane_and_name() -> None:
    for expression in expressions(BOARD):
        if "mrc_switch_" in expression:
            assert variables(expression) >= {"fabric", "plane", "node"}, expression


def test_the_table_of_ports_has_one_set_of_labels() -> None:
    (ports,) = BOARD.rows[-1].panels
    assert all("plane, node, port, peer" in query.expr for query in ports.queries)
