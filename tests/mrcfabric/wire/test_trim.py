"""What trimming leaves."""

import pytest

from mrcfabric.wire.dscp import CE, Dscp, dscp_of, ecn_of, mark_ce
from mrcfabric.wire.fastpath import peeker, read_data
from mrcfabric.wire.trim import TRIM_BYTES_DEFAULT, TRIM_BYTES_MIN, trim
from tests.support.packets import data_packet
from tests.vectors import wire as golden


@pytest.mark.spec("MRC 1.0", "1.8")
@pytest.mark.parametrize("trim_bytes", [TRIM_BYTES_MIN, TRIM_BYTES_DEFAULT])
def test_a_trimmed_packet_still_says_what_it_was(trim_bytes: int) -> None:
    packet = data_packet(0xC9, bytes(4096), ts=True)
    mark_ce(packet)
    before = bytes(packet)
    cut = trim(memoryview(packet), trim_bytes, Dscp().trimmed)
    assert packet == before
    assert len(cut) == trim_bytes
    assert cut[2:] == before[2:trim_bytes]
    assert (dscp_of(cut), ecn_of(cut)) == (12, CE)
    reason, _, opcode, _, qp, psn, ev, _, size, source, _ = peeker(Dscp())(cut)
    assert (reason, opcode, qp, psn, ev, size, source) == (None, 0xC9, golden.QP, 5, golden.EV, -1, golden.SOURCE)


@pytest.mark.spec("MRC 1.0", "1.8")
def test_a_short_packet_is_only_marked() -> None:
    packet = data_packet(0xCA, b"x")
    cut = trim(packet, TRIM_BYTES_DEFAULT, Dscp().trimmed_lasthop)
    assert len(cut) == len(packet)
    assert dscp_of(cut) == 16
    assert read_data(cut) == read_data(packet)
