"""The max-min fair shares of flows: what each is due of the capacity that is left.

Owns progressive filling, and which capacities limit a flow of an MRC fabric. The caller says what is left of each link,
and what the flows got.

**The shares.** All flows grow at the same rate until a capacity is used up. The flows that use it stop there, the
others go on (Bertsekas and Gallager, Data Networks, 6.5.2). No flow can have more unless a flow with no more than it
gets less.

**What limits a flow.** The planes are separate networks, and congestion control is fair within each. So each plane is
filled by itself, and a flow's share is the sum over the planes. In a plane a flow sprays over all T1s that both its T0s
reach, in whatever proportion suits (arXiv 2605.04333 section 2). So no single link limits it, but these pools of links
do:

    the port of its NIC, and of the NIC it sends to
    all up-links of its T0, and all down-links to the T0 it sends to
    the T1s between the two, each with the smaller one of its two links

**What is lost on the way.** A share is what arrives. A link that loses a part has carried it before it was lost, and
so have the links before. So a path of two links that each lose 5 % delivers 0.95 x 0.95 of its rate, whatever is sent
again. A flow that has to use lossy links takes more of the pools before them than it delivers: as much as over the best
T1 that it can use.

Where the T1s of a plane differ in the same way for all T0s (dead, slow or lossy switches, a slow plane) flows can use
up the pools completely, and the shares are exact. Where single links are broken here and there, no flow can have more
than its pools give, and sometimes it has less: a run is then measured against a bar that is too high, never too low.

Rates are whole numbers in any unit, shares exact fractions of it.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.topology import Topology

Capacity: TypeAlias = Callable[[str, str], int]
"""(node, next node) -> the rate at which that direction of their link still sends; 0: none."""
Arrival: TypeAlias = Callable[[str, str], Fraction]
"""(node, next node) -> the part of what is sent there that arrives: 1 where nothing is lost."""


def whole(_near: str, _far: str) -> Fraction:
    """Nothing is lost anywhere."""
    return Fraction(1)


def fill(flows: Sequence[Mapping[Hashable, Fraction]], pools: Mapping[Hashable, int | Fraction]) -> list[Fraction]:
    """The max-min share of each flow.

    A flow is given as the pools that it uses, at least one, and how much of each it takes per unit of its share.
    """
    users: dict[Hashable, dict[int, Fraction]] = {}
    for number, drawn in enumerate(flows):
        for pool, part in drawn.items():
            users.setdefault(pool, {})[number] = part
    left = {pool: Fraction(pools[pool]) for pool in users}
    shares = [Fraction(0)] * len(flows)
    growing = set(range(len(flows)))
    level = Fraction(0)
    while growing:
        # For each pool: how much more each of its flows can have.
        room = {pool: left[pool] / sum(own.values()) for pool, own in users.items() if own}
        step = min(room.values())
        level += step
        done: set[int] = set()
        for pool, own in users.items():
            if own:
                left[pool] -= step * sum(own.values())
                if room[pool] == step:
                    done |= own.keys()
        for number in done:
            shares[number] = level
        for own in users.values():
            for number in done & own.keys():
                del own[number]
        growing -= done
    return shares


def plane_shares(
    topology: Topology, plane: int, flows: Sequence[tuple[int, int]], capacity: Capacity, arrival: Arrival = whole
) -> list[Fraction]:
    """What each flow (NIC, NIC) is due in one plane."""
    pools: dict[Hashable, int | Fraction] = {}
    best: dict[tuple[int, int], tuple[Fraction, Fraction]] = {}
    drawn = []
    for source, target in flows:
        near, far = (nic // topology.nics_per_t0 for nic in (source, target))
        above, below = t0_name(plane, near), t0_name(plane, far)
        sender, receiver = nic_name(source), nic_name(target)
        last = arrival(below, receiver)
        pools["out", source] = capacity(sender, above) * arrival(sender, above)
        pools["in", target] = capacity(below, receiver) * last
        both = Fraction(1)
        own: dict[Hashable, Fraction] = {("in", target): Fraction(1)}
        if near != far:
            if (near, far) not in best:
                best[near, far] = _pool_t1s(pools, topology, plane, (near, far), capacity, arrival)
            both, second = best[near, far]
            own["down", far] = own["between", near, far] = _taken(last)
            own["up", near] = _taken(second * last)
        own["out", source] = _taken(both * last)
        drawn.append(own)
    return fill(drawn, pools)


def _taken(arriving: Fraction) -> Fraction:
    """How much must be sent for each unit that arrives; 1 where nothing does, because another pool is empty then."""
    return 1 / arriving if arriving else Fraction(1)


def _pool_t1s(
    pools: dict[Hashable, int | Fraction],
    topology: Topology,
    plane: int,
    ends: tuple[int, int],
    capacity: Capacity,
    arrival: Arrival,
) -> tuple[Fraction, Fraction]:
    """Add the pools between two T0s. Returns which part arrives at best: of what is sent to a T1, and sent by one."""
    near, far = ends
    above, below = (t0_name(plane, end) for end in ends)
    up = down = between = best = best_down = Fraction(0)
    for t1 in (t1_name(plane, number) for number in range(topology.t1_per_plane)):
        first, second = arrival(above, t1), arrival(t1, below)
        sent, passed = capacity(above, t1), capacity(t1, below)
        up += sent * first
        down += passed * second
        # A path is as fast as the slower of its two links.
        between += min(sent * first, Fraction(passed)) * second
        if passed:
            best_down = max(best_down, second)
        if sent and passed:
            best = max(best, first * second)
    pools["up", near] = up
    pools["down", far] = down
    pools["between", near, far] = between
    return best, best_down


def shares(
    topology: Topology, flows: Sequence[tuple[int, int]], capacity: Capacity, arrival: Arrival = whole
) -> list[Fraction]:
    """What each flow (NIC, NIC) is due in all planes together."""
    by_plane = [plane_shares(topology, plane, flows, capacity, arrival) for plane in range(topology.planes)]
    return [sum(each, Fraction(0)) for each in zip(*by_plane, strict=True)]


def fulfilled(rates: Sequence[float], due: Sequence[Fraction]) -> tuple[float, float]:
    """How far flows reached their shares: (all together, the worst one); 1.0 is the whole share.

    A flow that got more than its share does not make up for one that got less. 1.0 where nothing is due.
    """
    parts = [min(1.0, rate / float(share)) for rate, share in zip(rates, due, strict=True) if share]
    whole = float(sum(due))
    if not parts:
        return 1.0, 1.0
    got = sum(min(rate, float(share)) for rate, share in zip(rates, due, strict=True))
    return got / whole, min(parts)
