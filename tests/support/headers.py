"""Headers for property tests: a strategy from a header's own field table, and the round trip every header must make."""

from typing import Any

import pytest
from hypothesis import strategies as st

from mrcfabric.errors import WireError
from mrcfabric.wire.header import Header, Kind


def headers(kind: type[Header]) -> st.SearchStrategy[Any]:
    """Any header of this kind: every field over its whole range."""
    values: dict[str, st.SearchStrategy[Any]] = {}
    for field in kind.FIELDS:
        if field.kind is Kind.ADDRESS:
            values[field.name] = st.binary(min_size=field.bits // 8, max_size=field.bits // 8)
        elif field.kind is Kind.SIGNED:
            values[field.name] = st.integers(-(1 << field.bits - 1), (1 << field.bits - 1) - 1)
        elif field.kind is Kind.UNSIGNED:
            values[field.name] = st.integers(0, (1 << field.bits) - 1)
    return st.builds(kind, **values)


def assert_round_trip(header: Header, behind: bytes = b"") -> None:
    """Emitting and parsing gives the same header, whatever stands behind it, and one byte less is refused."""
    emitted = header.emit()
    kind = type(header)
    assert len(emitted) == kind.SIZE
    assert kind.parse(emitted + behind) == header
    assert kind.parse(memoryview(emitted + behind)).emit() == emitted
    with pytest.raises(WireError, match="truncated"):
        kind.parse(emitted[:-1])
