"""Spreading: everything given, no host fuller than promised."""

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.hosts.placement.levels import share_out


def test_equal_hosts_get_equal_numbers_and_the_first_the_rest() -> None:
    assert share_out(8, 1.0, (0, 1, 2), [0.0] * 3, [1.0] * 3) == [3, 3, 2]


def test_what_is_there_counts_and_only_the_hosts_that_are_named_get_anything() -> None:
    level = [5.0, 0.0, 9.0]
    assert share_out(4, 1.0, (1, 2), level, [1.0] * 3) == [4, 0]
    assert level == [5.0, 4.0, 9.0]


@given(
    st.integers(0, 200),
    st.floats(0.01, 100),
    st.lists(st.integers(1, 64), min_size=1, max_size=12),
)
@settings(max_examples=60, deadline=None)
def test_no_host_is_fuller_than_promised(count: int, weight: float, cores: list[int]) -> None:
    level, speed = [0.0] * len(cores), list(map(float, cores))
    counts = share_out(count, weight, range(len(cores)), level, speed)
    assert sum(counts) == count
    assert level == [sum([weight] * times) for times in counts]
    bound = (count + len(cores) - 1) * weight / sum(speed)
    assert max(one / at for one, at in zip(level, speed, strict=True)) <= bound * (1 + 1e-9)
