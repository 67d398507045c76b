"""Panels and expressions that several boards share, so that they show the same everywhere."""

from orchestrator.prometheus.alerts import EVS_RETIRED_SHARE
from tools.grafana import look, uids
from tools.grafana.board import link_to
from tools.grafana.panels import Panel, figure, lines, spans
from tools.grafana.query import PLANE, Query, bits, flow, level, series, share, utilisation

OUT_OF_USE = 'state=~"assumed_bad|denied"'
EVS_OUT_LIMIT = EVS_RETIRED_SHARE
"""The limit of the alert: a greater share is retired than one bad link explains."""

GOODPUT = bits("mrc_nic_placed_bytes_total", "")
NIC_RATE = f"8 * {level('mrc_nic_port_rate_bytes_per_second', '')}"
YES_NO = ((0, "no", look.BAD), (1, "yes", look.GOOD))
UP_DOWN = ((0, "down", look.BAD), (1, "up", look.GOOD))


def evs_out(by: str, *matchers: str) -> str:
    """Share of the EVs that are in ASSUMED_BAD or DENIED."""
    return share(level("mrc_nic_evs", by, OUT_OF_USE, *matchers), level("mrc_nic_evs", by, *matchers), by)


def faults_active() -> Panel:
    """How many faults are in force."""
    return figure(
        "Faults in force",
        "Is what I see somebody's experiment? Faults that were injected and deaths that nobody asked for.",
        level("mrc_agent_faults_active", ""),
        limits=look.steps(look.GOOD, (1, look.SKIP)),
        link=link_to(uids.FAULTS, "Faults and recovery"),
    )


def faults_over_time() -> Panel:
    """A bar for each fault, as long as it is in force."""
    return spans(
        "Faults in force",
        "Which fault was in force when, and where? Short faults between two scrapes may not show.",
        Query(series("mrc_agent_fault_active"), "{{fault}} {{kind}} {{targets}}"),
        meanings=((1, "in force", look.BAD),),
    )


def goodput() -> Panel:
    """Goodput of the fabric."""
    return lines(
        "Goodput",
        "How fast does work get done? New payload placed in memory, per second of fabric time; duplicates, headers and "
        "retransmissions do not count. A gap: the fabric was asleep.",
        Query(GOODPUT, "goodput"),
        unit="bps",
        overrides=[look.override("/^goodput$/", color=look.fixed(look.GOOD))],
    )


def plane_utilisation() -> Panel:
    """How much of the NICs' ports each plane uses."""
    return lines(
        "Traffic of NICs by plane",
        "Do the planes carry even shares? What NICs sent into each, framing included, as a share of their ports' rate.",
        Query(
            utilisation("mrc_nic_port", "plane", PLANE),
            "plane {{plane}}",
        ),
        unit="percentunit",
        overrides=look.plane_overrides(),
        link=link_to(uids.PLANES, "Plane and switch", "plane"),
    )


def evs_out_by_plane() -> Panel:
    """Share of EVs out of use, plane by plane."""
    return lines(
        "EVs out of use by plane",
        "Which plane have NICs lost paths in? EVs in ASSUMED_BAD or DENIED, of all EVs of connected QPs in the plane.",
        Query(evs_out("plane", PLANE), "plane {{plane}}"),
        unit="percentunit",
        overrides=look.plane_overrides(),
        limits=look.steps(look.GOOD, (EVS_OUT_LIMIT, look.BAD)),
        link=link_to(uids.PLANES, "Plane and switch", "plane"),
    )


def retransmits(*matchers: str) -> Panel:
    """Retransmissions by cause."""
    return lines(
        "Retransmissions by cause",
        "What is lost, and how was it noticed? gap: a SACK left it out; trim, nack: a switch cut it short (nack of RC: "
        "a gap); timeout: silence for the whole RTO; port_down: its port lost carrier. A healthy fabric has none.",
        Query(flow("mrc_nic_retransmits_total", "cause", *matchers), "{{cause}}"),
        unit="pps",
        stacked=True,
    )


def transitions(*matchers: str) -> Panel:
    """EV transitions by new state and cause."""
    return lines(
        "EV transitions",
        "What retires paths, and what brings them back? Entries into a state, by cause.",
        Query(flow("mrc_nic_ev_transitions_total", "state, cause", *matchers), "{{state}}: {{cause}}"),
        unit="ops",
    )
