"""The max-min fair shares of flows: what each is due of the capacity that is left.

Owns progressive filling, and which capacities bind a flow of an MRC fabric. What is left of a link is said by whoever
asks; so is what the flows did get.

**The shares.** All flows grow alike until a capacity is used up; the flows that use it stop there, the others go on
(Bertsekas and Gallager, Data Networks, 6.5.2). No flow can have more without one that has no more than it having less.

**What binds a flow.** The planes are networks of their own, and congestion control is fair within each: so each plane
is filled by itself, and a flow's share is the sum over the planes. In a plane a flow sprays over all T1s that both its
T0s reach, in whatever parts suit (arXiv 2605.04333 section 2). So no single link binds it, but pools of them do:

    the port of its NIC, and of the NIC it sends to
    all up-links of its T0, and all down-links to the T0 it sends to
    the T1s between the two, each with the smaller one of its two links

Where the T1s of a plane differ alike for all T0s (dead or slow switches, a slow plane) the pools can be filled to the
brim, and the shares are exact. Where single links are broken here and there no flow can have more than its pools give,
and sometimes less: a run is then measured by a bar that is too high, never by one too low.

Rates are whole numbers in any unit, shares exact fractions of it.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.topology import Topology

Capacity: TypeAlias = Callable[[str, str], int]
"""(node, next node) -> what is left of that direction of their link; 0: nothing."""


def fill(flows: Sequence[Iterable[Hashable]], pools: Mapping[Hashable, int | Fraction]) -> list[Fraction]:
    """The max-min share of each flow; a flow is the pools that it draws on, at least one."""
    users: dict[Hashable, set[int]] = {}
    for number, drawn in enumerate(flows):
        for pool in drawn:
            users.setdefault(pool, set()).add(number)
    left = {pool: Fraction(pools[pool]) for pool in users}
    shares = [Fraction(0)] * len(flows)
    growing = set(range(len(flows)))
    level = Fraction(0)
    while growing:
        # Of every pool: how much more each of its flows can have.
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
            # A path is as wide as the narrower one of its two links.
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
    """How far flows are from their shares: (all together, the one that is worst off); 1.0 is all that is due.

    What one flow has beyond its share does not make up for what another lacks. 1.0 where nothing is due.
    """
    parts = [min(1.0, rate / float(share)) for rate, share in zip(rates, due, strict=True) if share]
    whole = float(sum(due))
    if not parts:
        return 1.0, 1.0
    got = sum(min(rate, float(share)) for rate, share in zip(rates, due, strict=True))
    return got / whole, min(parts)
