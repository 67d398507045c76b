"""The overview: one line of figures first, and everything that can be broken somewhere on the board."""

from tests.support.boards import expressions, metrics
from tools.grafana.overview import BOARD


def test_figures_fill_one_line() -> None:
    assert sum(panel.width for panel in BOARD.rows[0].panels) == 24


def test_it_shows_what_the_promise_names() -> None:
    shown = set().union(*(metrics(one) for one in expressions(BOARD)))
    assert shown >= {"mrc_nic_placed_bytes_total", "mrc_nic_evs",
                     "mrc_nic_port_up", "mrc_agent_fault_active",
                     "mrc_agent_valid", "mrc_nic_retransmits_total",
                     "mrc_switch_port_trimmed_packets_total"}  # fmt: skip
