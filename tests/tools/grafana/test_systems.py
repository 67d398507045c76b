"""Systems: losses, rates and pauses of what was chosen, with the metrics that somebody on call needs."""

import re

from tests.support.boards import expressions, variables
from tools.grafana.systems import BOARD


def test_everything_is_of_what_was_chosen() -> None:
    for expression in expressions(BOARD):
        if "mrc_switch_" in expression:
            assert "plane" in variables(expression), expression
        elif "mrc_nic_" in expression:
            assert "node" in variables(expression), expression


def test_it_shows_rates_notifications_naks_bytes_and_pauses() -> None:
    shown = set(re.findall(r"mrc_[a-z_]+", " ".join(expressions(BOARD))))
    assert shown >= {
        "mrc_nic_rc_rate_bytes_per_second_min", "mrc_nic_rc_rate_bytes_per_second_mean", "mrc_nic_rc_cnps_total",
        "mrc_nic_rc_naks_total", "mrc_nic_retransmitted_bytes_total", "mrc_switch_pfc_paused_seconds_total",
        "mrc_switch_pfc_pause_frames_sent_total", "mrc_switch_pfc_pause_frames_received_total",
    }  # fmt: skip


def test_it_shows_contexts_nacks_credits_and_entropies() -> None:
    shown = set(re.findall(r"mrc_nic_uet_[a-z_]+", " ".join(expressions(BOARD))))
    assert shown >= {
        "mrc_nic_uet_contexts", "mrc_nic_uet_nacks_total", "mrc_nic_uet_grants_total", "mrc_nic_uet_credit_bytes",
        "mrc_nic_uet_entropies", "mrc_nic_uet_choices_frozen",
    }  # fmt: skip


def test_it_shows_sessions_withdrawals_tables_and_damping() -> None:
    shown = set(re.findall(r"mrc_switch_routing_[a-z_]+", " ".join(expressions(BOARD))))
    assert shown >= {
        "mrc_switch_routing_sessions", "mrc_switch_routing_bfd_sessions", "mrc_switch_routing_withdrawals_total",
        "mrc_switch_routing_table_writes_total", "mrc_switch_routing_damped_routes",
        "mrc_switch_routing_waiting_prefixes", "mrc_switch_routing_table_age_seconds",
    }  # fmt: skip


def test_pauses_are_told_by_port_and_class() -> None:
    for expression in expressions(BOARD):
        if "mrc_switch_pfc_" in expression:
            whole = expression.startswith("sum by (fabric) (")
            assert whole or "plane, node, port, peer, class" in expression, expression
