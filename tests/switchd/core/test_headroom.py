"""The two formulas of headroom, against figures worked out by hand."""

import pytest

from switchd.core.headroom import deployed_headroom, exact_headroom


@pytest.mark.parametrize(
    ("gbps", "wanted"), [(10, 31_821), (40, 31_821), (100, 62_841), (400, 217_941), (800, 424_741)]
)
def test_the_deployed_formula(gbps: int, wanted: int) -> None:
    """For 100 metres and 4096 bytes; slower ports count as 40 Gb/s."""
    assert deployed_headroom(gbps * 10**9, 4096, 100) == wanted


def test_a_longer_cable_costs_its_bits_twice_and_a_little() -> None:
    """5 ns per metre and direction at 100 Gb/s are 125 bytes; the formula has 216."""
    assert deployed_headroom(10**11, 4096, 300) - deployed_headroom(10**11, 4096, 100) == 43_200


@pytest.mark.parametrize("rate_gbps", [1, 8, 100, 800])
@pytest.mark.parametrize("delay_ns", [100, 1_000, 20_000])
@pytest.mark.parametrize("frame", [300, 4_300])
def test_the_exact_formula(rate_gbps: int, delay_ns: int, frame: int) -> None:
    found = exact_headroom(rate_gbps * 10**9, 2 * delay_ns, frame, 1)
    plain = 2 * delay_ns * rate_gbps / 8 + 2 * frame + 84
    assert plain <= found <= plain + 3 * rate_gbps / 8 + 1, "two times are rounded up to nanoseconds"
    assert exact_headroom(rate_gbps * 10**9, 2 * delay_ns, frame, 3) >= found + 2 * 84
