"""IPv6, SRH and UDP."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.header import Header
from mrcfabric.wire.ipv6 import Ipv6, Srh, Udp
from tests.support.headers import assert_round_trip, headers


@pytest.mark.parametrize(("kind", "size"), [(Ipv6, 40), (Srh, 24), (Udp, 8)])
def test_sizes(kind: type[Header], size: int) -> None:
    assert size == kind.SIZE


@pytest.mark.spec("RFC 8200", "3")
@given(header=st.one_of(headers(Ipv6), headers(Srh), headers(Udp)), behind=st.binary(max_size=3))
def test_round_trip(header: Header, behind: bytes) -> None:
    assert_round_trip(header, behind)
