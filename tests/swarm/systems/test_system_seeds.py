"""Seeds of all systems: a few each time, more at length; and those that once failed, with a word on what was wrong."""

import pytest

from swarm.batch import run_seed
from swarm.case import SYSTEMS
from tests.support.corners import corners

SEEDS: dict[int, str] = {
    3073: "an ACK was lost for which the next immediate waited, and nobody asked for it",
    3070: "what a harmed outer address brought back to its sender was counted as if the NIC had taken it",
    4: "UET: where no port had carrier and all was lost, a timer fired every nanosecond",
    188: "UET: room in a window woke the QP whose packet had arrived, and not the one that waited for it",
    348: "UET: the time-out doubled with the linear retries already",
    9021: "IRN: a sender that heard nothing remembered each transmission that it had given up at a time-out",
    21014: "after going back to the start of a message more packets were told to be in flight than there may be",
}
LONGEST = 9021
"""As long as the others together."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", corners([*range(2_000, 2_004), 2_004, 2_012, 2_020], 2_000, 2_001, 2_004))
def test_a_seed_holds(seed: int) -> None:
    line = run_seed(seed, SYSTEMS)
    assert not line.reason, f"{line.reason}\n{line.replay}"


@pytest.mark.long
@pytest.mark.parametrize("first", range(3_000, 3_030, 10))
def test_many_seeds_hold(first: int) -> None:
    for seed in range(first, first + 10):
        line = run_seed(seed, SYSTEMS)
        assert not line.reason, f"{line.reason}\n{line.replay}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", corners(SEEDS, *(seed for seed in SEEDS if seed != LONGEST)))
def test_a_seed_that_failed_holds(seed: int) -> None:
    line = run_seed(seed, SYSTEMS)
    assert not line.reason, f"{line.reason}\n{line.replay}"
