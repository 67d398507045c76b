"""What a neighbour is told: only what changed, packed by attributes, held back where that is asked for."""

from mrcfabric.prefix import Prefix
from mrcfabric.wire import bgp, bgp_update
from switchd.core.routing.outbound import Offer, Outbound

HOP = bytes.fromhex("fe80" + "00" * 13 + "01")
P = [Prefix(number << 64, 64) for number in range(6)]
A, B = Offer((1,), 0, ()), Offer((1, 2), 0, ())


def said(messages: list[bytes]) -> list[bgp_update.Update]:
    return [bgp_update.parse(message[bgp.HEADER_SIZE :]) for message in messages]


def test_prefixes_with_the_same_attributes_share_a_message() -> None:
    outbound = Outbound(HOP)
    for prefix, offer in zip(P, (A, B, A, B, A), strict=False):
        outbound.offer(prefix, offer)
    first, second = said(outbound.take())
    assert (first.reach, second.reach) == ((P[0], P[2], P[4]), (P[1], P[3]))
    assert first.attributes == bgp_update.Attributes((1,), HOP)
    assert not outbound.waiting
    assert outbound.take() == []


def test_only_changes_are_said_and_what_comes_and_goes_is_not() -> None:
    outbound = Outbound(HOP)
    outbound.offer(P[0], A)
    outbound.offer(P[1], A)
    outbound.take()
    outbound.offer(P[0], A)
    assert not outbound.waiting
    outbound.offer(P[0], B)
    outbound.offer(P[0], A)
    assert not outbound.waiting
    outbound.offer(P[2], A)
    outbound.offer(P[2], None)
    outbound.offer(P[1], None)
    (update,) = said(outbound.take())
    assert update == bgp_update.Update(unreach=(P[1],))
    assert outbound.told == {P[0]: A}


def test_withdrawals_come_first_and_the_end_of_the_table_last() -> None:
    outbound = Outbound(HOP)
    outbound.offer(P[0], A)
    outbound.take()
    outbound.offer(P[0], None)
    outbound.offer(P[1], A)
    outbound.end_of_rib = True
    found = said(outbound.take())
    assert [bool(one.unreach) for one in found] == [True, False, False]
    assert [one.end_of_rib for one in found] == [False, False, True]


def test_what_is_held_back_waits_and_withdrawals_do_not() -> None:
    outbound = Outbound(HOP)
    outbound.offer(P[0], A)
    outbound.offer(P[1], A)
    outbound.end_of_rib = True
    (update,) = said(outbound.take({P[1]}))
    assert update.reach == (P[0],)
    assert outbound.waiting
    outbound.offer(P[0], None)
    assert said(outbound.take({P[0], P[1]})) == [bgp_update.Update(unreach=(P[0],))]
    assert [one.reach for one in said(outbound.take())] == [(P[1],), ()]


def test_a_session_that_ended_knows_nothing() -> None:
    outbound = Outbound(HOP)
    outbound.offer(P[0], A)
    outbound.take()
    outbound.offer(P[1], A)
    outbound.forget()
    assert not outbound.waiting
    outbound.offer(P[0], A)
    assert outbound.waiting
