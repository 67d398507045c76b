"""Where packets go, over whole runs: every plane and every path carries the same, and senders do not march in step.

The bound of each chi-square test is the value that independent, uniform draws would exceed once in a thousand runs;
a scan that takes every EV once per turn stays far below it, a scan that prefers a path does not.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest

from mrcfabric.impairment import Impairment
from mrcfabric.node import Input, Transmit
from mrcfabric.topology import Topology
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.fastpath import peeker
from mrcfabric.wire.layout import DATA_OPCODES
from nicd.core.nic import Nic
from tests.nicd.core.fabric import Fabric

PLANES, PATHS = 4, 4
SIZE = 1 << 20
SEEDS = ("a", "b", "c", "d", "e")
# Quantiles 0.999 of the chi-square distribution, by degrees of freedom.
BOUND = {3: 16.27, 15: 37.70}


class Watched(Fabric):
    """A fabric that keeps (plane, path) of every data packet, by sender, in the order they were sent."""

    def __init__(self, seed: str, size: int = SIZE, **figures: Any) -> None:
        self.size = size
        self.ways: dict[str, list[tuple[int, int]]] = {}
        self.peek = peeker(Dscp())
        super().__init__(
            Topology(
                name="spray", seed=seed, planes=PLANES, t0_per_plane=4, t1_per_plane=PATHS, nics_per_t0=1,
                evs_per_qp=64, reserve_evs_per_qp=16, **figures,
            )
        )  # fmt: skip

    def nic(self, name: str, start_ns: int = 0) -> Nic:
        fabric = self
        ways = self.ways.setdefault(name, [])

        class Seen(Nic):
            def advance(self, inputs: list[Input], until: int) -> list[Transmit]:
                out = super().advance(inputs, until)
                for sent in out:
                    peeked = fabric.peek(sent[2])
                    if peeked[2] in DATA_OPCODES:
                        ways.append((sent[0], (peeked[6] >> 3 & 0x7FF) % PATHS))
                return out

        return Seen(super().nic(name).config, start_ns)

    def carry(self) -> None:
        """Every NIC sends its megabytes to its neighbour."""
        self.permutation(1, self.size)
        self.write_all(self.size, 2)
        assert self.finish(100_000_000)
        self.verify(self.size)


def chi_square(counts: Sequence[int]) -> float:
    expected = sum(counts) / len(counts)
    return sum((count - expected) ** 2 for count in counts) / expected


@pytest.mark.slow
@pytest.mark.spec("MRC 1.0", "6.2")
@pytest.mark.spec("arXiv 2605.04333", "2")
@pytest.mark.parametrize("seed", SEEDS)
def test_planes_and_paths_carry_the_same_load(seed: str) -> None:
    fabric = Watched(seed)
    fabric.carry()
    for ways in fabric.ways.values():
        planes = Counter(plane for plane, _ in ways)
        assert chi_square([planes[plane] for plane in range(PLANES)]) < BOUND[PLANES - 1]
        paths = Counter(ways)
        cells = [paths[plane, path] for plane in range(PLANES) for path in range(PATHS)]
        assert chi_square(cells) < BOUND[PLANES * PATHS - 1]
    everybody = Counter(way for ways in fabric.ways.values() for way in ways)
    cells = [everybody[plane, path] for plane in range(PLANES) for path in range(PATHS)]
    assert chi_square(cells) < BOUND[PLANES * PATHS - 1]


@pytest.mark.slow
@pytest.mark.spec("MRC 1.0", "11.2.2")
def test_senders_do_not_march_in_step() -> None:
    """Two senders that started together take the same path of a plane as often as chance has it, at any shift.

    A turn of sixteen EVs is a walk round the four paths in a direction and from a place that are drawn anew: two such
    walks meet all the time, half of it or never, one time in four on the average with a deviation of 0.35. Over the
    sixteen turns of a run that is 0.09; the bound for one pair is five of these above the average, senders in step
    would be at 1.
    """
    fabric = Watched("step", 4 * SIZE)
    fabric.carry()
    shares = []
    for one, other in combinations(fabric.ways.values(), 2):
        for plane in range(PLANES):
            left, right = ([path for its, path in ways if its == plane] for ways in (one, other))
            for shift in range(-20, 21):
                pairs = list(zip(left[max(0, shift) :], right[max(0, -shift) :], strict=False))
                shares.append(sum(a == b for a, b in pairs) / len(pairs))
    assert max(shares) < 0.25 + 5 * 0.09
    assert abs(sum(shares) / len(shares) - 1 / PATHS) < 0.02


@pytest.mark.slow
@pytest.mark.spec("arXiv 2605.04333", "2")
def test_planes_stay_equal_while_paths_fail() -> None:
    """Reserve EVs of the same plane step in: a broken path moves no load to another plane."""
    fabric = Watched("f")
    # The first up-link of one T0 in one plane is dead from the beginning.
    fabric.impair("p1-t0-0", 1, Impairment(up=False), 1)
    fabric.carry()
    ways = fabric.ways["h000"]
    planes = Counter(plane for plane, _ in ways)
    assert chi_square([planes[plane] for plane in range(PLANES)]) < BOUND[PLANES - 1]
    table = fabric.core("h000").ev_table(100)
    active = Counter(row["plane"] for row in table if row["active"])
    # Four EVs of the plane were on the dead path; one of its four in reserve is there too.
    assert active == {0: 16, 1: 15, 2: 16, 3: 16}
    assert {row["plane"] for row in table if row["state"] == "ASSUMED_BAD"} == {1}


@pytest.mark.spec("MRC 1.0", "11.2")
def test_a_port_with_a_backlog_is_avoided_before_anything_is_marked() -> None:
    """One port of the sender is half as fast: it carries half as much, although nobody has told the QP."""
    rate_bps = 100_000_000_000
    fabric = Watched("slow", link_rates_bps={"h000~p0-t0-0": rate_bps // 2}, rate_bps=rate_bps)
    fabric.carry()
    planes = Counter(plane for plane, _ in fabric.ways["h000"])
    fast = [planes[plane] for plane in range(1, PLANES)]
    assert max(fast) - min(fast) <= 3
    assert 0.4 < planes[0] * len(fast) / sum(fast) < 0.65
    assert fabric.core("h000").counters()["ev_skips"] == 0
