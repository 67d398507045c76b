"""Rows G1 to G5: one point of each at once, the ranges at length."""

import pytest

from studies.systems import recovery
from studies.systems.recovery import Loss, Repeats, Ring, Silence, Sprayed, drawn, lossless, restarts
from tests.studies.systems.findings import missed

ROWS = {row.id: row for row in recovery.ROWS}


@pytest.mark.parametrize("point", [Loss(10_000, 16, 4_000), Loss(3_000, 64, 4_000, seed=7)])
def test_g1_go_back_n(point: Loss) -> None:
    assert not missed(recovery.measure_go_back_n(point))


@pytest.mark.parametrize("point", [Loss(10_000, 16, 4_000), Sprayed(10_000)])
def test_g2_selective_and_mrc(point: Loss | Sprayed) -> None:
    assert not missed(recovery.measure_lossy(point))


@pytest.mark.long
@pytest.mark.parametrize("point", [Repeats(0, 4096, 1), Repeats(20_000, 50, 60, seed=3)])
def test_g3_go_back_0(point: Repeats) -> None:
    assert not missed(recovery.measure_go_back_0(point))


@pytest.mark.parametrize("point", [Silence(14), Silence(3, 1, 1), Silence(20, 0, 4096)])
def test_g4_a_lost_last_packet(point: Silence) -> None:
    assert not missed(recovery.measure_silence(point))


@pytest.mark.long
def test_g5_a_ring_under_loss() -> None:
    assert not missed(recovery.measure_ring(Ring("roce-no-pfc")))


def test_the_oracle_of_go_back_0_counts_packets() -> None:
    assert restarts(10, 3, 5, lossless) == 30
    # The third packet of the first attempt is lost: three went, four more follow, then ten.
    assert restarts(10, 1, 5, lambda number, _place: int(number == 2)) == 3 + 4 + 10


def test_drawn_losses_are_those_of_their_seed() -> None:
    once, again, other = drawn(100_000, 1), drawn(100_000, 1), drawn(100_000, 2)
    draws = [[rule(number, 0) for number in range(500)] for rule in (once, again, other)]
    assert draws[0] == draws[1] != draws[2]
    assert 20 < sum(draws[0]) < 90


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "place"), [(row.id, place) for row in recovery.ROWS for place in range(len(row.points))]
)
def test_every_point(name: str, place: int) -> None:
    assert not missed(ROWS[name].measure(ROWS[name].points[place]))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize(("ppm", "w"), [(500, 32), (2_000, 64), (5_000, 256)])
def test_g1_over_seeds(ppm: int, w: int, seed: int) -> None:
    assert not missed(recovery.measure_go_back_n(Loss(ppm, w, 10_000, seed)))
