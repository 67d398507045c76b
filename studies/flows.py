"""Who sends what to whom: one flow, and the patterns that several make.

Owns the patterns. Flows begin a random part of a base RTT after each other where a seed is given: senders of a real
fabric do not start in the same nanosecond.
"""

from dataclasses import dataclass
from typing import NamedTuple

from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from mrcfabric.units import Instant

START_NS = 10_000
"""When the first flow begins: QPs are ready by then."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Messages from one NIC to another, all posted at once, dealt out over QPs."""

    source: int
    target: int
    size: int
    """Bytes of a message; a multiple of the MTU where rates are measured."""
    messages: int = 1
    """On every QP."""
    qps: int = 1
    start_ns: Instant = START_NS
    group: str = "all"
    """What the results of several flows are gathered under."""
    after: int | None = None
    """Number of a flow that ends where this one begins: every message but the first waits until the same message of
    that flow, the one before it, has arrived. None: all are posted at once. One QP only."""


class Line(NamedTuple):
    """A flow and the numbers of its QPs, the same at both ends."""

    flow: Flow
    qpns: range


def permutation(topology: Topology, size: int, *, messages: int = 1, qps: int = 1, below: int = 0) -> tuple[Flow, ...]:
    """Every NIC sends to one below the next T0 and receives from one below the T0 before; whom, the seed says.

    `size` is per NIC and message, cut evenly over the QPs. `below`: only so many NICs of each T0 take part.
    """
    each, total = topology.nics_per_t0, topology.nics
    below = below or each
    rng = Rng(topology.seed, "permutation")
    flows = []
    for t0 in range(topology.t0_per_plane):
        places = list(range(below))
        rng.shuffle(places)
        for place, target in enumerate(places):
            start_ns = START_NS + rng.below(topology.base_rtt_ns())
            peer = ((t0 + 1) * each + target) % total
            flows.append(Flow(t0 * each + place, peer, size // qps, messages, qps, start_ns))
    return tuple(flows)


def ring(topology: Topology, size: int) -> tuple[Flow, ...]:
    """A ring all-reduce of all NICs, every step from one T0 to another: 2 (n - 1) steps of `size` bytes each."""
    each, total = topology.nics_per_t0, topology.nics
    # One NIC of every T0 in turn, so that neighbours in the ring hang on different T0s.
    order = [t0 * each + place for place in range(each) for t0 in range(topology.t0_per_plane)]
    return tuple(
        Flow(nic, order[(place + 1) % total], size, 2 * (total - 1), after=(place - 1) % total)
        for place, nic in enumerate(order)
    )


def incast(
    topology: Topology, degree: int, size: int, *, messages: int = 1, qps: int = 1, stagger: bool = True
) -> tuple[Flow, ...]:
    """`degree` NICs, none of them below T0 0, send to NIC 0; group "incast"."""
    rng = Rng(topology.seed, "incast")
    senders = list(range(topology.nics_per_t0, topology.nics))
    assert degree <= len(senders), "not enough NICs beyond the first T0"
    flows = []
    for source in senders[:degree]:
        start_ns = START_NS + (rng.below(topology.base_rtt_ns()) if stagger else 0)
        flows.append(Flow(source, 0, size // qps, messages, qps, start_ns, "incast"))
    return tuple(flows)
