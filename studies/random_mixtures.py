"""python -m studies.random_mixtures: what loaded fabrics with random mixtures of broken parts get of their shares.

Owns how a mixture is drawn: a fabric of two T0s, two or four planes, two to eight T1s per plane and two or four NICs
below each T0, and in one to three planes something slow, lossy, farther or dead, in all T1s of the plane or in some.
`weak_planes` measures one fabric. The same seed is the same mixture on every machine.

python -m studies.random_mixtures --seeds 200 --settle 100 --below 0.93    and each mixture that has less than 0.93
python -m studies.random_mixtures --first 58 --seeds 1 --below 1           one of them alone
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from functools import partial
from typing import Final, NamedTuple, TypeVar

from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from orchestrator.process.job_arguments import count
from studies.broken_planes import fabric_of
from studies.command_line import check_all
from studies.weak_planes import Breakage, dead_t1s, longer, lossy, measure, slow

RATES: Final = (25, 50, 100, 200, 400)
"""Gb/s."""
SETTLE_RTTS: Final = 100
_BROKEN_MOST: Final = 3
"""In so many planes something is broken at most."""
T = TypeVar("T")


class Mixture(NamedTuple):
    """A fabric, and what is broken in it."""

    fabric: Topology
    broken: tuple[Breakage, ...]
    title: str


def _one(rng: Rng, choices: Sequence[T]) -> T:
    return choices[rng.below(len(choices))]


def _some(rng: Rng, count: int, least: int, most: int) -> list[int]:
    """`least` to `most` numbers of those below `count`, in order."""
    numbers = list(range(count))
    rng.shuffle(numbers)
    return sorted(numbers[: least + rng.below(most - least + 1)])


def drawn(seed: int, rates: Sequence[int] = RATES) -> Mixture:
    """The mixture of a seed, at one of these rates in Gb/s."""
    rng = Rng("random-mixtures", seed)
    planes, t1s, nics = _one(rng, (2, 2, 4)), _one(rng, (2, 4, 8)), _one(rng, (2, 4))
    rate = _one(rng, rates)
    fabric = fabric_of(rate, seed, planes, {}, t1s, nics)
    parts = [_broken(rng, fabric, plane) for plane in _some(rng, planes, 1, min(_BROKEN_MOST, planes))]
    title = f"{planes} planes, {t1s} T1s, {nics} NICs per T0, {rate} Gb/s: {', '.join(what for _, what in parts)}"
    return Mixture(fabric, tuple(breakage for breakage, _ in parts), title)


def _broken(rng: Rng, fabric: Topology, plane: int) -> tuple[Breakage, str]:
    """Something broken in a plane, and what."""
    every = fabric.t1_per_plane
    t1s = list(range(every)) if rng.below(2) else _some(rng, every, 1, every - 1)
    where = f"plane {plane}, {len(t1s)} T1s"
    kind = _one(rng, ("slow", "lossy", "farther", "dead"))
    if kind == "slow":
        part = _one(rng, (Fraction(1, 2), Fraction(1, 4), Fraction(1, 10)))
        return slow(fabric, plane, part, t1s), f"{where} at {part}"
    if kind == "lossy":
        percent = _one(rng, (1, 5))
        return lossy(fabric, plane, percent * 10_000, t1s), f"{where} lose {percent} %"
    if kind == "farther":
        us = _one(rng, (3, 6, 12, 30))
        return longer(fabric, plane, us * 1_000, t1s), f"{where} {us} us farther"
    count = 1 + rng.below(every - 1)
    return dead_t1s(plane, count), f"plane {plane}, {count} T1s dead"


def ratio(seed: int, settle_rtts: int = SETTLE_RTTS, rates: Sequence[int] = RATES) -> float:
    """The part of what is due that arrives in the mixture of a seed; each NIC sends to one below the other T0."""
    fabric, broken, _ = drawn(seed, rates)
    each = fabric.nics_per_t0
    flows = [(one, ((one // each + 1) * each + (one + seed) % each) % fabric.nics) for one in range(fabric.nics)]
    return measure(fabric, flows, broken, settle_rtts).ratio


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser("python -m studies.random_mixtures", description="Random mixtures of breakages.")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--seeds", type=count, default=200, help="how many")
    parser.add_argument("--rates", nargs="+", type=count, default=list(RATES), help="Gb/s, of which one is drawn")
    parser.add_argument("--settle", type=count, default=SETTLE_RTTS, metavar="RTTS", help="before measuring")
    parser.add_argument("--below", type=float, default=0.9, metavar="PART", help="list mixtures that have less")
    given = parser.parse_args(arguments)
    check_all(parser, (partial(fabric_of, rate, 0, 2, {}) for rate in given.rates))
    seeds = range(given.first, given.first + given.seeds)
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(partial(ratio, settle_rtts=given.settle, rates=tuple(given.rates)), seeds))
    for part, seed in sorted(zip(found, seeds, strict=True)):
        if part < given.below:
            print(f"{part:.3f}  seed {seed}: {drawn(seed, given.rates).title}")
    counts = ", ".join(f"{sum(part < least for part in found)} below {least:.2f}" for least in (0.95, 0.9))
    print(f"{len(found)} mixtures: {sum(found) / len(found):.3f} on average, least {min(found):.3f}, {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
