"""What a witness reads from packets of RC; `test_witness` has those of MRC."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.choice import Choice
from mrcfabric.lids import base_lid
from mrcfabric.naming import nic_address
from mrcfabric.wire.dscp import CE, Dscp
from mrcfabric.wire.layout import HOP_LIMIT_OFFSET, PSN_MASK
from mrcfabric.wire.lrh import set_vl
from mrcfabric.wire.lrh_rc import LrhControlTemplate, LrhDataTemplate
from mrcfabric.wire.options import WireOptions
from mrcfabric.wire.roce import CnpTemplate, RcControlTemplate, RcDataTemplate
from mrcfabric.wire.roce_layout import (
    NAK_INVALID_REQUEST,
    NAK_REMOTE_ACCESS,
    NAK_SEQUENCE,
    RC_RNR_NAK,
    RC_WRITE_FIRST,
    RC_WRITE_MIDDLE,
)
from mrcfabric.wire.usid import build
from mrcfabric.witness_packets import FLOWS_MAX, REACH, STEPS, PacketReader, covers
from tests.support.lrh_packets import one_of_each_lrh
from tests.support.packets import one_of_each
from tests.support.roce_packets import one_of_each_rc

FROM, TO, QPN, OWN_QPN, SPORT = 4, 9, 0x77, 0x55, 0xC123
CONTAINER = build(0xFCBB_BB00, (0x4001, 0xC001))
ONE = Choice(source=FROM, source_qpn=OWN_QPN, destination=TO, destination_qpn=QPN, first=1000, count=1)


def reader(choice: Choice = ONE) -> PacketReader:
    return PacketReader(choice, Dscp())


def data(psn: int = 1000, opcode: int = RC_WRITE_MIDDLE, qpn: int = QPN, **how: Any) -> bytearray:
    template = RcDataTemplate(nic_address(FROM), nic_address(TO), qpn, SPORT, dscp=26, **how)
    return template.make(opcode, psn & PSN_MASK, b"payload!" * 32, 0x1000, 1, 1 << 20)


def answers(qpn: int = OWN_QPN, **how: Any) -> RcControlTemplate:
    return RcControlTemplate(nic_address(TO), nic_address(FROM), qpn, 0xD000, dscp=48, **how)


def ack(cack: int, selective: bool = False, **how: Any) -> bytearray:
    return answers(selective=selective).ack(cack & PSN_MASK, 1, **how)


@pytest.mark.parametrize("outer", [None, CONTAINER])
@pytest.mark.parametrize("selective", [False, True])
@pytest.mark.parametrize("opcode", [RC_WRITE_FIRST, RC_WRITE_MIDDLE])
def test_a_data_packet_is_described(outer: bytes | None, selective: bool, opcode: int) -> None:
    packet = data(opcode=opcode, outer=outer, selective=selective)
    about = reader().look(packet)
    assert about is not None
    assert about.pop("print") > 0
    assert about == {
        "kind": "data", "source": FROM, "destination": TO, "qpn": QPN, "psn": 1000, "sport": SPORT, "rtx": False,
        "ce": False, "size": len(packet),
    }  # fmt: skip
    assert reader().look(data(999, opcode, outer=outer, selective=selective)) is None
    assert reader().look(data(opcode=opcode, qpn=QPN + 1, outer=outer, selective=selective)) is None


@pytest.mark.parametrize("outer", [None, CONTAINER])
def test_switches_do_not_change_the_print(outer: bytes | None) -> None:
    book, before, after = reader(), data(outer=outer), data(outer=outer)
    after[HOP_LIMIT_OFFSET] -= 2
    bth = len(after) - len(data()) + 48
    after[bth - 1] ^= 1
    after[bth + 4] ^= 0x80
    after[1] |= CE << 4
    looks = [book.look(before), book.look(after)]
    assert looks[0] is not None
    assert looks[1] is not None
    assert looks[0]["print"] == looks[1]["print"]
    assert (looks[0]["ce"], looks[1]["ce"]) == (False, True)
    other = reader(Choice()).look(data(1001, outer=outer))
    assert other is not None
    assert other["print"] != looks[0]["print"]


@pytest.mark.parametrize("selective", [False, True])
def test_what_an_acknowledgement_says(selective: bool) -> None:
    book = reader(Choice())
    said = book.look(ack(1000, selective, cause=1007))
    assert said is not None
    assert (said["kind"], said["cack"], said["msn"], said.get("caused")) == (
        "ack",
        1000,
        1,
        1007 if selective else None,
    )
    assert [covers(said, psn) for psn in (999, 1000, 1001, 1007)] == [True, True, False, selective]
    nak = book.look(ack(1000, selective, syndrome=NAK_SEQUENCE, cause=1007))
    assert nak is not None
    assert (nak["kind"], nak["cack"], nak["wanted"], nak["reason"]) == ("nack", 999, 1000, "sequence")
    assert [covers(nak, psn) for psn in (999, 1000, 1007)] == [True, False, selective]


@pytest.mark.parametrize(
    ("syndrome", "reason"),
    [
        (NAK_INVALID_REQUEST, "invalid_request"), (NAK_REMOTE_ACCESS, "remote_access"), (0x7F, "0x7f"),
        (RC_RNR_NAK, "receiver_not_ready"),
    ],
)  # fmt: skip
def test_what_a_refusal_says(syndrome: int, reason: str) -> None:
    said = reader(Choice()).look(ack(0, syndrome=syndrome))
    assert said is not None
    assert (said["reason"], said["wanted"], said["cack"]) == (reason, 0, PSN_MASK)


def test_how_far_an_acknowledgement_reaches() -> None:
    """One that completes many at once is followed for the first of them, also after some that got lost."""
    for step in (1, 4, 64, 300, 5_000):
        for lost in range(STEPS - 1):
            book = reader()
            # The first ones are of what came before.
            for cack in range(999 - 3 * step, 1000, step):
                assert book.look(ack(cack)) is None
            first = 999 + step + lost * step
            told = [book.look(ack(cack)) is not None for cack in range(first, first + step * 3 * REACH, step)]
            assert told[0], (step, lost)
            assert not told[-1], "what is old is nobody's any more"
            # Long after: at most the bound, in PSNs.
            assert sum(told) <= max(REACH // step + 1, STEPS)


def test_the_first_acknowledgement_of_a_flow_may_mean_all_of_a_window() -> None:
    assert reader().look(ack(1000 + 40_000)) is not None
    assert reader().look(ack(1000 + (1 << 16))) is None
    book = reader()
    assert book.look(ack(5_000)) is not None
    assert book.look(ack(5_001)) is None, "that one completes only what came later"
    assert book.look(ack(1_000)) is not None, "a late one of a pass before"


def test_a_nak_and_a_cause_are_about_their_own_psn() -> None:
    book = reader()
    assert book.look(ack(999)) is None
    assert book.look(ack(1000, syndrome=NAK_SEQUENCE)) is not None
    book = reader()
    assert book.look(ack(990, selective=True, cause=990)) is None
    assert book.look(ack(990, selective=True, syndrome=NAK_SEQUENCE, cause=1000)) is not None
    assert book.look(ack(990, selective=True, syndrome=NAK_SEQUENCE, cause=1001)) is None


def test_acknowledgements_of_others_and_notifications_are_nobodys() -> None:
    assert reader().look(answers(OWN_QPN + 1).ack(1000, 1)) is None
    cnp = CnpTemplate(nic_address(TO), nic_address(FROM), OWN_QPN, 0xD000, dscp=48).cnp()
    assert reader().look(cnp) is None
    assert reader(Choice()).look(cnp) is None


def test_a_share_follows_one_in_so_many_and_its_acknowledgement() -> None:
    book = reader(Choice(every=100))
    psns = [psn for psn in range(1_000) if book.look(data(psn)) is not None]
    assert [psn // 100 for psn in psns] == list(range(10))
    for cack in range(3, 1_100, 4):
        said = book.look(ack(cack))
        assert (said is not None) >= any(cack - 3 <= psn <= cack for psn in psns)


def test_flows_are_remembered_up_to_a_bound() -> None:
    book = reader(Choice())
    for qpn in range(FLOWS_MAX + 10):
        assert book.look(answers(qpn).ack(1000, 1)) is not None
    assert len(book._heard) == FLOWS_MAX


def test_every_packet_of_both_transports_is_recognised() -> None:
    book = reader(Choice())
    kinds = {about["kind"] for packet in one_of_each().values() if (about := book.look(packet)) is not None}
    assert kinds >= {"data", "sack", "nack", "ack"}
    for outer in (None, CONTAINER):
        for selective in (False, True):
            looks = [book.look(packet) for packet in one_of_each_rc(outer, selective)]
            assert [look and look["kind"] for look in looks] == ["data"] * 6 + ["ack", "nack", "nack", None]


@given(
    st.sampled_from([bytes(one) for outer in (None, CONTAINER) for one in one_of_each_rc(outer, True)]),
    st.integers(0, 400),
    st.integers(0, 255),
)
def test_any_part_of_any_packet_is_looked_at(packet: bytes, place: int, value: int) -> None:
    harmed = bytearray(packet)
    harmed[place % len(harmed)] = value
    for choice in (Choice(), Choice(every=3), ONE):
        book = PacketReader(choice, Dscp())
        book.look(harmed)
        book.look(harmed[: place + 1])


# InfiniBand.

LMC = 2
LIDS = base_lid(FROM, LMC) + 3, base_lid(TO, LMC) + 3


def lid_reader(choice: Choice = ONE) -> PacketReader:
    return PacketReader(choice, Dscp(), WireOptions(lid_lmc=LMC))


def lid_data(psn: int = 1000, **how: Any) -> bytearray:
    return LrhDataTemplate(*LIDS, QPN, **how).make(RC_WRITE_MIDDLE, psn, b"payload!" * 32)


@pytest.mark.parametrize("vl", [0, 4])
def test_a_data_packet_of_infiniband_is_described(vl: int) -> None:
    about = lid_reader().look(lid_data(sl=2, vl=vl))
    assert about is not None
    assert about.pop("print") > 0
    assert about == {
        "kind": "data", "source": FROM, "destination": TO, "qpn": QPN, "psn": 1000, "sport": 3, "dlid": LIDS[1],
        "sl": 2, "rtx": False, "ce": False, "size": len(lid_data()),
    }  # fmt: skip
    assert lid_reader().look(lid_data(999)) is None


def test_its_print_is_the_same_on_every_vl_and_with_a_mark() -> None:
    before = lid_data(vl=1)
    after = bytearray(before)
    set_vl(after, 5)
    after[12] |= 0x80
    prints = [about["print"] for packet in (before, after) if (about := lid_reader().look(packet)) is not None]
    assert len(prints) == 2
    assert prints[0] == prints[1]
    other = lid_reader(Choice()).look(lid_data(1001))
    assert other is not None
    assert other["print"] != prints[0]


def test_its_answers_are_followed() -> None:
    back = LrhControlTemplate(*reversed(LIDS), OWN_QPN)
    nak = lid_reader().look(back.ack(1001, 7, NAK_SEQUENCE))
    assert nak is not None
    assert (nak["kind"], nak["wanted"], nak["cack"], nak["msn"], nak["reason"]) == ("nack", 1001, 1000, 7, "sequence")
    ack = lid_reader().look(back.ack(1000, 8))
    assert ack is not None
    assert (ack["kind"], ack["source"], ack["destination"], covers(ack, 1000)) == ("ack", TO, FROM, True)
    assert lid_reader().look(LrhControlTemplate(*reversed(LIDS), OWN_QPN + 1).ack(1000, 8)) is None


@given(st.sampled_from(one_of_each_lrh()), st.integers(0, 400), st.integers(0, 255))
def test_any_part_of_any_packet_of_infiniband_is_looked_at(packet: bytes, place: int, value: int) -> None:
    harmed = bytearray(packet)
    harmed[place % len(harmed)] = value
    for choice in (Choice(), Choice(every=3), ONE):
        lid_reader(choice).look(harmed)
        lid_reader(choice).look(harmed[: place + 1])
