"""The recorded series: what the counters mean in fabric time, for people, boards and alerts.

Owns names and expressions. Prometheus takes rates per wall second. For figures of the fabric an expression divides such
a rate by the rate of fabric time; a fabric whose time stands still has no such figure. Both rates come from the same
node, whose series are scraped at the same instants. So their ratio is exact although the rates are not. Levels are
fabric, plane, node, link (one direction, at the port that sends) and program.
"""

from typing import Final

from mrcfabric.egress_config import OVERHEAD_BYTES
from orchestrator.prometheus.rule import Record

_TIME = "fabric:mrc_fabric_time:rate"
_NODE_TIME = "node:mrc_fabric_time:rate"
_PER_TIME = f"/ on (fabric, node) group_left () ({_NODE_TIME} > 0)"
_BPS, _SHARE, _S = "bit/s", "share", "s"


def _share(name: str, level: str, part: str, whole: str, meaning: str) -> Record:
    """Record the share of `part` in `whole`, both rates of counters; no value where nothing happens."""
    by = level if level == "fabric" else f"fabric, {level}"
    parts, wholes = (f"sum by ({by}) (rate({selector}[W]))" for selector in (part, whole))
    return Record(f"{level}:{name}:ratio", f"{parts} / ({wholes} > 0)", _SHARE, meaning)


def _quantile(name: str, share: float, by: str, histogram: str, meaning: str) -> Record:
    """Record a quantile of a histogram over the window; no value where nothing was observed."""
    buckets = f"sum by ({by}, le) (rate({histogram}_bucket[W]))"
    return Record(name, f"histogram_quantile({share:g}, {buckets}) >= 0", _S, meaning)


def _utilisation(family: str, labels: str, set_labels: tuple[tuple[str, str], ...], meaning: str) -> Record:
    """Record the utilisation of a family of ports: bytes on the wire, framing included, over the port's rate."""
    sent_bytes, sent_packets = (f"rate({family}_sent_{what}_total[W])" for what in ("bytes", "packets"))
    sent = f"sum by ({labels}) ({sent_bytes} + {OVERHEAD_BYTES} * {sent_packets})"
    rate = f"sum by ({labels}) ({family}_rate_bytes_per_second)"
    return Record("link:mrc_utilisation:ratio", f"{sent} {_PER_TIME} / {rate}", _SHARE, meaning, set_labels)


_PACE: Final = (
    Record(_NODE_TIME, "sum by (fabric, node) (rate(mrc_fabric_time_seconds_total[W]))", "s/s",
           "Fabric seconds per wall second at a node, over the scrapes of its other series."),
    Record(_TIME, f"avg by (fabric) ({_NODE_TIME})", "s/s",
           "Fabric seconds per wall second; 0 while the fabric sleeps or stands."),
    Record("fabric:mrc_dilation:ratio",
           "sum by (fabric) (rate(mrc_agent_awake_seconds_total[W])) / "
           "(sum by (fabric) (rate(mrc_agent_fabric_time_seconds_total[W])) > 0)", "s/s",
           "Wall seconds per fabric second while the fabric is awake: the effective dilation of now."),
    _share("mrc_late_frames", "fabric", "mrc_late_frames_total", 'mrc_frames_total{direction="in"}',
           "Frames that were handled after their arrival time had passed."),
    Record("fabric:mrc_answer_seconds:max",
           'max by (fabric) (avg_over_time(scrape_duration_seconds{role=~"nic|t0|t1"}[W]) '
           "and on (fabric, node) up == 1)", _S,
           "Wall time that the slowest daemon takes to say what it counts, of those that do."),
)  # fmt: skip

_TRAFFIC: Final = (
    Record("node:mrc_goodput:bits_per_second",
           f"8 * sum by (fabric, node) (rate(mrc_nic_placed_bytes_total[W])) {_PER_TIME}", _BPS,
           "New payload placed in a NIC's memory, per second of fabric time."),
    Record("fabric:mrc_goodput:bits_per_second", "sum by (fabric) (node:mrc_goodput:bits_per_second)", _BPS,
           "The same of the whole fabric."),
    Record("plane:mrc_sent:bits_per_second",
           f"8 * sum by (fabric, plane) (rate(mrc_nic_port_sent_bytes_total[W]) {_PER_TIME})", _BPS,
           "What NICs send into a plane, per second of fabric time."),
    Record("plane:mrc_balance:ratio",
           "plane:mrc_sent:bits_per_second / on (fabric) group_left () "
           "(avg by (fabric) (plane:mrc_sent:bits_per_second) > 0)", _SHARE,
           "What NICs send into a plane over what they send into one on average: 1 when all are even."),
    _utilisation("mrc_switch_port", "fabric, plane, node, port, peer, towards", (),
                 "Share of its rate that a switch's port sends, framing included."),
    _utilisation("mrc_nic_port", "fabric, plane, node", (("towards", "t0"),),
                 "The same of a NIC's port; its T0 is that of the plane."),
    Record("plane:mrc_utilisation:max", "max by (fabric, plane) (link:mrc_utilisation:ratio)", _SHARE,
           "The busiest link of a plane."),
    _share("mrc_marked", "plane", "mrc_switch_port_ecn_marks_total", "mrc_switch_port_sent_packets_total",
           "Packets that switches mark CE, of those they send."),
    _share("mrc_trimmed", "plane", "mrc_switch_port_trimmed_packets_total", "mrc_switch_port_sent_packets_total",
           "Packets that switches trim, over those they send."),
)  # fmt: skip

_RETIRED = 'state=~"assumed_bad|denied"'

_TRANSPORT: Final = (
    *(Record(f"{level}:mrc_evs_retired:ratio",
             f"sum by ({by}) (mrc_nic_evs{{{_RETIRED}}}) / (sum by ({by}) (mrc_nic_evs) > 0)", _SHARE,
             f"EVs in ASSUMED_BAD or DENIED, of all EVs of connected QPs {where}.")
      for level, by, where in (("plane", "fabric, plane", "in a plane"), ("node", "fabric, node", "at a NIC"))),
    *(_share("mrc_retransmits", level, "mrc_nic_retransmits_total", "mrc_nic_data_packets_total",
             f"Retransmissions, of the data packets that {whose} sent.")
      for level, whose in (("node", "a NIC"), ("fabric", "all NICs"))),
    Record("plane:mrc_ports_down:count", "sum by (fabric, plane) (1 - mrc_nic_port_up)", "ports",
           "NIC ports without carrier."),
    _quantile("fabric:mrc_rtt_seconds:p50", 0.5, "fabric", "mrc_nic_rtt_seconds", "Median round trip."),
    _quantile("fabric:mrc_rtt_seconds:p99", 0.99, "fabric", "mrc_nic_rtt_seconds",
              "Round trip that one sample in a hundred exceeds."),
    _quantile("fabric:mrc_queue_delay_seconds:p99", 0.99, "fabric", "mrc_nic_queue_delay_seconds",
              "Queue delay that one sample in a hundred exceeds."),
)  # fmt: skip

_WORK: Final = (
    Record("program:mrc_steps:per_second",
           f"sum by (fabric, program, kind) (rate(mrc_nic_program_steps_total[W]) {_PER_TIME})", "steps/s",
           "Steps that the ranks of a program finish together, per second of fabric time."),
    Record("program:mrc_step_seconds:mean",
           "sum by (fabric, program, kind) (rate(mrc_nic_program_step_seconds_sum[W])) / "
           "(sum by (fabric, program, kind) (rate(mrc_nic_program_step_seconds_count[W])) > 0)", _S,
           "Mean time of a step, all ranks."),
    _quantile("program:mrc_step_seconds:p99", 0.99, "fabric, program, kind", "mrc_nic_program_step_seconds",
              "Time of a step that one in a hundred exceeds."),
)  # fmt: skip

RECORDS: Final = {"pace": _PACE, "traffic": _TRAFFIC, "transport": _TRANSPORT, "work": _WORK}
"""Subject -> records, in the order of evaluation: a record may use those before it."""
