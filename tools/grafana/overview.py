"""The board "Fabric overview": is the fabric well, and if not, in which plane and why.

The board that somebody on call opens first: one line of figures, then goodput, planes, EVs and losses, then what is
broken.
"""

from tools.grafana import common, look, uids
from tools.grafana.board import Board, Row, link_to
from tools.grafana.panels import Column, Panel, figure, lines, table
from tools.grafana.query import PLANE, Query, bits, bottom, flow, level, quantile, series, share


def _figures() -> list[Panel]:
    down = f"sum by (fabric) (1 - {series('mrc_nic_port_up')})"
    dead = f"sum by (fabric) (1 - {series('mrc_agent_node_up')})"
    in_error = level("mrc_nic_qps", "", 'state="error"')
    fidelity = link_to(uids.FIDELITY, "Emulator fidelity")
    return [
        figure("Goodput", "How fast does work get done, in bits per second of fabric time?", common.GOODPUT,
               unit="bps", curve=True),
        figure("Of what the NICs can", "How much of the rate of all NIC ports together is goodput?",
               f"{common.GOODPUT} / on (fabric) ({common.NIC_RATE})", unit="percentunit", curve=True),
        figure("EVs out of use", "How many paths have NICs given up?", common.evs_out(""), unit="percentunit",
               limits=look.steps(look.GOOD, (0.0001, look.SKIP), (common.EVS_OUT_LIMIT, look.BAD)),
               link=link_to(uids.FAULTS, "Faults and recovery")),
        figure("NIC ports down", "Has a NIC lost a plane?", down, limits=look.NONE_IS_GOOD),
        figure("QPs in error", "Has a job lost a connection?", in_error, limits=look.NONE_IS_GOOD,
               link=link_to(uids.NICS, "NIC and QP")),
        figure("Dead nodes", "Does every daemon run?", dead, limits=look.NONE_IS_GOOD, link=fidelity),
        common.faults_active(),
        figure("Faithful", "May the figures be believed? No, when the machine itself lost frames or handled too many "
               "after their time.", series("mrc_agent_valid"), meanings=common.YES_NO, limits=look.ONE_IS_GOOD,
               link=fidelity),
    ]  # fmt: skip


def _traffic() -> list[Panel]:
    to_nic = link_to(uids.NICS, "NIC and QP", "node")
    return [
        common.goodput(),
        common.plane_utilisation(),
        lines("Goodput of NICs", "Which NIC gets less than the others? The twelve that get least, if anything.",
              Query(bottom(12, bits("mrc_nic_placed_bytes_total", "node") + " > 0"), "{{node}}"), unit="bps",
              link=to_nic),
        lines("Round trips", "Do queues build up? Median and 99th percentile over all NICs, in fabric time.",
              Query(quantile(0.5, "mrc_nic_rtt_seconds", "fabric"), "median"),
              Query(quantile(0.99, "mrc_nic_rtt_seconds", "fabric"), "99 %"),
              Query(quantile(0.99, "mrc_nic_queue_delay_seconds", "fabric"), "99 % of the queue delay"), unit="s"),
    ]  # fmt: skip


def _paths() -> list[Panel]:
    states = lines(
        "EVs by state",
        "How many paths are in use? GOOD carries data; SKIP is left out once, which is normal; ASSUMED_BAD waits for "
        "a probe; DENIED for the controller.",
        Query(level("mrc_nic_evs", "state", PLANE), "{{state}}"),
        stacked=True,
        overrides=look.state_overrides(look.EV_COLOURS),
    )
    return [states, common.evs_out_by_plane(), common.transitions(PLANE), common.retransmits()]


def _queues() -> list[Panel]:
    def by_plane(title: str, question: str, metric: str) -> Panel:
        sent = flow("mrc_switch_port_sent_packets_total", "plane", PLANE)
        whole = Query(share(flow(metric, "plane", PLANE), sent, "plane"), "plane {{plane}}")
        return lines(title, question, whole, unit="percentunit", overrides=look.plane_overrides()).wide(8)

    return [
        by_plane("Marked", "Where do queues build up? Packets marked CE, of those that switches sent.",
                 "mrc_switch_port_ecn_marks_total"),
        by_plane("Trimmed", "Where do queues overflow? Packets cut short, of those that switches sent.",
                 "mrc_switch_port_trimmed_packets_total"),
        lines("Dropped by switches", "What do switches lose, and why?",
              Query(flow("mrc_switch_drops_total", "plane, reason", PLANE) + " > 0", "plane {{plane}}: {{reason}}"),
              unit="pps").wide(8),
    ]  # fmt: skip


def _broken() -> list[Panel]:
    faults = table(
        "Faults in force",
        "What has been broken on purpose, and by whom?",
        Column("Fault", "fault"),
        Column("Kind", "kind"),
        Column("Targets", "targets"),
        Column("Owner", "owner"),
        Column("In force", expr=series("mrc_agent_fault_active")),
        order="Fault",
        rising=True,
    )
    ports = table(
        "NIC ports that are down",
        "Which NIC has lost which plane?",
        Column("NIC", "node", link=link_to(uids.NICS, "NIC and QP", "node", row=True)),
        Column("Plane", "plane"),
        Column("Up", expr=f"{series('mrc_nic_port_up')} == 0"),
        order="NIC",
        rising=True,
    )
    return [faults.wide(16), ports.wide(8)]


BOARD = Board(
    uids.OVERVIEW,
    "Fabric overview",
    "Is the fabric well, and if not, in which plane and why? Rates are of fabric time.",
    (
        Row("At a glance", _figures()),
        Row("Traffic", _traffic()),
        Row("Paths", _paths()),
        Row("Queues", _queues()),
        Row("Broken", _broken()),
    ),
)
