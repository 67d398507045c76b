"""PETH, ERTH, EETH."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.endpoint_headers import Eeth, EethLow, EethTop, Erth, Peth, eeth_class
from mrcfabric.wire.header import Header
from mrcfabric.wire.options import WireOptions
from tests.support.headers import assert_round_trip, headers


@pytest.mark.parametrize(("kind", "size"), [(Peth, 16), (Erth, 16), (Eeth, 36), (EethLow, 36), (EethTop, 36)])
def test_sizes(kind: type[Header], size: int) -> None:
    assert size == kind.SIZE


@pytest.mark.spec("MRC 1.0", "7.5")
@given(
    header=st.one_of(headers(Peth), headers(Erth), headers(Eeth), headers(EethLow), headers(EethTop)),
    behind=st.binary(max_size=3),
)
def test_round_trip(header: Header, behind: bytes) -> None:
    assert_round_trip(header, behind)


@pytest.mark.spec("MRC 1.0", "7.5")
def test_where_the_response_has_its_op_is_a_setting() -> None:
    assert Eeth(1).emit()[:2].hex() == "0004"
    assert EethLow(1).emit()[:2].hex() == Erth(1).emit()[:2].hex() == "0001"
    assert eeth_class(WireOptions()) is Eeth
    assert EethTop(1).emit()[:2].hex() == "0010"
    assert eeth_class(WireOptions(eeth_op_shift=0)) is EethLow
    assert eeth_class(WireOptions(eeth_op_shift=4)) is EethTop
