"""The board "Systems": what tells fabrics of MRC, RoCE, UET and InfiniBand apart: rates, notifications, losses,
contexts, credits, entropies, who pauses whom, and routing.

Figures that every transport has come first; those of RC, of UET, of PFC, of InfiniBand and of routing have no series on
other fabrics, and such a panel is empty there.
"""

from tools.grafana import common, look, uids
from tools.grafana.board import Board, Row
from tools.grafana.panels import Panel, bars, figure, lines, spans
from tools.grafana.query import NODE, PLANE, Query, bits, flow, highest, level, series, share, top, total

_SHOWN = 12
_PORT = "plane, node, port, peer, class"
_LEGEND = "{{node}} to {{peer}}, class {{class}}"
_LEAST_RATE = series("mrc_nic_rc_rate_bytes_per_second_min", NODE)


def _figures() -> list[Panel]:
    again = bits("mrc_nic_retransmitted_bytes_total", "", NODE)
    return [
        figure("Goodput", "How fast does work get done?", bits("mrc_nic_placed_bytes_total", "", NODE), unit="bps",
               curve=True).wide(4),
        figure("Sent again", "What share of the payload was sent again?",
               share(again, bits("mrc_nic_payload_bytes_total", "", NODE)), unit="percentunit", curve=True).wide(4),
        figure("QPs slowed", "How many connections does congestion control hold back?",
               level("mrc_nic_rc_qps_slowed", "", NODE)).wide(4),
        figure("QPs in error", "Has a job lost a connection?", level("mrc_nic_qps", "", NODE, 'state="error"'),
               limits=look.NONE_IS_GOOD).wide(4),
        figure("Classes held back", "How many pairs of port and class are asked to pause now?",
               level("mrc_switch_pfc_asking", "", PLANE)).wide(4),
        common.faults_active().wide(4),
    ]  # fmt: skip


def _recovery() -> list[Panel]:
    again = bits("mrc_nic_retransmitted_bytes_total", "node", NODE)
    return [
        common.retransmits(NODE),
        lines("Payload sent again", "What do losses cost? With go-back-N all that was under way goes again.",
              Query(top(_SHOWN, again), "{{node}}"), unit="bps"),
        lines("NAKs", "Which losses did receivers see? A gap makes one NAK each time that the sender passes it.",
              Query(flow("mrc_nic_rc_naks_total", "direction", NODE), "{{direction}}"),
              Query(flow("mrc_nic_rc_passes_total", "", NODE), "senders that went back"), unit="pps"),
        lines("Out of sequence", "What came behind a gap? Kept: placed at once, with selective recovery; the rest is "
              "dropped.", Query(flow("mrc_nic_rc_out_of_sequence_packets_total", "", NODE), "came"),
              Query(flow("mrc_nic_rc_kept_packets_total", "", NODE), "kept"), unit="pps"),
    ]  # fmt: skip


def _rates() -> list[Panel]:
    mean = total("node", series("mrc_nic_rc_rate_bytes_per_second_mean", NODE))
    return [
        lines("Rate of QPs", "How fast may QPs send? The mean over the QPs of a NIC, the slowest NICs.",
              Query(f"8 * bottomk({_SHOWN}, {mean} > 0)", "{{node}}"), unit="bps"),
        lines("Slowest QP", "Is one connection much worse off than the others?",
              Query(f"8 * min by (fabric) ({_LEAST_RATE} > 0)", "the slowest of all"), unit="bps"),
        lines("Congestion notifications", "Who sees marks (out), and who is told to slow down (in)? Ignored ones came "
              "too soon after another.", Query(flow("mrc_nic_rc_cnps_total", "direction", NODE), "{{direction}}"),
              Query(flow("mrc_nic_rc_cnps_ignored_total", "", NODE), "ignored"), unit="pps"),
        lines("Changes of rates", "Do rates swing? Cuts by notifications, and steps of increase.",
              Query(flow("mrc_nic_rc_rate_changes_total", "change", NODE), "{{change}}"), unit="ops"),
    ]  # fmt: skip


def _pauses() -> list[Panel]:
    def worst(title: str, question: str, metric: str, unit: str = "pps") -> Panel:
        return lines(title, question, Query(top(_SHOWN, flow(metric, _PORT, PLANE)), _LEGEND), unit=unit)

    nics = flow("mrc_nic_port_paused_seconds_total", "node, class", PLANE, NODE)
    return [
        worst("Paused ports of switches", "Which links do pauses keep idle? Share of fabric time for which a class "
              "might not start packets.", "mrc_switch_pfc_paused_seconds_total", "percentunit"),
        lines("Paused NICs", "Which NICs are held back? Share of fabric time, summed over ports.",
              Query(top(_SHOWN, nics), "{{node}}, class {{class}}"), unit="percentunit"),
        worst("Pause frames sent", "Which links does a switch hold back? Repetitions included.",
              "mrc_switch_pfc_pause_frames_sent_total"),
        worst("Pause frames received", "Who is held back by whom?", "mrc_switch_pfc_pause_frames_received_total"),
        spans("Links held back", "Where does the tree of paused ports begin, and how far does it reach?",
              Query(f"{highest('mrc_switch_pfc_asking', _PORT, PLANE)} == 1", _LEGEND),
              meanings=((1, "asked to pause", look.BAD),)).wide(24),
    ]  # fmt: skip


def _buffers() -> list[Panel]:
    size = highest("mrc_switch_buffer_size_bytes", "node", PLANE)
    full = share(highest("mrc_switch_buffer_bytes", "node", PLANE), size, "node")
    used = highest("mrc_switch_pfc_headroom_bytes_max", _PORT, PLANE)
    there = highest("mrc_switch_pfc_headroom_size_bytes", _PORT, PLANE)
    return [
        lines("Shared buffer", "How full are switches?", Query(top(_SHOWN, full), "{{node}}"), unit="percentunit"),
        lines("Who fills it", "What came in on which link and waits anywhere?",
              Query(top(_SHOWN, level("mrc_switch_pfc_buffer_bytes", _PORT, PLANE)), _LEGEND), unit="bytes"),
        bars("Headroom used at the worst", "Is there enough headroom? At 1 the next byte is lost.",
             Query(top(_SHOWN, share(used, there, _PORT)), _LEGEND), unit="percentunit", highest=1,
             limits=look.steps(look.GOOD, (0.9, look.SKIP), (1, look.BAD))),
        lines("Choices of the hash", "Does the hash spread the load over up-links, or do flows meet?",
              Query(top(_SHOWN, flow("mrc_switch_ecmp_packets_total", "plane, node, port, peer", PLANE)),
                    "{{node}} to {{peer}}"), unit="pps"),
    ]  # fmt: skip


def _infiniband() -> list[Panel]:
    port = "plane, node, port, peer, vl"
    legend = "{{node}} to {{peer}}, VL {{vl}}"
    small = highest("mrc_switch_vl_buffer_size_bytes", port, PLANE)
    nics = flow("mrc_nic_vl_credit_stalled_seconds_total", "node, vl", PLANE, NODE)

    def worst(title: str, question: str, metric: str, label: str, of: str, unit: str) -> Panel:
        return lines(title, question, Query(top(_SHOWN, flow(metric, label, PLANE)), of), unit=unit)

    return [
        worst("Waits for credit at switches", "Which links does want of credit keep idle? Share of fabric time.",
              "mrc_switch_vl_credit_stalled_seconds_total", port, legend, "percentunit"),
        lines("Waits for credit at NICs", "Which NICs are held back? Share of fabric time, summed over ports.",
              Query(top(_SHOWN, nics), "{{node}}, VL {{vl}}"), unit="percentunit"),
        lines("Buffers of VLs", "How full are the buffers that credit is for?",
              Query(top(_SHOWN, share(highest("mrc_switch_vl_buffer_bytes", port, PLANE), small, port)), legend),
              unit="percentunit"),
        spans("Full buffers", "Where does the tree of waiting ports begin, and how far does it reach?",
              Query(f"{highest('mrc_switch_vl_full', port, PLANE)} == 1", legend),
              meanings=((1, "no room for a packet", look.BAD),)),
        worst("Bytes by VL", "How do VLs share links?", "mrc_switch_vl_sent_bytes_total", port, legend, "Bps"),
        worst("Choices of tables", "Do tables and adaptive routing spread the load, or do flows meet?",
              "mrc_switch_lft_packets_total", "plane, node, port, peer", "{{node}} to {{peer}}", "pps"),
        lines("Flow control packets", "What do credits cost?",
              Query(flow("mrc_switch_flow_control_packets_total", "plane", PLANE), "plane {{plane}}"), unit="pps"),
        lines("Subnet managers", "Do managers sweep, write tables, and get answers?",
              Query(flow("mrc_nic_subnet_manager_sweeps_total", "", NODE), "sweeps"),
              Query(flow("mrc_nic_subnet_manager_blocks_written_total", "", NODE), "blocks written"),
              Query(flow("mrc_nic_subnet_manager_unanswered_total", "", NODE), "without answer"),
              Query(flow("mrc_switch_subnet_traps_total", "", PLANE), "traps"), unit="ops"),
        lines("Routing notices", "Which switches tell of lost ways and of congestion, and for how many LIDs?",
              Query(flow("mrc_switch_routing_notices_sent_total", "node, notice", PLANE), "{{node}} {{notice}}"),
              Query(level("mrc_switch_avoided_lids", "node", PLANE), "{{node}}: LIDs"), unit="ops"),
        lines("Second paths", "Who has taken a second path (APM), and who has one left?",
              Query(flow("mrc_nic_path_migrations_total", "", NODE), "taken"),
              Query(level("mrc_nic_paths_armed", "", NODE), "left")),
    ]  # fmt: skip


def _ultra_ethernet() -> list[Panel]:
    def states(title: str, question: str, metric: str, label: str) -> Panel:
        return lines(title, question, Query(level(metric, label, NODE), f"{{{{{label}}}}}"))

    def turns(title: str, question: str, metric: str, label: str, unit: str = "pps") -> Panel:
        return lines(title, question, Query(flow(metric, label, NODE), f"{{{{{label}}}}}"), unit=unit)

    nacks = flow("mrc_nic_uet_nacks_total", "code", NODE, 'direction="out"')
    return [
        states("Contexts", "How many contexts do NICs hold, and how many wait for the answer to CLOSE?",
               "mrc_nic_uet_contexts", "role"),
        turns("Changes of contexts", "Do contexts come and go, and is there room for them?",
              "mrc_nic_uet_context_changes_total", "change", "ops"),
        lines("Responses kept", "How much must targets remember until it is cleared, and do they have to ask for that?",
              Query(level("mrc_nic_uet_responses_kept", "", NODE), "kept"),
              Query(flow("mrc_nic_uet_clears_total", "change", NODE), "CLEAR {{change}} a second")),
        lines("NACKs by code", "Why do targets refuse packets? Trims tell of full queues.", Query(nacks, "{{code}}"),
              unit="pps"),
        states("Entropies", "How many paths may packets take; how many sit out turns, or are kept for once more?",
               "mrc_nic_uet_entropies", "state"),
        lines("Failures avoided", "Who has met a failure? Choices that froze (REPS), and planes that were left.",
              Query(level("mrc_nic_uet_choices_frozen", "", NODE), "choices frozen"),
              Query(level("mrc_nic_uet_planes_left", "", NODE), "planes left")),
        turns("Grants of credit", "Do receivers grant (out), and does it reach the senders (in)?",
              "mrc_nic_uet_grants_total", "direction"),
        lines("Senders that stand still", "Who asks for credit by a packet of its own, and whose speculation is void?",
              Query(flow("mrc_nic_uet_credit_requests_total", "", NODE), "asked for credit"),
              Query(flow("mrc_nic_uet_speculations_stopped_total", "", NODE), "speculation void"), unit="ops"),
        states("Credit", "Does credit lie idle, or is it used up?", "mrc_nic_uet_credit_bytes", "kind"),
    ]  # fmt: skip


def _routing() -> list[Panel]:
    def of(title: str, question: str, metric: str, label: str, unit: str = "pps") -> Panel:
        return lines(title, question, Query(flow(metric, label, PLANE), f"{{{{{label}}}}}"), unit=unit)

    def worst(title: str, question: str, metric: str) -> Panel:
        return lines(title, question, Query(top(_SHOWN, level(metric, "node", PLANE)), "{{node}}"))

    lost = level("mrc_switch_routing_sessions", "node", PLANE, 'state!="Established"')
    return [
        lines("Sessions by state", "Does every neighbour have its session?",
              Query(level("mrc_switch_routing_sessions", "state", PLANE), "{{state}}")),
        lines("Switches without a session", "Who has lost a neighbour?", Query(top(_SHOWN, f"{lost} > 0"), "{{node}}")),
        lines("BFD", "Are neighbours heard?",
              Query(level("mrc_switch_routing_bfd_sessions", "state", PLANE), "{{state}}")),
        of("Updates", "How much do switches tell each other?", "mrc_switch_routing_updates_total", "direction"),
        of("Withdrawals", "Do routes come and go? Prefixes that were taken back.",
           "mrc_switch_routing_withdrawals_total", "direction", "ops"),
        lines("Writes of tables", "Which switches change their tables?",
              Query(top(_SHOWN, flow("mrc_switch_routing_table_writes_total", "node", PLANE)), "{{node}}"), unit="ops"),
        worst("Prefixes that wait to be written", "Which tables are behind what their switches know?",
              "mrc_switch_routing_waiting_prefixes"),
        worst("Damped routes", "Which ways does damping keep from use?", "mrc_switch_routing_damped_routes"),
        lines("Since the last change of a table", "Has the fabric converged? The switch that changed last.",
              Query(f"min by (fabric) ({series('mrc_switch_routing_table_age_seconds', PLANE)})", "the last change"),
              unit="s"),
    ]  # fmt: skip


BOARD = Board(
    uids.SYSTEMS,
    "Systems",
    "What do losses, rates, pauses, credits and entropies tell of RoCE, UET, InfiniBand and MRC? Rates are of fabric "
    "time; a panel of one transport, of PFC or of routing is empty on other fabrics.",
    (
        Row("At a glance", _figures()),
        Row("Losses", _recovery()),
        Row("Rates", _rates()),
        Row("Pauses", _pauses()),
        Row("Buffers", _buffers()),
        Row("Ultra Ethernet", _ultra_ethernet()),
        Row("InfiniBand", _infiniband()),
        Row("Dynamic routing", _routing()),
    ),
    nodes="mrc_nic_windows",
)
