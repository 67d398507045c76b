"""Packets that a fault names are lost once, whatever transport they are of; all others pass."""

import pytest

from mrcfabric.named_packets import NamedPackets
from mrcfabric.wire.layout import WRITE_MIDDLE
from mrcfabric.wire.lrh_rc import LrhControlTemplate, LrhDataTemplate
from mrcfabric.wire.roce import RcDataTemplate
from mrcfabric.wire.roce_layout import RC_WRITE_MIDDLE
from mrcfabric.wire.uet_layout import FLAG_RETX, REQUESTS
from mrcfabric.wire.uet_templates import UetTemplate
from tests.support.packets import data_packet
from tests.support.roce_packets import one_of_each_rc
from tests.support.uet_packets import FAR, FIRST, NEAR, one_of_each_uet
from tests.vectors import wire as golden

SOURCE, DESTINATION, OUTER = bytes(16), bytes(15) + b"\1", bytes(range(16))
QPN, PSN = 0x123456, 0xFFFFFF
GOLDEN_PSN = 5
"""Of what `data_packet` makes."""


def rc_packet(psn: int = PSN, outer: bytes | None = None, selective: bool = False, asking: bool = False) -> bytearray:
    template = RcDataTemplate(SOURCE, DESTINATION, QPN, 0xC001, dscp=26, outer=outer, selective=selective)
    return template.make(RC_WRITE_MIDDLE, psn, b"payload", ack_request=asking)


def naming(*numbers: int) -> NamedPackets:
    named = NamedPackets()
    named.change(frozenset(numbers))
    return named


@pytest.mark.parametrize("asking", [False, True])
@pytest.mark.parametrize("selective", [False, True])
@pytest.mark.parametrize("outer", [None, OUTER], ids=["plain", "pinned"])
def test_a_packet_of_rc_is_lost_once(outer: bytes | None, selective: bool, asking: bool) -> None:
    named = naming(QPN << 24 | PSN)
    assert not named.lose(rc_packet(PSN - 1, outer, selective=selective))
    assert named.lose(rc_packet(PSN, outer, selective=selective, asking=asking))
    assert not named.lose(rc_packet(PSN, outer, selective=selective, asking=asking)), "sent again it passes"


def test_what_was_lost_is_remembered_while_it_is_named() -> None:
    number = QPN << 24 | PSN
    named = naming(number)
    assert named.lose(rc_packet())
    named.change(frozenset((number, 7)))
    assert not named.lose(rc_packet()), "another fault has begun meanwhile"
    named.change(frozenset())
    named.change(frozenset((number,)))
    assert named.lose(rc_packet()), "a new fault"


def test_a_retransmission_of_mrc_says_so_and_passes() -> None:
    named = naming(golden.QP << 24 | GOLDEN_PSN)
    assert not named.lose(data_packet(WRITE_MIDDLE, rtx=True))
    assert named.lose(data_packet(WRITE_MIDDLE))
    assert not named.lose(data_packet(WRITE_MIDDLE, rtx=True))


def test_acknowledgements_and_fragments_pass() -> None:
    *data, ack, nak, not_ready, notification = one_of_each_rc()
    numbers = [qpn << 24 | psn for qpn in (0x123, 0x124, QPN) for psn in (0, 5, PSN, *range(70, 90))]
    named = naming(*numbers)
    for packet in (ack, nak, not_ready, notification, b"", bytes(7), bytes(rc_packet())[:59]):
        assert not named.lose(packet)
    assert all(named.lose(packet) for packet in data)


@pytest.mark.parametrize("kind", sorted(REQUESTS))
def test_a_packet_of_uet_is_lost_unless_it_is_sent_again(kind: int) -> None:
    template = UetTemplate(NEAR, FAR)
    numbers = 0xFF000000 | PSN, kind, FIRST._replace(pid=QPN >> 12, resource=QPN & 0xFFF)

    def packet(flags: int = 0, psn: int = numbers[0]) -> bytearray:
        return template.request(0xC000, kind, flags, 0, psn, 1, 2, numbers[2], bytes(9))

    named = naming(QPN << 24 | PSN)
    assert not named.lose(packet(psn=numbers[0] - 1))
    assert not named.lose(packet(FLAG_RETX))
    assert named.lose(packet())
    whole = packet()
    assert not any(named.lose(whole[:size]) for size in range(72))
    assert not any(named.lose(one) for one in one_of_each_uet())


@pytest.mark.parametrize("slid", [5, 17 << 8, 41 << 8])
def test_a_packet_of_infiniband_is_lost_once(slid: int) -> None:
    """Its sender's LID stands where other packets name their next header."""
    named = naming(QPN << 24 | PSN)
    packets = [LrhDataTemplate(slid, 9, QPN, vl=vl).make(RC_WRITE_MIDDLE, PSN, bytes(64)) for vl in (0, 6)]
    assert not named.lose(LrhDataTemplate(slid, 9, QPN).make(RC_WRITE_MIDDLE, PSN - 1, bytes(64)))
    assert not named.lose(LrhControlTemplate(slid, 9, QPN).ack(PSN, 1))
    assert [named.lose(packet) for packet in packets] == [True, False]
