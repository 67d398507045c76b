"""What a fault cost: goodput around it, packets, EVs, and how long until the fabric was itself again.

Pure: from an episode's instants, the goodput bins and the counters before and after it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES
from mrcfabric.units import GBPS, Instant
from orchestrator.apps.timetable import Episode
from orchestrator.measures.accounting import difference
from orchestrator.measures.goodput import Goodput

Baseline: TypeAlias = tuple[Instant, Instant]
"""From when to when nothing was broken and the load was steady."""

MS_PER_S = 1e3
AVERAGE_RTTS = 2
"""Goodput is averaged over this long when its recovery is looked for."""
QUIET_RTTS = 12
"""Before and after an episode nothing else happens for this long."""
SETTLE_RTTS = 15
"""The share of a NIC with a port down is taken after this long: what was lost on the port is there by then."""


@dataclass(slots=True)
class Happened:
    """An episode as it took place."""

    episode: Episode
    start_ns: Instant
    end_ns: Instant
    """The last repair."""
    before: dict[str, int]
    """`Books.cost()` before the start."""
    after: dict[str, int] = field(default_factory=dict)
    """The same when the fabric was quiet again; empty as long as it is not."""
    well_ns: Instant | None = None
    """When every EV was seen GOOD or SKIP and every port up again."""
    over_ns: Instant | None = None
    """The end of the quiet after it."""


def pulses_ns(episode: Episode, start_ns: Instant, rtt_ns: int) -> list[tuple[Instant, Instant]]:
    """The (down, up) instants of an episode."""
    return [(start_ns + down * rtt_ns, start_ns + up * rtt_ns) for down, up in episode.pulses]


def cost_of(
    happened: Happened,
    goodput: Goodput,
    rtt_ns: int,
    baseline: Baseline,
    wall_between_s: Callable[[Instant, Instant], float],
) -> dict[str, Any]:
    """One row of the fault table.

    `recovery`: from the first fault to goodput back at what can be had while the fault lasts (a part of a fabric that
    lost capacity); `restored`: from the last repair to all of it. None: not seen before the episode was over.
    """
    episode, start, end = happened.episode, happened.start_ns, happened.end_ns
    over = happened.over_ns or goodput.last_ns
    before = goodput.rate_bps(start - QUIET_RTTS * rtt_ns, start)
    quiet = max(end, over - QUIET_RTTS * rtt_ns)
    window = AVERAGE_RTTS * rtt_ns
    recovery = goodput.recovery_ns(start, over, before * episode.share, window)
    restored = goodput.recovery_ns(end, over, before, window)
    row: dict[str, Any] = {
        "name": episode.title,
        "kind": episode.kind,
        "targets": list(episode.targets),
        "at_ns": start,
        "until_ns": end,
        "pulses_ns": [list(pulse) for pulse in pulses_ns(episode, start, rtt_ns)],
        "goodput_before_gbps": round(before / GBPS, 1),
        "goodput_during_gbps": round(goodput.rate_bps(start, end) / GBPS, 1),
        "goodput_after_gbps": round(goodput.rate_bps(quiet, over) / GBPS, 1),
        **difference(happened.after or happened.before, happened.before),
        **_duration("recovery", start, recovery, rtt_ns, wall_between_s),
        **_duration("restored", end, restored, rtt_ns, wall_between_s),
        "well_after_rtts": None if happened.well_ns is None else round((happened.well_ns - end) / rtt_ns, 1),
    }
    if episode.kind == "nic-port":
        row["nic_share"] = round(port_share(happened, goodput, rtt_ns, baseline), 4)
    return row


def port_share(happened: Happened, goodput: Goodput, rtt_ns: int, baseline: Baseline) -> float:
    """Goodput into the NIC whose port was down, as a share of its own while nothing was broken."""
    nic = happened.episode.targets[0]
    before = goodput.rate_bps(*baseline, nic)
    during = goodput.rate_bps(happened.start_ns + SETTLE_RTTS * rtt_ns, happened.end_ns, nic)
    return during / before if before else 0.0


def _duration(
    name: str,
    start_ns: Instant,
    length_ns: int | None,
    rtt_ns: int,
    wall_between_s: Callable[[Instant, Instant], float],
) -> dict[str, float | None]:
    if length_ns is None:
        return {f"{name}_rtts": None, f"{name}_wall_ms": None}
    wall_s = wall_between_s(start_ns, start_ns + length_ns)
    return {f"{name}_rtts": round(length_ns / rtt_ns, 1), f"{name}_wall_ms": round(wall_s * MS_PER_S, 1)}


def line_bps(nics: int, planes: int, rate_bps: int) -> float:
    """What all ports of all NICs could carry, headers included."""
    return float(nics * planes * rate_bps)


def payload_share(mtu_bytes: int) -> float:
    """What full packets leave of line rate for payload."""
    return mtu_bytes / (mtu_bytes + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES)
