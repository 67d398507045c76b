"""Row L1: one rate of damaged packets, where a link loses them and where it sends them again itself.

A retry keeps the link for its way there and back and the packet's time, and nobody else notices. So what is left of a
line follows from the share alone, whatever the transport; what a loss costs is the transport's.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from mrcfabric.topology_file import with_system
from mrcfabric.units import NS_PER_S
from studies.faults import RandomLoss
from studies.flows import Flow
from studies.systems.bench_fabric import fabric, line_bps, measure
from studies.systems.row import Finding, Row, near, seen

_US: Final = 1_000


class Hit(NamedTuple):
    """One point."""

    system: str
    share_ppm: int


def measure_hits(point: Hit) -> Sequence[Finding]:
    """One NIC sends to another over one link of which packets are hit."""
    made = with_system(fabric("retry", 1, 1), point.system)
    topology = replace(made, nic={**made.nic, **({"cc": "none"} if made.nic.get("transport") == "rc" else {})})
    share = point.share_ppm / 1_000_000
    packet_ns = topology.mtu_bytes * 8 * NS_PER_S / line_bps(topology)
    # A packet is hit and hit again: p + p^2 + ... retries each, of which every one takes a loop and a packet's time.
    kept = packet_ns / (packet_ns + share / (1 - share) * (2 * topology.link_delay_ns + packet_ns))
    shares, again = {}, {}
    for kind in ("loss", "link_retry"):
        faults = (RandomLoss(point.share_ppm, towards=1, kind=kind),)
        found = measure(topology, (Flow(0, 1, 1),), 500 * _US, 2_500 * _US, faults)
        shares[kind], again[kind] = found.shares[0], found.outcome.resent
        lost = found.outcome.drops.get("loss", 0)
    at = f"{point.system}, {share:.1%} hit"
    return (
        seen(f"{at} and lost: share of the line", shares["loss"]),
        near(f"{at} and retried: share of the line", kept, shares["link_retry"], 0.03),
        seen(f"{at} and lost: packets sent again by the NIC", float(again["loss"]), 0),
        near(f"{at} and retried: packets lost", 0.0, float(lost), 0.0, 0),
        seen(f"{at} and retried: packets sent again by the NIC", float(again["link_retry"]), 0),
    )


ROWS: Final = (
    Row(
        "L1", "Link-level retry", "t / (t + p / (1 - p) x (2d + t)) with packets of time t on a link of delay d; "
        "nothing is lost", "closed form", "3 %",
        "One NIC writes to another below the other T0, over one T1; packets are hit between T1 and T0. RC without "
        "DCQCN, whose notifications have nothing to do with this. MRC and UET trim a few packets where a retry makes "
        "the queue before the link longer than their windows expect.",
        tuple(Hit(system, ppm) for system in ("ib", "ib-adaptive", "roce", "uet", "mrc") for ppm in (1_000, 10_000)),
        measure_hits,
    ),
)  # fmt: skip
