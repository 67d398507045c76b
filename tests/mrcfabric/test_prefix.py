"""Prefixes: their text, which addresses they cover, and the fewest that cover a range."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.naming import nic_address
from mrcfabric.prefix import Prefix, cover, prefix_of


def test_text_and_covered_addresses() -> None:
    rack = prefix_of(int.from_bytes(nic_address(9), "big"), 125)
    assert str(rack) == "fd6d:7263:6661:6272::8/125"
    covered = [nic for nic in range(32) if rack.covers(int.from_bytes(nic_address(nic), "big"))]
    assert covered == list(range(7, 15))
    assert Prefix(0, 0).covers(1 << 127)


@given(st.integers(0, 300), st.integers(0, 300))
def test_a_range_is_covered_exactly_and_without_a_prefix_too_many(first: int, more: int) -> None:
    last = first + more
    found = cover(first, last)
    addresses = [one.value + offset for one in found for offset in range(1 << 128 - one.length)]
    assert addresses == list(range(first, last + 1))
    # Two neighbours never make one larger prefix.
    for one, other in pairwise(found):
        assert one.length != other.length or one.value >> 129 - one.length != other.value >> 129 - other.length


def test_the_whole_space_is_one_prefix() -> None:
    assert cover(0, (1 << 128) - 1) == [Prefix(0, 0)]
