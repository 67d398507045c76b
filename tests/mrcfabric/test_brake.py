"""How much of wall time is left when, how long pauses are, and what is no window."""

import pytest

from mrcfabric.brake import PAUSE_S_MAX, PAUSE_S_MIN, SHARE_PPM_MIN, SPELLS_MAX, Brake
from mrcfabric.errors import RefusedError
from mrcfabric.rng import PPM
from mrcfabric.units import NEVER


def test_of_several_spells_the_least_share_counts_while_it_lasts() -> None:
    brake = Brake()
    brake.tell([[100, 300, PPM // 2], (200, 400, PPM // 4)])
    assert [brake.share_ppm(at_ns) for at_ns in (99, 100, 200, 300, 400)] == [
        PPM, PPM // 2, PPM // 4, PPM // 4, PPM,
    ]  # fmt: skip
    assert brake.end_ns == 400
    brake.tell([[100, NEVER, PPM // 2]])
    assert brake.end_ns == 0
    brake.tell([])
    assert brake.share_ppm(150) == PPM


def test_a_quarter_of_the_time_is_three_times_as_much_pause() -> None:
    brake = Brake()
    brake.tell([[0, 100, PPM // 4]])
    assert brake.pause_s(0.010, 0) == pytest.approx(0.030)
    assert brake.pause_s(0.010, 100) == 0


def test_small_pauses_add_up_and_large_ones_are_bounded() -> None:
    brake = Brake()
    brake.tell([[0, NEVER, PPM // 2]])
    pauses = [brake.pause_s(PAUSE_S_MIN / 4, 0) for _ in range(5)]
    assert pauses == [0, 0, 0, pytest.approx(PAUSE_S_MIN), 0]
    assert brake.pause_s(100.0, 0) == PAUSE_S_MAX
    brake.pause_s(PAUSE_S_MIN / 2, 0)
    brake.tell([])
    assert brake.pause_s(1.0, 0) == 0
    brake.tell([[0, NEVER, PPM // 2]])
    assert brake.pause_s(PAUSE_S_MIN / 2, 0) == 0, "what was owed is forgotten with the spell"


@pytest.mark.parametrize(
    "spells",
    [
        None,
        "slow",
        [5],
        [[1, 2]],
        [[1, 2, True]],
        [[1, 2.5, PPM]],
        [[2, 2, PPM]],
        [[-1, 2, PPM]],
        [[1, NEVER + 1, PPM]],
        [[1, 2, SHARE_PPM_MIN - 1]],
        [[1, 2, PPM + 1]],
        [[1, 2, PPM]] * (SPELLS_MAX + 1),
    ],
)
def test_what_is_no_list_of_spells_changes_nothing(spells: object) -> None:
    brake = Brake()
    brake.tell([[1, 2, PPM // 2]])
    with pytest.raises(RefusedError, match="windows: "):
        brake.tell(spells)
    assert brake.share_ppm(1) == PPM // 2
