"""What belongs to a message under way, and what cannot be true."""

import pytest

from mrcfabric.wire.uet import Write
from mrcfabric.wire.uet_layout import RC_BAD_INDEX, RC_UNSUPPORTED_SIZE, SES_EOM, SES_SOM
from nicd.core.uet.under_way import Under, UnderWay

QPN, PEER = 0x123456, 77
FIRST = Write(SES_SOM, 9, 1, 0x123, 0x456, 0, PEER, 5, 0, 0, 2_500)
MIDDLE = FIRST._replace(flags=0, message_offset=1_024)
LAST = FIRST._replace(flags=SES_EOM, message_offset=2_048)


def test_every_packet_tells_where_its_message_ends() -> None:
    way = UnderWay(1_024, QPN, PEER)
    for write, psn, size in ((FIRST, 100, 1_024), (MIDDLE, 101, 1_024), (LAST, 102, 452)):
        found = way.find(write, psn, size)
        assert isinstance(found, Under)
        assert (found.length, found.left, found.psn_last) == (2_500, 2_500, 102)


def test_a_message_is_kept_until_it_is_whole() -> None:
    way = UnderWay(1_024, QPN, PEER)
    under = way.find(MIDDLE, 101, 1_024)
    assert isinstance(under, Under)
    assert len(way) == 0
    way.begin(9, under)
    assert way.find(FIRST, 100, 1_024) is under
    assert way.find(FIRST._replace(message_id=10), 100, 1_024) is not under
    way.end(9, under)
    assert (len(way), way.peak) == (0, 1)
    assert way.in_turn(1 << 30) == [], "it has no immediate"


def test_immediates_have_their_turn_when_all_before_has_come() -> None:
    way = UnderWay(1_024, QPN, PEER)
    for number, last in ((7, 120), (5, 102), (6, 110)):
        under = Under(2_500, last)
        under.imm = 1_000 + number
        way.begin(number, under)
        way.end(number, under)
    assert way.in_turn(102) == []
    assert way.in_turn(111) == [(5, 2_500, 1_005), (6, 2_500, 1_006)]
    assert way.in_turn(111) == []
    assert way.in_turn(500) == [(7, 2_500, 1_007)]


@pytest.mark.parametrize(
    ("write", "psn", "size"),
    [
        (FIRST, 100, 1_000), (MIDDLE._replace(message_offset=1_000), 101, 1_024), (LAST, 102, 451),
        (LAST._replace(message_offset=3_072), 103, 0), (FIRST._replace(flags=0), 100, 1_024),
        (FIRST._replace(flags=SES_SOM | SES_EOM), 100, 1_024), (LAST._replace(flags=0), 102, 452),
        (FIRST, 101, 1_024), (FIRST._replace(length=9_999), 100, 1_024),
    ],
)  # fmt: skip
def test_contradictions(write: Write, psn: int, size: int) -> None:
    way = UnderWay(1_024, QPN, PEER)
    way.begin(9, Under(2_500, 102))
    assert way.find(write, psn, size) == RC_UNSUPPORTED_SIZE


def test_packets_of_others() -> None:
    way = UnderWay(1_024, QPN, PEER)
    for other in (FIRST._replace(pid=1), FIRST._replace(resource=1), FIRST._replace(initiator=1)):
        assert way.find(other, 100, 1_024) == RC_BAD_INDEX
