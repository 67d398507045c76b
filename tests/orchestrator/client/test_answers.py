"""Answers keep their bytes on the way through JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.client import answers

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(PLAIN.filter(lambda value: "$base64" not in str(value)))
def test_what_goes_in_comes_out(value: object) -> None:
    assert answers.loads(answers.dumps(value)) == value


def test_a_table_that_only_looks_alike_stays_one() -> None:
    for text in ('{"$base64": 3}', '{"$base64": "AA==", "more": 1}'):
        assert isinstance(answers.loads(text), dict)
    with pytest.raises(ValueError, match="base64"):
        answers.loads('{"$base64": "no!"}')
