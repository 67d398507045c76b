"""The order of inputs, which both drivers hand to a core."""

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.node import Input, split_due
from mrcfabric.units import NEVER

KEYS = st.tuples(st.integers(0, 5), st.integers(0, 1), st.integers(0, 3), st.integers(0, 9))


@given(keys=st.lists(KEYS, unique=True), until=st.integers(-1, 6))
def test_what_is_due_comes_in_order_and_the_rest_stays(keys: list[tuple[int, int, int, int]], until: int) -> None:
    due, later, next_ns = split_due([Input(*key, object()) for key in keys], until)
    assert [one[:4] for one in due] == sorted(key for key in keys if key[0] <= until)
    assert [one[:4] for one in later] == [key for key in keys if key[0] > until]
    assert next_ns == min((one.at_ns for one in later), default=NEVER)
