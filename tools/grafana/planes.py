"""The board "Plane and switch": which link of which switch is full, marks, trims, loses packets or is down.

The variable `plane` narrows it to planes, `node` to switches; panels with many series show the greatest.
"""

from tools.grafana import common, look, uids
from tools.grafana.board import Board, Row
from tools.grafana.panels import Column, Panel, bars, figure, lines, spans, table
from tools.grafana.query import (
    NODE,
    PLANE,
    Query,
    flow,
    highest,
    level,
    series,
    top,
    utilisation,
)

PORT = "plane, node, port, peer"
_PORT_LEGEND = "{{node}} to {{peer}}"
_SHOWN = 12


def _utilisation(by: str) -> str:
    return utilisation("mrc_switch_port", by, PLANE, NODE)


def _worst(title: str, question: str, expr: str, unit: str) -> Panel:
    return lines(title, question, Query(top(_SHOWN, expr), _PORT_LEGEND), unit=unit)


def _figures() -> list[Panel]:
    down = f"sum by (fabric) (1 - {series('mrc_switch_port_up', PLANE, NODE)})"
    frozen = f"sum by (fabric) (1 - {series('mrc_switch_forwarding', PLANE, NODE)})"
    deepest = highest("mrc_switch_port_data_queue_bytes_max", "", PLANE, NODE)
    return [
        figure("Fullest link", "Is a link at its rate?", f"max by (fabric) ({_utilisation(PORT)})",
               unit="percentunit", curve=True).wide(4),
        figure("Switches", "How many are chosen?", f"count by (fabric) ({series('mrc_switch_forwarding', PLANE, NODE)})"
               ).wide(4),
        figure("Frozen switches", "Does a switch stand still?", frozen, limits=look.NONE_IS_GOOD).wide(4),
        figure("Ports down", "Does nothing pass from a port to its peer?", down, limits=look.NONE_IS_GOOD).wide(4),
        figure("Deepest queue ever", "How close did a data queue come to its bound?", deepest, unit="bytes").wide(4),
        common.faults_active().wide(4),
    ]  # fmt: skip


def _links() -> list[Panel]:
    towards = "plane, towards"
    return [
        lines("Utilisation by tier", "Where is the traffic: down to the NICs, up to the T1s, or back down to the T0s? "
              "Sent, as a share of the rate of the ports that lead there, framing included.",
              Query(_utilisation(towards), "plane {{plane}} to {{towards}}"), unit="percentunit"),
        bars("Fullest links", "Which links are near their rate, now?",
             Query(top(_SHOWN, _utilisation(PORT)), _PORT_LEGEND), unit="percentunit", highest=1,
             limits=look.steps(look.GOOD, (0.8, look.SKIP), (0.95, look.BAD))),
    ]  # fmt: skip


def _queues() -> list[Panel]:
    def worst(title: str, question: str, metric: str) -> Panel:
        return _worst(title, question, flow(metric, PORT, PLANE, NODE), "pps")

    return [
        _worst("Data queues", "Where does data wait? A queue is looked at once per scrape: marks and trims tell of "
               "those between.", level("mrc_switch_port_data_queue_bytes", PORT, PLANE, NODE), "bytes"),
        _worst("Control queues", "Where do acknowledgements and trimmed packets wait?",
               level("mrc_switch_port_control_queue_bytes", PORT, PLANE, NODE), "bytes"),
        worst("Marked", "Which queue builds up? Packets marked CE.", "mrc_switch_port_ecn_marks_total"),
        worst("Trimmed", "Which queue overflows? Packets cut short.", "mrc_switch_port_trimmed_packets_total"),
        lines("What became of trimmed packets", "Do receivers hear of what was cut? Dropped ones have to be noticed by "
              "a gap or a timeout.",
              Query(flow("mrc_switch_port_trim_admitted_packets_total", "", PLANE, NODE), "admitted"),
              Query(flow("mrc_switch_port_trim_dropped_packets_total", "", PLANE, NODE), "dropped"), unit="pps"),
        lines("Control class", "How much of what is sent is control, and does it press data aside?",
              Query(flow("mrc_switch_port_control_packets_total", "", PLANE, NODE), "control packets"),
              Query(flow("mrc_switch_port_control_held_total", "", PLANE, NODE), "held back for data"), unit="pps"),
    ]  # fmt: skip


def _losses() -> list[Panel]:
    return [
        lines("Drops at ports by reason", "Which link loses packets: its queue, or the cable?",
              Query(top(_SHOWN, flow("mrc_switch_port_drops_total", "node, peer, reason", PLANE, NODE) + " > 0"),
                    "{{node}} to {{peer}}: {{reason}}"),
              unit="pps"),
        lines("Drops of switches by reason", "Does a switch get packets that it can send nowhere?",
              Query(flow("mrc_switch_drops_total", "node, reason", PLANE, NODE) + " > 0", "{{node}}: {{reason}}"),
              unit="pps"),
        lines("Touched by faults", "What do faults do to packets that are not lost: copies, damage, delay?",
              Query(flow("mrc_switch_touched_packets_total", "what", PLANE, NODE), "{{what}}"), unit="pps"),
        spans("Ports that have been down", "Which direction of which link let nothing pass, and when? Switches do not "
              "notice; NICs find out by silence.",
              Query(f"{highest('mrc_switch_port_up', PORT, PLANE, NODE)} == 0", _PORT_LEGEND),
              meanings=common.UP_DOWN),
    ]  # fmt: skip


def _ports() -> list[Panel]:
    def number(name: str, metric: str, unit: str = "pps") -> Column:
        return Column(name, expr=flow(metric, PORT, PLANE, NODE), unit=unit)

    return [
        table(
            "All ports",
            "How is each port, now? Sort by what you look for.",
            Column("Plane", "plane"),
            Column("Switch", "node"),
            Column("Port", "port"),
            Column("Peer", "peer"),
            Column("Up", expr=level("mrc_switch_port_up", PORT, PLANE, NODE), limits=look.ONE_IS_GOOD),
            Column("Utilisation", expr=_utilisation(PORT), unit="percentunit"),
            Column("Data waiting", expr=level("mrc_switch_port_data_queue_bytes", PORT, PLANE, NODE), unit="bytes"),
            number("Marked", "mrc_switch_port_ecn_marks_total"),
            number("Trimmed", "mrc_switch_port_trimmed_packets_total"),
            number("Dropped", "mrc_switch_port_drops_total"),
            order="Utilisation",
        ).wide(24, 12)
    ]


BOARD = Board(
    uids.PLANES,
    "Plane and switch",
    "Which link of which switch is full, marks, trims, loses packets or is down? Rates are of fabric time.",
    (
        Row("At a glance", _figures()),
        Row("Links", _links()),
        Row("Queues", _queues()),
        Row("Losses", _losses()),
        Row("Ports", _ports()),
    ),
    nodes="mrc_switch_forwarding",
)
