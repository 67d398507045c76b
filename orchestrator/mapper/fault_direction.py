"""Finds the direction in which a T0-T1 link is bad: which question to ask a NIC, and what its answer means.

Pure. A probe that turns round crosses each link both ways. A loop goes up through one T1 to another T0 and comes home
through another T1, so it crosses the link in question once. Two loops, one each way, tell the directions apart. They
need another T0 and another T1 in the plane with good links, and a NIC below the T0 whose own link is good. Without them
the direction stays open. The direction of a NIC-T0 link always stays open: any probe that comes home has crossed that
link both ways.
"""

import math
from enum import StrEnum
from typing import NamedTuple

from mrcfabric.topology import Topology
from orchestrator.mapper.link_evidence import Counts
from orchestrator.mapper.link_verdicts import Cable, LinkMap, Verdict
from orchestrator.mapper.loss_statistics import TOLERATED, evidence, needed

FALSE_ALARM = 1e-6
"""The chance that a loop over good links is called lossy."""
DOUBT = 0.001
"""The chance that a loop that loses half as much as the other one is taken for a good one."""
LINKS_CROSSED = 3
"""How many links a loop crosses beside the one in question, in round trips: four links once, the NIC's twice."""
PROBES_LEAST, PROBES_MOST = 64, 4096
LOSSES_EXPECTED = 16
"""So many probes are sent that a loop with the estimated loss loses about this many of them."""


class Direction(StrEnum):
    """In which direction a link loses packets."""

    UP = "towards the T1"
    DOWN = "towards the T0"
    BOTH = "in both directions"
    OPEN = "direction not told"


class Loop(NamedTuple):
    """One path for probes of a NIC."""

    plane: int
    t1_out: int
    t0: int
    t1_home: int


class Question(NamedTuple):
    """Two loops of one NIC, with `probes` probes on each."""

    nic: int
    up: Loop
    """The loop that crosses the link towards the T1."""
    down: Loop
    probes: int


def question(topology: Topology, links: LinkMap, cable: Cable) -> Question | None:
    """What to ask about a bad T0-T1 link; None when no two loops over good links cross it."""
    good = {link.cable for link in links.of(Verdict.GOOD)}
    loss = next(link.loss for link in links.links if link.cable == cable)
    plane, t0, _, t1 = cable
    if t1 is None:
        return None
    first = t0 * topology.nics_per_t0
    nics = [nic for nic in range(first, first + topology.nics_per_t0) if Cable(plane, t0, nic, None) in good]
    for far in range(topology.t0_per_plane):
        if far == t0 or Cable(plane, far, None, t1) not in good:
            continue
        for other in range(topology.t1_per_plane):
            if nics and {Cable(plane, t0, None, other), Cable(plane, far, None, other)} <= good:
                wanted = math.ceil(LOSSES_EXPECTED / max(loss, 1e-6))
                probes = min(PROBES_MOST, max(PROBES_LEAST, wanted))
                return Question(nics[0], Loop(plane, t1, far, other), Loop(plane, other, far, t1), probes)
    return None


def direction(up: Counts, down: Counts) -> Direction:
    """Judge the direction from the probes round both loops."""
    bad_up, bad_down = _lossy(up), _lossy(down)
    if bad_up and bad_down:
        return Direction.BOTH
    if bad_up and _clean(down, up):
        return Direction.UP
    if bad_down and _clean(up, down):
        return Direction.DOWN
    return Direction.OPEN


def _lossy(counts: Counts) -> bool:
    return evidence(counts.probes, counts.lost, LINKS_CROSSED * TOLERATED) >= needed(FALSE_ALARM)


def _clean(counts: Counts, other: Counts) -> bool:
    """Whether a loss half as large as the other loop's would have shown here, and nothing was lost."""
    share = other.lost / other.probes / 2
    return counts.lost == 0 and (1 - share) ** counts.probes <= DOUBT
