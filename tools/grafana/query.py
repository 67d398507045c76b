"""The expressions of the boards: series of the chosen fabric, rates per second of fabric time, quantiles.

A fabric runs slower than the wall clock and stands still while it sleeps, so a rate per second of the wall clock says
little about it. The boards divide such a rate by the pace of the node that counts: its fabric seconds per wall second,
over the same scrapes. So the quotient is exact even where work begins and ends between two scrapes. A sleeping fabric
has no pace, and such a panel shows a gap. `orchestrator.prometheus.recording` makes the recorded series in the same
way; boards do not need them.
"""

from dataclasses import dataclass

from mrcfabric.egress_config import OVERHEAD_BYTES

FABRIC = 'fabric="$fabric"'
PLANE = 'plane=~"$plane"'
NODE = 'node=~"$node"'


@dataclass(frozen=True, slots=True)
class Query:
    """One expression, and the legend of its series."""

    expr: str
    legend: str = ""
    """Grafana's template: `{{label}}`. A table needs none."""


def series(metric: str, *matchers: str) -> str:
    """The series of a metric of the chosen fabric."""
    return f"{metric}{{{','.join((FABRIC, *matchers))}}}"


def rate(metric: str, *matchers: str) -> str:
    """The rate of a metric per second of wall time."""
    return f"rate({series(metric, *matchers)}[$__rate_interval])"


PACE = f"(sum by (fabric, node) ({rate('mrc_fabric_time_seconds_total')}) > 0)"
"""Fabric seconds per wall second of each node; no series while the fabric sleeps."""


def paced(expr: str) -> str:
    """Turns a node's rate per second of wall time into one of fabric time."""
    return f"{expr} / on (fabric, node) group_left () {PACE}"


def total(by: str, expr: str) -> str:
    """An expression, summed by labels (`plane, state`); the fabric is always one of them."""
    return f"sum by ({_labels(by)}) ({expr})"


def flow(metric: str, by: str, *matchers: str) -> str:
    """The rate of a counter per second of fabric time, summed by labels."""
    return total(by, paced(rate(metric, *matchers)))


def bits(metric: str, by: str, *matchers: str) -> str:
    """A counter of bytes, as bits per second of fabric time, summed by labels."""
    return f"8 * {flow(metric, by, *matchers)}"


def level(metric: str, by: str, *matchers: str) -> str:
    """A gauge, summed by labels."""
    return total(by, series(metric, *matchers))


def highest(metric: str, by: str, *matchers: str) -> str:
    """The greatest value of a gauge, by labels."""
    return f"max by ({_labels(by)}) ({series(metric, *matchers)})"


def share(part: str, whole: str, by: str = "") -> str:
    """A ratio of two sums by the same labels; no value where the whole is 0."""
    return f"{part} / on ({_labels(by)}) ({whole} > 0)"


def utilisation(ports: str, by: str, *matchers: str) -> str:
    """Used share of the ports' rate, framing included; `ports`: the family of metrics, as `mrc_nic_port`."""
    sent_bytes, sent_packets = (rate(f"{ports}_sent_{what}_total", *matchers) for what in ("bytes", "packets"))
    sent = total(by, paced(f"({sent_bytes} + {OVERHEAD_BYTES} * {sent_packets})"))
    return f"{sent} / on ({_labels(by)}) {level(f'{ports}_rate_bytes_per_second', by, *matchers)}"


def quantile(point: float, histogram: str, by: str, *matchers: str) -> str:
    """A quantile of a histogram's observations in the interval, if there are any; `histogram` without `_bucket`."""
    counted = total(f"{by}, le" if by else "le", rate(f"{histogram}_bucket", *matchers))
    return f"histogram_quantile({point}, {counted}) >= 0"


def spread(histogram: str, *matchers: str) -> str:
    """Observations per bucket and interval, for a heat map."""
    return f"sum by (le) (increase({series(f'{histogram}_bucket', *matchers)}[$__rate_interval]))"


def top(count: int, expr: str) -> str:
    """The greatest series of an expression."""
    return f"topk({count}, {expr})"


def bottom(count: int, expr: str) -> str:
    """The least series of an expression."""
    return f"bottomk({count}, {expr})"


def _labels(by: str) -> str:
    return f"fabric, {by}" if by else "fabric"
