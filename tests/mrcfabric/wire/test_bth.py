"""The base transport header."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.bth import Bth
from mrcfabric.wire.header import Header
from tests.support.headers import assert_round_trip, headers


@pytest.mark.parametrize(("kind", "size"), [(Bth, 12)])
def test_sizes(kind: type[Header], size: int) -> None:
    assert size == kind.SIZE


@given(header=st.one_of(headers(Bth)), behind=st.binary(max_size=3))
def test_round_trip(header: Header, behind: bytes) -> None:
    assert_round_trip(header, behind)


@pytest.mark.spec("MRC 1.0", "7.5")
def test_flags_and_bits_by_hand() -> None:
    header = Bth(0xDC, dest_qp=0xABCDEF, psn=0x123456, a=1, rtx=1, ts=1, m=1, se=0, pad_count=3, variant=0x40)
    assert header.emit().hex() == "dcb0ffff40abcdefb0123456"
