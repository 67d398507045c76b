"""AETH, SETH, NETH."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.ack_headers import Aeth, Neth, Seth
from mrcfabric.wire.header import Header
from tests.support.headers import assert_round_trip, headers


@pytest.mark.parametrize(("kind", "size"), [(Aeth, 4), (Seth, 36), (Neth, 20)])
def test_sizes(kind: type[Header], size: int) -> None:
    assert size == kind.SIZE


@given(header=st.one_of(headers(Aeth), headers(Seth), headers(Neth)), behind=st.binary(max_size=3))
def test_round_trip(header: Header, behind: bytes) -> None:
    assert_round_trip(header, behind)


@pytest.mark.spec("MRC 1.0", "7.5")
def test_bits_of_a_sack_by_hand() -> None:
    """type 15, next 1 -> f 0000 1|... ; M 2 and pr 1 -> 10 000 1 0; offsets -1 and -63."""
    header = Seth(0, 0, type=15, next=1, m=2, pr=1, ack_psn_offset=-1, sack_offset=-63, ooo_count=0x7FFF)
    raw = header.emit()
    assert raw[0:4].hex() == "f0c2ffff"
    assert raw[18:20].hex() == "ffc1"
    assert raw[30:32].hex() == "7fff"
