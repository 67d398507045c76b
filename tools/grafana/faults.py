"""The board "Faults and recovery": what was broken, when NICs noticed, what it cost, when all was well again."""

from tools.grafana import common, look, uids
from tools.grafana.board import Board, Row, link_to
from tools.grafana.panels import Column, Panel, figure, lines, spans, table
from tools.grafana.query import PLANE, Query, flow, highest, level, series


def _figures() -> list[Panel]:
    ports = f"sum by (fabric) (1 - {series('mrc_switch_port_up', PLANE)})"
    return [
        common.faults_active().wide(4),
        figure("EVs in ASSUMED_BAD", "How many paths wait for a probe to bring them back?",
               level("mrc_nic_evs", "", PLANE, 'state="assumed_bad"'), limits=look.steps(look.GOOD, (1, look.SKIP))
               ).wide(4),
        figure("EVs in DENIED", "How many paths wait for the controller?",
               level("mrc_nic_evs", "", PLANE, 'state="denied"'), limits=look.steps(look.GOOD, (1, look.DENIED))
               ).wide(4),
        figure("NIC ports down", "Has a NIC lost a plane?", f"sum by (fabric) (1 - {series('mrc_nic_port_up', PLANE)})",
               limits=look.NONE_IS_GOOD).wide(4),
        figure("Switch ports down", "From how many ports does nothing pass?", ports, limits=look.NONE_IS_GOOD).wide(4),
        figure("QPs in error", "Did a connection not survive it?", level("mrc_nic_qps", "", 'state="error"'),
               limits=look.NONE_IS_GOOD).wide(4),
    ]  # fmt: skip


def _course() -> list[Panel]:
    """Panels below each other on one time axis, so that cause and effect can be read down the page."""
    return [panel.wide(24) for panel in (common.faults_over_time(), common.goodput(), common.evs_out_by_plane())]


def _noticed() -> list[Panel]:
    answered = lines(
        "Probes and answers",
        "Are retired paths being tried, and do they answer? Answers below probes: some still lead nowhere.",
        Query(flow("mrc_nic_probes_sent_total", "", 'purpose="ev"'), "probes"),
        Query(flow("mrc_nic_probe_replies_received_total", "", 'purpose="ev"'), "answers"),
        unit="pps",
    )
    told = lines(
        "Port Status Updates",
        "Did NICs tell each other of ports that went down or came up?",
        Query(flow("mrc_nic_port_updates_total", "direction"), "{{direction}}"),
        unit="pps",
    )
    return [common.transitions(PLANE), common.retransmits(), answered, told]


def _ports() -> list[Panel]:
    nic = f"{highest('mrc_nic_port_up', 'node, plane', PLANE)} == 0"
    switch = f"{highest('mrc_switch_port_up', 'node, peer', PLANE)} == 0"
    return [
        spans("Ports down as NICs see it", "Which NIC lost carrier in which plane?",
              Query(nic, "{{node}} plane {{plane}}"), meanings=common.UP_DOWN),
        spans("Ports down as switches have it", "From which switch does nothing pass to which peer?",
              Query(switch, "{{node}} to {{peer}}"), meanings=common.UP_DOWN),
        lines("Drops at ports", "Where do packets vanish? Of switches and of NICs, by reason.",
              Query(flow("mrc_switch_port_drops_total", "reason", PLANE) + " > 0", "switches: {{reason}}"),
              Query(flow("mrc_nic_port_drops_total", "reason", PLANE) + " > 0", "NICs: {{reason}}"), unit="pps"),
        spans("Dead nodes", "Which nodes were dead, and when?",
              Query(f"max by (fabric, node) ({series('mrc_agent_node_up')}) == 0", "{{node}}"),
              meanings=common.UP_DOWN, link=link_to(uids.FIDELITY, "Emulator fidelity")),
    ]  # fmt: skip


def _ledger() -> list[Panel]:
    kinds = f"{level('mrc_agent_faults_injected_total', 'kind')} > 0"
    whole = table(
        "Faults by kind",
        "What has been done to this fabric so far?",
        Column("Kind", "kind"),
        Column("Injected", expr=kinds),
        Column("In force", expr=f"{level('mrc_agent_faults_active', 'kind')} and on (fabric, kind) ({kinds})"),
        order="Injected",
    )
    worst = table(
        "EVs out of use by NIC",
        "Who suffers?",
        Column("NIC", "node", link=link_to(uids.NICS, "NIC and QP", "node", row=True)),
        Column("Plane", "plane"),
        Column("Out of use", expr=common.evs_out("node, plane", PLANE), unit="percentunit"),
        Column("EVs", expr=level("mrc_nic_evs", "node, plane", common.OUT_OF_USE, PLANE)),
        order="Out of use",
    )
    return [whole.wide(10), worst.wide(14)]


def _links() -> list[Panel]:
    lost = flow("mrc_nic_self_probes_total", "plane, outcome", PLANE)
    return [
        lines("Probes of NICs to themselves", "Does the mapper see losses? Only while `mrcfabric mapper` runs.",
              Query(lost, "plane {{plane}}: {{outcome}}"), unit="ops"),
        lines("Links by verdict", "Which links does the mapper find bad?",
              Query(level("mrc_agent_links", "plane, verdict", PLANE), "plane {{plane}}: {{verdict}}")),
    ]  # fmt: skip


BOARD = Board(
    uids.FAULTS,
    "Faults and recovery",
    "What was broken, how soon did NICs notice, what did it cost, and when was all well again?",
    (
        Row("At a glance", _figures()),
        Row("Course", _course()),
        Row("Noticed and brought back", _noticed()),
        Row("Ports and nodes", _ports()),
        Row("Ledger", _ledger()),
        Row("Mapper", _links(), folded=True),
    ),
)
