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

Where the T1s of a plane differ in the same way for all T0s (dead or slow switches, a slow plane) flows can use up the
pools completely, and the shares are exact. Where single links are broken here and there, no flow can have more than its
pools give, and sometimes it has less: a run is then measured against a bar that is too high, never too low.

Rates are whole numbers in any unit, shares exact fractions of it.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.topology import Topology

Capacity: TypeAlias = Callable[[str, str], int]
"""(node, next node) -> the capacity that is left in that direction of their link; 0: none."""


def fill(flows: Sequence[Iterable[Hashable]], pools: Mapping[Hashable, int | Fraction]) -> list[Fraction]:
    """The max-min share of each flow. A flow is given as the pools that it uses, at least one."""
    users: dict[Hashable, set[int]] = {}
    for number, drawn in enumerate(flows):
        for pool in drawn:
            users.setdefault(pool, set()).add(number)
    left = {pool: Fraction(pools[pool]) for pool in users}
    shares = [Fraction(0)] * len(flows)
    growing = set(range(len(flows)))
    level = Fraction(0)
    while growing:
        # For each pool: how much more each of its flows can have.
        room = {pool: left[pool] / len(own) for pool, own in users.items() if own}
        step = min(room.values())
        level += step
        done: set[int] = set()
        for pool, own in users.items():
            if own:
                left[pool] -= step * len(own)
                if room[pool] == step:
                    done |= own
        for number in done:
            shares[number] = level
        for own in users.values():
            own -= done
        growing -= done
    return shares


def plane_shares(
    topology: Topology, plane: int, flows: Sequence[tuple[int, int]], capacity: Capacity
) -> list[Fraction]:
    """What each flow (NIC, NIC) is due in one plane."""
    t1s = [t1_name(plane, number) for number in range(topology.t1_per_plane)]
    pools: dict[Hashable, int | Fraction] = {}
    drawn = []
    for source, target in flows:
        near, far = (nic // topology.nics_per_t0 for nic in (source, target))
        above, below = t0_name(plane, near), t0_name(plane, far)
        pools["out", source] = capacity(nic_name(source), above)
        pools["in", target] = capacity(below, nic_name(target))
        own: list[Hashable] = [("out", source), ("in", target)]
        if near != far:
            # A path is as fast as the slower of its two links.
            if ("between", near, far) not in pools:
                pools["up", near] = sum(capacity(above, t1) for t1 in t1s)
                pools["down", far] = sum(capacity(t1, below) for t1 in t1s)
                pools["between", near, far] = sum(min(capacity(above, t1), capacity(t1, below)) for t1 in t1s)
            own += [("up", near), ("down", far), ("between", near, far)]
        drawn.append(own)
    return fill(drawn, pools)


def shares(topology: Topology, flows: Sequence[tuple[int, int]], capacity: Capacity) -> list[Fraction]:
    """What each flow (NIC, NIC) is due in all planes together."""
    by_plane = [plane_shares(topology, plane, flows, capacity) for plane in range(topology.planes)]
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
