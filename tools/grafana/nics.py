"""The board "NIC and QP": a NIC's traffic, what holds it back, and the paths of its QPs.

Figures of QPs are sums over the NIC's QPs: a series per QP would be too many. `mrcfabric ev list` and `mrcfabric nic`
show one QP.
"""

from tools.grafana import common, look, uids
from tools.grafana.board import Board, Row
from tools.grafana.panels import Panel, figure, heat, lines, spans
from tools.grafana.query import (
    NODE,
    PLANE,
    Query,
    bits,
    bottom,
    flow,
    highest,
    level,
    quantile,
    series,
    share,
    spread,
    top,
    utilisation,
)

_SHOWN = 12


def _each(title: str, question: str, expr: str, unit: str = "short") -> Panel:
    """A line per NIC, for the NICs with the greatest values."""
    return lines(title, question, Query(top(_SHOWN, expr), "{{node}}"), unit=unit)


def _least(title: str, question: str, expr: str, unit: str = "short") -> Panel:
    """A line per NIC, for the NICs with the least values above 0."""
    return lines(title, question, Query(bottom(_SHOWN, f"{expr} > 0"), "{{node}}"), unit=unit)


def _kinds(title: str, question: str, metric: str, label: str, *, only_some: bool = False) -> Panel:
    """A line per value of a label; `only_some`: only for values that are not 0."""
    expr = flow(metric, label, NODE) + (" > 0" if only_some else "")
    return lines(title, question, Query(expr, f"{{{{{label}}}}}"), unit="pps")


def _figures() -> list[Panel]:
    lost = flow("mrc_nic_retransmits_total", "", NODE)
    return [
        figure("Goodput", "How fast does work get done at the chosen NICs?",
               bits("mrc_nic_placed_bytes_total", "", NODE), unit="bps", curve=True),
        figure("NICs", "How many are chosen?", f"count by (fabric) ({series('mrc_nic_windows', NODE)})"),
        figure("QPs", "How many can send?", level("mrc_nic_qps", "", NODE, 'state="rts"')),
        figure("QPs in error", "Has a job lost a connection?", level("mrc_nic_qps", "", NODE, 'state="error"'),
               limits=look.NONE_IS_GOOD),
        figure("Ports down", "Has a NIC lost a plane?", f"sum by (fabric) (1 - {series('mrc_nic_port_up', NODE)})",
               limits=look.NONE_IS_GOOD),
        figure("EVs out of use", "How many paths have they given up?", common.evs_out("", NODE), unit="percentunit",
               limits=look.steps(look.GOOD, (0.0001, look.SKIP), (common.EVS_OUT_LIMIT, look.BAD))),
        figure("Sent again", "What share of the data packets were retransmissions?",
               share(lost, flow("mrc_nic_data_packets_total", "", NODE)), unit="percentunit", curve=True),
        figure("MPR in use", "Does a tracking window bind? Of the QP that uses most of its own.",
               highest("mrc_nic_mpr_used_ratio_max", "", NODE), unit="percentunit",
               limits=look.steps(look.GOOD, (0.9, look.SKIP))),
    ]  # fmt: skip


def _traffic() -> list[Panel]:
    used = utilisation("mrc_nic_port", "plane", NODE, PLANE)
    return [
        _least("Goodput", "Which NIC gets less than the others? The twelve that get least, of those that get anything.",
               bits("mrc_nic_placed_bytes_total", "node", NODE), "bps"),
        _each("Payload sent", "How much does each NIC send, retransmissions included?",
              bits("mrc_nic_payload_bytes_total", "node", NODE), "bps"),
        lines("Ports by plane", "Are the planes used evenly? Sent, framing included, as a share of the ports' rate.",
              Query(used, "plane {{plane}}"), unit="percentunit", overrides=look.plane_overrides()),
        spans("Ports that have been down", "Which NIC lost which plane, and when?",
              Query(f"{highest('mrc_nic_port_up', 'node, plane', NODE, PLANE)} == 0", "{{node}} plane {{plane}}"),
              meanings=common.UP_DOWN),
        _each("Data waiting in ports", "Do NICs send faster than their ports?",
              highest("mrc_nic_port_data_queue_bytes", "node", NODE, PLANE), "bytes"),
        lines("Peers' ports down", "Which planes do NICs avoid because peers said that they are not there?",
              Query(level("mrc_nic_peer_ports_down", "plane", NODE, PLANE), "plane {{plane}}"),
              overrides=look.plane_overrides()),
    ]  # fmt: skip


def _windows() -> list[Panel]:
    def whole(metric: str, legend: str) -> Query:
        return Query(level(metric, "", NODE), legend)

    return [
        lines("Congestion windows", "How much may be under way, and how much is? Windows of all destinations.",
              whole("mrc_nic_cwnd_bytes", "windows"), whole("mrc_nic_inflight_bytes", "in flight"), unit="bytes"),
        _least("Smallest window", "Is one destination much worse off than the others?",
               highest("mrc_nic_cwnd_bytes_min", "node", NODE), "bytes"),
        _kinds("Windows cut", "What slows senders down?", "mrc_nic_cwnd_cuts_total", "cause"),
        lines("Tracking windows (MPR)", "How much reordering may there be, and how much of that is in use?",
              whole("mrc_nic_mpr_granted_packets", "granted"), whole("mrc_nic_mpr_used_packets", "in use")),
    ]  # fmt: skip


def _times() -> list[Panel]:
    def points(title: str, question: str, histogram: str) -> Panel:
        found = (Query(quantile(point, histogram, "fabric", NODE), name)
                 for point, name in ((0.5, "median"), (0.9, "90 %"), (0.99, "99 %")))  # fmt: skip
        return lines(title, question, *found, unit="s")

    return [
        heat("Round trips", "How are round trips spread? Two bands: two lengths of path, or a full queue.",
             spread("mrc_nic_rtt_seconds", NODE), "s"),
        heat("Queue delay", "How long do packets wait? Round trips less the base RTT, by which NSCC sets its windows.",
             spread("mrc_nic_queue_delay_seconds", NODE), "s"),
        points("Round trips by share", "How long is the tail?", "mrc_nic_rtt_seconds"),
        points("Round trips of probes", "How long do small packets take that wait behind nothing?",
               "mrc_nic_probe_rtt_seconds"),
        heat("Out of order", "How far does spraying take packets apart? PSNs ahead of the next expected one.",
             spread("mrc_nic_reorder_distance_packets", NODE), "short"),
        lines("Marks", "Do queues build up? Packets that came with CE, and SACKs that said so.",
              Query(flow("mrc_nic_ecn_marked_packets_received_total", "", NODE), "came marked"),
              Query(flow("mrc_nic_ecn_echoes_received_total", "", NODE), "echoed by peers"), unit="pps"),
    ]  # fmt: skip


def _reliability() -> list[Panel]:
    return [
        common.retransmits(NODE),
        lines("Judged lost", "Are requestors too impatient? Received twice: sent for nothing, as receivers count.",
              Query(flow("mrc_nic_packets_judged_lost_total", "", NODE), "judged lost"),
              Query(flow("mrc_nic_losses_taken_back_total", "", NODE), "taken back"),
              Query(flow("mrc_nic_duplicate_packets_total", "", NODE), "received twice"),
              Query(flow("mrc_nic_timeouts_total", "", NODE), "timeouts"), unit="pps"),
        _kinds("Acknowledgements received", "What do receivers tell these NICs?",
               "mrc_nic_acknowledgements_received_total", "kind"),
        _kinds("Trimmed packets received", "Do queues overflow inside the fabric, or on the way down to these NICs?",
               "mrc_nic_trimmed_packets_received_total", "where"),
        _kinds("Dropped by reason", "What do these NICs throw away, and why?", "mrc_nic_drops_total", "reason",
               only_some=True),
        lines("Probes", "What is being probed, and is it answered? ends: probes because a message's end stayed silent.",
              Query(flow("mrc_nic_probes_sent_total", "purpose", NODE), "{{purpose}}: sent"),
              Query(flow("mrc_nic_probe_replies_received_total", "purpose", NODE), "{{purpose}}: answered"),
              Query(flow("mrc_nic_tail_probes_total", "", NODE), "ends"), unit="pps"),
    ]  # fmt: skip


def _paths() -> list[Panel]:
    states = lines(
        "EVs by state",
        "How many paths do the QPs of the chosen NICs use?",
        Query(level("mrc_nic_evs", "state", NODE, PLANE), "{{state}}"),
        stacked=True,
        overrides=look.state_overrides(look.EV_COLOURS),
    )
    out = _each("EVs out of use by NIC", "Is it one NIC, or all of them?", common.evs_out("node", NODE, PLANE),
                "percentunit")  # fmt: skip
    changed = lines(
        "Changes of EVs",
        "How often are paths left out, and how often does the reserve step in?",
        Query(flow("mrc_nic_ev_skips_total", "", NODE), "into SKIP"),
        Query(flow("mrc_nic_ev_replacements_total", "", NODE), "replaced"),
        unit="ops",
    )
    return [states, out, common.transitions(NODE, PLANE), changed]


def _chip() -> list[Panel]:
    return [
        lines("QP contexts", "Do all QPs fit on the chip? Capacity 0: no bound was set.",
              Query(level("mrc_nic_qp_contexts", "place", NODE), "{{place}}")).wide(8),
        lines("Context lookups", "What does it cost that they do not all fit?",
              Query(flow("mrc_nic_qp_context_lookups_total", "outcome", NODE), "{{outcome}}"), unit="ops").wide(8),
        lines("Protocol state", "How much memory would a NIC need?",
              Query(level("mrc_nic_qp_state_bytes", "moment", NODE), "{{moment}}"), unit="bytes").wide(8),
    ]  # fmt: skip


BOARD = Board(
    uids.NICS,
    "NIC and QP",
    "What does a NIC send and get, what holds it back, and what are its paths like? Rates are of fabric time.",
    (
        Row("At a glance", _figures()),
        Row("Traffic", _traffic()),
        Row("Windows", _windows()),
        Row("Times and order", _times()),
        Row("Reliability", _reliability()),
        Row("Paths", _paths()),
        Row("Chip", _chip(), folded=True),
    ),
    nodes="mrc_nic_windows",
)
