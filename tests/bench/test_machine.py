"""Noticing that the machine is not ours alone."""

import pytest

from bench.machine import Watch, describe, noise


@pytest.mark.parametrize(
    ("busy", "stolen", "said"),
    [(0.02, 0.01, None), (0.4, 0.0, "other programs used 40%"), (0.0, 0.3, "the hypervisor withheld 30%")],
)
def test_noise_has_a_name(busy: float, stolen: float, said: str | None) -> None:
    found = noise({"busy_share": busy, "stolen_share": stolen})
    assert found is None if said is None else said in str(found)


def test_shares_are_shares() -> None:
    assert all(0 <= share <= 1 for share in Watch().others().values())


def test_the_machine_is_described() -> None:
    assert describe()["cpus"] >= 1
