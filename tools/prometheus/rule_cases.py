"""The cases of the rules' unit tests: incoming series, and the alerts that must fire or stay silent.

Owns the situations. `rule_tests` makes promtool's file of them. The tests check that every alert has a case in which it
fires and one in which it does not, and that every recorded series has expected figures.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

STEPS: Final = 30
"""Number of scrapes in a series."""
CHANGE: Final = 12
"""The scrape at which a changing series changes; by the fourth a rate has seen the state before."""
END: Final = 24
"""The scrape at which the alerts are examined: by then every condition has held for longer than any alert waits."""

Labels: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Firing:
    """An alert that must fire."""

    labels: Labels
    summary: str


@dataclass(frozen=True, slots=True)
class AlertCase:
    """Incoming series, and the instances of one alert that fire at a scrape; none means it stays silent."""

    alert: str
    title: str
    series: Mapping[str, str]
    firing: tuple[Firing, ...] = ()
    at: int = END


@dataclass(frozen=True, slots=True)
class RecordCase:
    """Incoming series, and the samples of every recorded series at the end."""

    title: str
    series: Mapping[str, str]
    samples: Mapping[str, float] = field(default_factory=dict)
    """Series -> value. If a name's series are all missing, it must have none."""


def flat(value: float) -> str:
    """A constant value."""
    return f"{value:g}x{STEPS}"


def growing(step: float) -> str:
    """A counter that grows by `step` from scrape to scrape."""
    return f"0+{step:g}x{STEPS}"


def changing(before: float, after: float) -> str:
    """One value up to the change, then another."""
    return f"{before:g}x{CHANGE - 1} {after:g}x{STEPS - CHANGE}"


def _time(value: str) -> dict[str, str]:
    return {f'mrc_fabric_time_seconds_total{{fabric="lab",node="{node}"}}': value for node in _NODES}


_NODES = ("h000", "h001", "p0-t0-0")
_TIME = _time(growing(0.625))
_STOOD = _time(flat(7))


def _evs(good: int, assumed_bad: int, denied: int = 0) -> dict[str, str]:
    states = {"good": good, "assumed_bad": assumed_bad, "denied": denied}
    found = {
        f'mrc_nic_evs{{fabric="lab",plane="1",node="h000",state="{state}"}}': flat(count)
        for state, count in states.items()
    }
    return {**found, 'mrc_nic_evs{fabric="lab",plane="0",node="h000",state="good"}': flat(100)}


def _sent(*steps: int, placed: int = 3000) -> dict[str, str]:
    """Bytes sent into each plane per scrape, and bytes placed; a port could send 1250."""
    found = {**_TIME, 'mrc_nic_placed_bytes_total{fabric="lab",node="h001"}': growing(placed)}
    for plane, step in enumerate(steps):
        labels = f'{{fabric="lab",plane="{plane}",node="h000"}}'
        found[f"mrc_nic_port_sent_bytes_total{labels}"] = growing(step)
        found[f"mrc_nic_port_rate_bytes_per_second{labels}"] = flat(2000)
    return found


def _of(name: str, value: str, **labels: str) -> dict[str, str]:
    named = ",".join(f'{key}="{text}"' for key, text in {"fabric": "lab", **labels}.items())
    return {f"{name}{{{named}}}": value}


_LAB = {"fabric": "lab"}
_PLANE_1 = {"fabric": "lab", "plane": "1"}
_H000 = {"fabric": "lab", "node": "h000"}
_T0 = {"fabric": "lab", "plane": "0", "node": "p0-t0-0"}
_CABLE = {**_T0, "port": "3", "peer": "p0-t1-1", "towards": "t1"}

_OUT = "of its EVs, or of the NICs' ports in it, are out of use"


def _ports_up(plane: str, *up: int) -> dict[str, str]:
    """The ports of h000, h001 and so on in a plane."""
    found: dict[str, str] = {}
    for nic, value in enumerate(up):
        found |= _of("mrc_nic_port_up", flat(value), plane=plane, node=f"h{nic:03}")
    return found


_PATHS = (
    AlertCase("MrcEvsRetired", "a fifth of the EVs of a plane", _evs(80, 15, 5),
              (Firing(_PLANE_1, "20% of the EVs in plane 1 of lab are retired"),)),
    AlertCase("MrcEvsRetired", "what one bad link takes is no reason", _evs(92, 8)),
    AlertCase("MrcEvsRetired", "a fabric without QPs", _evs(0, 0)),
    AlertCase("MrcPlaneLost", "all but a few", _evs(4, 96),
              (Firing(_PLANE_1, f"plane 1 of lab carries nothing: 96% {_OUT}"),)),
    AlertCase("MrcPlaneLost", "no NIC has a port there",
              {**_evs(100, 0), **_ports_up("0", 1, 1), **_ports_up("1", 0, 0)},
              (Firing(_PLANE_1, f"plane 1 of lab carries nothing: 100% {_OUT}"),)),
    AlertCase("MrcPlaneLost", "one NIC has none", _ports_up("1", 0, 1)),
    AlertCase("MrcPlaneLost", "half of it is left", _evs(50, 50)),
    AlertCase("MrcPlaneImbalance", "a third of what the others carry", _sent(900, 900, 900, 300),
              (Firing({"fabric": "lab", "plane": "3"},
                      "plane 3 of lab carries 40% of what a plane carries on average"),)),
    AlertCase("MrcPlaneImbalance", "a little less than the others", _sent(900, 900, 900, 500)),
    AlertCase("MrcPlaneImbalance", "QPs of RC keep to one plane each",
              {**_sent(900, 900, 900, 300), **_of("mrc_nic_rc_qps_slowed", flat(0), plane="", node="h000")}),
    AlertCase("MrcPlaneImbalance", "nobody sends", _sent(0, 0, 0, 0)),
    AlertCase("MrcPlaneImbalance", "only probes, of a plane that is bad", _sent(0, 0, 0, 60, placed=0)),
    AlertCase("MrcNicPortDown", "a cut cable", _of("mrc_nic_port_up", changing(1, 0), plane="1", node="h000"),
              (Firing({**_PLANE_1, "node": "h000"}, "port of plane 1 of h000 of lab has no carrier"),)),
    AlertCase("MrcNicPortDown", "it is back", _of("mrc_nic_port_up", changing(0, 1), plane="1", node="h000")),
    AlertCase("MrcSwitchPortDown", "a cut cable", _of("mrc_switch_port_up", flat(0), **{**_CABLE, "role": "t0"}),
              (Firing(_CABLE, "port 3 of p0-t0-0 of lab towards p0-t1-1 is down"),)),
    AlertCase("MrcSwitchPortDown", "a good one", _of("mrc_switch_port_up", flat(1), **_CABLE)),
)  # fmt: skip

_QP_ERRORS = _of("mrc_nic_qp_errors_total", changing(0, 1), plane="", node="h000")
_TRIM_DROPS = "mrc_switch_port_trim_dropped_packets_total"
_WRONG = "mrc_nic_program_wrong_bytes_total"
_ALLREDUCE = {"node": "h000", "program": "job", "kind": "allreduce"}


def _retransmits(trim: int, gap: int) -> dict[str, str]:
    return {
        **_of("mrc_nic_data_packets_total", growing(1000), node="h000"),
        **_of("mrc_nic_retransmits_total", growing(trim), node="h000", cause="trim"),
        **_of("mrc_nic_retransmits_total", growing(gap), node="h000", cause="gap"),
    }


def _in_flight(placed: str, time: Mapping[str, str]) -> dict[str, str]:
    return {
        **time,
        **_of("mrc_nic_inflight_bytes", flat(4096), node="h000"),
        **_of("mrc_nic_placed_bytes_total", placed, node="h001"),
    }


_TRANSPORT = (
    AlertCase("MrcQpError", "one gave up", _QP_ERRORS, (Firing(_H000, "a QP of h000 of lab went into error"),),
              at=CHANGE + 1),
    AlertCase("MrcQpError", "it is still there", {**_QP_ERRORS, **_of("mrc_nic_qps", changing(0, 1), node="h000",
              state="error")}, (Firing(_H000, "a QP of h000 of lab went into error"),)),
    AlertCase("MrcQpError", "none since then", _QP_ERRORS, at=CHANGE + 8),
    AlertCase("MrcRetransmitStorm", "one packet in ten", _retransmits(60, 40),
              (Firing(_H000, "10% of the data packets of h000 of lab are retransmissions"),)),
    AlertCase("MrcRetransmitStorm", "one in a hundred", _retransmits(5, 5)),
    AlertCase("MrcTrimmedPacketsLost", "the control queue is full", _of(_TRIM_DROPS, growing(3), **_CABLE),
              (Firing(_T0, "p0-t0-0 of lab drops trimmed packets"),)),
    AlertCase("MrcTrimmedPacketsLost", "it was full once", _of(_TRIM_DROPS, flat(3), **_CABLE)),
    AlertCase("MrcNoProgress", "nothing arrives", _in_flight(flat(100), _TIME),
              (Firing(_LAB, "lab: packets are in flight and nothing arrives"),)),
    AlertCase("MrcNoProgress", "it does", _in_flight(growing(100), _TIME)),
    AlertCase("MrcNoProgress", "time stands still", _in_flight(flat(100), _STOOD)),
    AlertCase("MrcWrongBytes", "a damaged tensor", _of(_WRONG, changing(0, 8), **_ALLREDUCE),
              (Firing({**_LAB, **_ALLREDUCE}, "program job found wrong bytes at h000 of lab"),)),
    AlertCase("MrcWrongBytes", "all as sent", _of(_WRONG, flat(0), **_ALLREDUCE)),
)  # fmt: skip

_T1 = {"plane": "0", "role": "t1", "node": "p0-t1-1"}
_AGENT = {"role": "agent", "node": "agent", "host": "rack7"}


def _pace(nominal: float, answer_s: float, awake_s: float = 5, answers: int = 1) -> dict[str, str]:
    """A fabric that gains 5/8 fabric seconds per scrape and is awake for `awake_s` wall seconds of it.

    `nominal`: the dilation asked for; `answer_s`: the slowest daemon's answer time; `answers`: whether that daemon
    answers.
    """
    return {
        **_TIME,
        **_of("mrc_agent_fabric_time_seconds_total", growing(0.625), host="rack7"),
        **_of("mrc_agent_awake_seconds_total", growing(awake_s), host="rack7"),
        **_of("mrc_agent_dilation_nominal", flat(nominal), host="rack7"),
        **_of("scrape_duration_seconds", flat(answer_s), **_T1),
        **_of("scrape_duration_seconds", flat(0.01), role="nic", node="h000"),
        **_of("up", flat(answers), **_T1),
        **_of("up", flat(1), role="nic", node="h000"),
    }


_BUSY = (Firing(_LAB, "the machine is too busy for lab"),)
_EMULATION = (
    AlertCase("MrcDaemonGone", "a crash", _of("mrc_agent_node_up", changing(1, 0), **_T1),
              (Firing({**_LAB, **_T1}, "the daemon of p0-t1-1 of lab does not run"),)),
    AlertCase("MrcDaemonGone", "it was started anew", _of("mrc_agent_node_up", changing(0, 1), **_T1)),
    AlertCase("MrcDaemonSilent", "it lives and gives no counters",
              {**_of("up", flat(0), **_T1, host="rack7"), **_of("mrc_agent_node_up", flat(1), **_T1)},
              (Firing({**_LAB, **_T1}, "the daemon of p0-t1-1 of lab runs and does not answer"),)),
    AlertCase("MrcDaemonSilent", "its agent is silent too, which is told elsewhere",
              {**_of("up", flat(0), **_T1, host="rack7"), **_of("up", flat(0), **_AGENT)}),
    AlertCase("MrcDaemonSilent", "it is gone, which is told elsewhere",
              {**_of("up", flat(0), **_T1, host="rack7"), **_of("mrc_agent_node_up", flat(0), **_T1)}),
    AlertCase("MrcAgentGone", "killed", _of("up", changing(1, 0), **_AGENT),
              (Firing({**_LAB, "host": "rack7"}, "the agent of lab on rack7 does not answer"),)),
    AlertCase("MrcAgentGone", "it was slow for four scrapes", _of("up", "1x10 0x3 1x20", **_AGENT), at=14),
    AlertCase("MrcEmulationNotFaithful", "the machine lost a frame", _of("mrc_agent_valid", changing(1, 0)),
              (Firing(_LAB, "the figures of lab are not valid"),)),
    AlertCase("MrcEmulationNotFaithful", "it has lost none", _of("mrc_agent_valid", flat(1))),
    AlertCase("MrcEmulationOverloaded", "four times slower than asked for", _pace(2, 0.01), _BUSY),
    AlertCase("MrcEmulationOverloaded", "daemons are slow to answer", _pace(0, 0.8), _BUSY),
    AlertCase("MrcEmulationOverloaded", "one daemon does not answer at all", _pace(0, 5, answers=0)),
    AlertCase("MrcEmulationOverloaded", "as fast as asked for", _pace(8, 0.01)),
    AlertCase("MrcEmulationOverloaded", "as fast as asked for, and asleep most of the time", _pace(2, 0.01, 1.25)),
    AlertCase("MrcEmulationOverloaded", "as fast as it goes was asked for", _pace(0, 0.01)),
    AlertCase("MrcFabricStalled", "work is pending", {**_STOOD, **_of("mrc_agent_time_running", flat(1))},
              (Firing(_LAB, "fabric time of lab stands still though work is pending"),)),
    AlertCase("MrcFabricStalled", "nothing is", {**_STOOD, **_of("mrc_agent_time_running", flat(0))}),
    AlertCase("MrcFabricStalled", "time goes on", {**_TIME, **_of("mrc_agent_time_running", flat(1))}),
)  # fmt: skip

_TAKEN_BACK = "mrc_switch_routing_withdrawals_total"


def _sessions(established: int, active: int) -> dict[str, str]:
    name = "mrc_switch_routing_sessions"
    return {
        **_of(name, flat(established), **_T0, state="Established"),
        **_of(name, flat(active), **_T0, state="Active"),
    }


_ROUTING = (
    AlertCase("MrcRoutingSessionDown", "two neighbours are lost", _sessions(2, 2),
              (Firing(_T0, "p0-t0-0 of lab has lost 2 of its BGP sessions"),)),
    AlertCase("MrcRoutingSessionDown", "all are there", _sessions(4, 0)),
    AlertCase("MrcRoutingUnrest", "a session flaps", _of(_TAKEN_BACK, growing(2), **_T0, direction="in"),
              (Firing({"fabric": "lab", "plane": "0"}, "routes of plane 0 of lab are taken back again and again"),)),
    AlertCase("MrcRoutingUnrest", "one fault, once", _of(_TAKEN_BACK, changing(0, 4), **_T0, direction="in")),
    AlertCase("MrcRoutesDamped", "three", _of("mrc_switch_routing_damped_routes", flat(3), **_T0),
              (Firing(_T0, "p0-t0-0 of lab leaves 3 routes out because they flapped"),)),
    AlertCase("MrcRoutesDamped", "none", _of("mrc_switch_routing_damped_routes", flat(0), **_T0)),
    AlertCase("MrcTableBehind", "for long", _of("mrc_switch_routing_waiting_prefixes", flat(9), **_T0),
              (Firing(_T0, "the table of p0-t0-0 of lab is 9 prefixes behind"),)),
    AlertCase("MrcTableBehind", "for a moment", _of("mrc_switch_routing_waiting_prefixes", changing(9, 0), **_T0)),
)  # fmt: skip

ALERT_CASES: Final = (*_PATHS, *_TRANSPORT, *_ROUTING, *_EMULATION)


def _busy_fabric() -> dict[str, str]:
    """Two planes, one with three times the other's traffic.

    A fabric second takes eight wall seconds, four of them awake.
    """
    found = dict(_TIME)
    for name, value, labels in (
        ("mrc_agent_awake_seconds_total", growing(2.5), {}),
        ("mrc_agent_fabric_time_seconds_total", growing(0.625), {}),
        ("mrc_late_frames_total", growing(1), {"node": "h000"}),
        ("mrc_frames_total", growing(8), {"node": "h000", "direction": "in"}),
        ("mrc_frames_total", growing(99), {"node": "h000", "direction": "out"}),
        ("scrape_duration_seconds", flat(0.25), {"role": "nic", "node": "h000"}),
        ("scrape_duration_seconds", flat(0.5), {"role": "agent", "node": "agent"}),
        ("up", flat(1), {"role": "nic", "node": "h000"}),
        ("mrc_nic_placed_bytes_total", growing(1000), {"node": "h000"}),
        ("mrc_nic_placed_bytes_total", growing(500), {"node": "h001"}),
        ("mrc_nic_port_sent_bytes_total", growing(3000), {"plane": "0", "node": "h000"}),
        ("mrc_nic_port_sent_bytes_total", growing(1000), {"plane": "1", "node": "h000"}),
        ("mrc_nic_port_sent_packets_total", growing(10), {"plane": "0", "node": "h000"}),
        ("mrc_nic_port_sent_packets_total", growing(10), {"plane": "1", "node": "h000"}),
        ("mrc_nic_port_rate_bytes_per_second", flat(10816), {"plane": "0", "node": "h000"}),
        ("mrc_nic_port_rate_bytes_per_second", flat(8832), {"plane": "1", "node": "h000"}),
        ("mrc_switch_port_sent_bytes_total", growing(3000), _CABLE),
        ("mrc_switch_port_sent_packets_total", growing(10), _CABLE),
        ("mrc_switch_port_rate_bytes_per_second", flat(21632), _CABLE),
        ("mrc_switch_port_ecn_marks_total", growing(5), _CABLE),
        ("mrc_switch_port_trimmed_packets_total", growing(2.5), _CABLE),
        ("mrc_nic_evs", flat(6), {"plane": "0", "node": "h000", "state": "good"}),
        ("mrc_nic_evs", flat(1), {"plane": "0", "node": "h000", "state": "skip"}),
        ("mrc_nic_evs", flat(1), {"plane": "0", "node": "h000", "state": "assumed_bad"}),
        ("mrc_nic_evs", flat(8), {"plane": "1", "node": "h000", "state": "good"}),
        ("mrc_nic_evs", flat(0), {"plane": "1", "node": "h000", "state": "denied"}),
        ("mrc_nic_data_packets_total", growing(20), {"node": "h000"}),
        ("mrc_nic_retransmits_total", growing(5), {"node": "h000", "cause": "gap"}),
        ("mrc_nic_port_up", flat(0), {"plane": "0", "node": "h000"}),
        ("mrc_nic_port_up", flat(0), {"plane": "0", "node": "h001"}),
        ("mrc_nic_port_up", flat(1), {"plane": "1", "node": "h000"}),
        ("mrc_nic_program_steps_total", growing(4), _ALLREDUCE),
        ("mrc_nic_program_step_seconds_sum", growing(2), _ALLREDUCE),
        ("mrc_nic_program_step_seconds_count", growing(4), _ALLREDUCE),
    ):
        found.update(_of(name, value, **{key: text for key, text in labels.items() if key != "fabric"}))
    for histogram, labels in (
        ("mrc_nic_rtt_seconds", {"node": "h000"}),
        ("mrc_nic_queue_delay_seconds", {"node": "h000"}),
        ("mrc_nic_program_step_seconds", _ALLREDUCE),
    ):
        for le, count in (("1", 0), ("2", 64), ("4", 64), ("+Inf", 64)):
            found.update(_of(f"{histogram}_bucket", growing(count), **labels, le=le))
    return found


_JOB = '{fabric="lab",kind="allreduce",program="job"}'
_PORT = '{fabric="lab",node="p0-t0-0",peer="p0-t1-1",plane="0",port="3",towards="t1"}'

RECORD_CASES: Final = (
    RecordCase("a busy fabric", _busy_fabric(), {
        **{f'node:mrc_fabric_time:rate{{fabric="lab",node="{node}"}}': 0.125 for node in _NODES},
        'fabric:mrc_fabric_time:rate{fabric="lab"}': 0.125,
        'fabric:mrc_dilation:ratio{fabric="lab"}': 4,
        'fabric:mrc_late_frames:ratio{fabric="lab"}': 0.125,
        'fabric:mrc_answer_seconds:max{fabric="lab"}': 0.25,
        'node:mrc_goodput:bits_per_second{fabric="lab",node="h000"}': 12800,
        'node:mrc_goodput:bits_per_second{fabric="lab",node="h001"}': 6400,
        'fabric:mrc_goodput:bits_per_second{fabric="lab"}': 19200,
        'plane:mrc_sent:bits_per_second{fabric="lab",plane="0"}': 38400,
        'plane:mrc_sent:bits_per_second{fabric="lab",plane="1"}': 12800,
        'plane:mrc_balance:ratio{fabric="lab",plane="0"}': 1.5,
        'plane:mrc_balance:ratio{fabric="lab",plane="1"}': 0.5,
        f"link:mrc_utilisation:ratio{_PORT}": 0.25,
        'link:mrc_utilisation:ratio{fabric="lab",node="h000",plane="0",towards="t0"}': 0.5,
        'link:mrc_utilisation:ratio{fabric="lab",node="h000",plane="1",towards="t0"}': 0.25,
        'plane:mrc_utilisation:max{fabric="lab",plane="0"}': 0.5,
        'plane:mrc_utilisation:max{fabric="lab",plane="1"}': 0.25,
        'plane:mrc_marked:ratio{fabric="lab",plane="0"}': 0.5,
        'plane:mrc_trimmed:ratio{fabric="lab",plane="0"}': 0.25,
        'plane:mrc_evs_retired:ratio{fabric="lab",plane="0"}': 0.125,
        'plane:mrc_evs_retired:ratio{fabric="lab",plane="1"}': 0,
        'node:mrc_evs_retired:ratio{fabric="lab",node="h000"}': 0.0625,
        'node:mrc_retransmits:ratio{fabric="lab",node="h000"}': 0.25,
        'fabric:mrc_retransmits:ratio{fabric="lab"}': 0.25,
        'plane:mrc_ports_down:count{fabric="lab",plane="0"}': 2,
        'plane:mrc_ports_down:count{fabric="lab",plane="1"}': 0,
        'fabric:mrc_rtt_seconds:p50{fabric="lab"}': 1.5,
        'fabric:mrc_rtt_seconds:p99{fabric="lab"}': 1.99,
        'fabric:mrc_queue_delay_seconds:p99{fabric="lab"}': 1.99,
        f"program:mrc_steps:per_second{_JOB}": 6.4,
        f"program:mrc_step_seconds:mean{_JOB}": 0.5,
        f"program:mrc_step_seconds:p99{_JOB}": 1.99,
    }),
    RecordCase("a fabric asleep has no rates", {
        **_STOOD,
        **_of("mrc_nic_placed_bytes_total", flat(1000), node="h000"),
        **_of("mrc_nic_rtt_seconds_bucket", flat(64), node="h000", le="1"),
        **_of("mrc_nic_rtt_seconds_bucket", flat(64), node="h000", le="+Inf"),
        **_of("mrc_nic_data_packets_total", flat(20), node="h000"),
        **_of("mrc_nic_retransmits_total", flat(5), node="h000", cause="gap"),
    }, {
        **{f'node:mrc_fabric_time:rate{{fabric="lab",node="{node}"}}': 0 for node in _NODES},
        'fabric:mrc_fabric_time:rate{fabric="lab"}': 0,
    }),
)  # fmt: skip
