"""METH, TSETH, RETH, ImmDt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.data_headers import ImmDt, Meth, Reth, Tseth
from mrcfabric.wire.header import Header
from tests.support.headers import assert_round_trip, headers


@pytest.mark.parametrize(("kind", "size"), [(Meth, 4), (Tseth, 4), (Reth, 16), (ImmDt, 4)])
def test_sizes(kind: type[Header], size: int) -> None:
    assert size == kind.SIZE


@pytest.mark.spec("MRC 1.0", "7.5")
@given(header=st.one_of(headers(Meth), headers(Tseth), headers(Reth), headers(ImmDt)), behind=st.binary(max_size=3))
def test_round_trip(header: Header, behind: bytes) -> None:
    assert_round_trip(header, behind)
