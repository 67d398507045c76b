"""What a witness reads from packets of UET, and which of them are followed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.choice import Choice
from mrcfabric.naming import nic_address
from mrcfabric.wire.dscp import CE, Dscp
from mrcfabric.wire.layout import HOP_LIMIT_OFFSET, PSN_MASK
from mrcfabric.wire.trim import trim
from mrcfabric.wire.uet_layout import (
    CC_NSCC,
    CONTROL_PROBE,
    FLAG_PROBE,
    FLAG_RETX,
    NACK_NAMES,
    NACK_OUT_OF_ORDER,
    NACK_TRIMMED,
    RUD_CC_REQUEST,
    RUD_REQUEST,
)
from mrcfabric.wire.uet_templates import UetTemplate
from mrcfabric.witness_packets import REACH, PacketReader, covers
from tests.support.uet_packets import FIRST, LAST, one_of_each_uet

FROM, TO, QPN, OWN_QPN, ENTROPY = 4, 9, 0x12077, 0x55, 0xC123
HIGH = 0xFF000000
"""The upper bits of PSNs, of which journeys say nothing."""
ONE = Choice(source=FROM, source_qpn=OWN_QPN, destination=TO, destination_qpn=QPN, first=1000, count=1)
CRCS = pytest.mark.parametrize("crc", ["crc32", "none"])


def reader(choice: Choice = ONE) -> PacketReader:
    return PacketReader(choice, Dscp())


def data(psn: int = 1000, crc: str = "crc32", kind: int = RUD_REQUEST, flags: int = 0, ses: Any = FIRST) -> bytearray:
    template = UetTemplate(nic_address(FROM), nic_address(TO), crc=crc)
    write = ses._replace(pid=QPN >> 12, resource=QPN & 0xFFF, initiator=OWN_QPN)
    return template.request(ENTROPY, kind, flags, -1, HIGH | psn, 7, 9, write, b"payload!" * 40)


def back(crc: str = "crc32") -> UetTemplate:
    return UetTemplate(nic_address(TO), nic_address(FROM), crc=crc)


def ack(cack: int, caused: int, base: int = 1, bitmap: int = 0, flags: int = 0, crc: str = "crc32") -> bytearray:
    return back(crc).ack(ENTROPY, flags, caused - cack, HIGH | cack, 9, 7, CC_NSCC, 32, base, bitmap, 0)


@CRCS
@pytest.mark.parametrize("flags", [0, FLAG_RETX])
@pytest.mark.parametrize("kind", [RUD_REQUEST, RUD_CC_REQUEST])
@pytest.mark.parametrize("ses", [FIRST, LAST], ids=["first", "last"])
def test_a_data_packet_is_described(crc: str, flags: int, kind: int, ses: Any) -> None:
    packet = data(crc=crc, kind=kind, flags=flags, ses=ses)
    about = reader().look(packet)
    assert about is not None
    assert about.pop("print") > 0
    assert about == {
        "kind": "data", "source": FROM, "destination": TO, "qpn": QPN, "psn": 1000, "sport": ENTROPY,
        "rtx": bool(flags), "ce": False, "size": len(packet),
    }  # fmt: skip
    assert reader().look(data(999, crc)) is None
    assert reader(Choice(**{**ONE.settings(), "destination_qpn": QPN + 1})).look(packet) is None


@CRCS
@pytest.mark.parametrize("cut", [128, 256])
def test_a_packet_has_one_print_all_the_way(crc: str, cut: int) -> None:
    book, before = reader(), data(crc=crc)
    after = trim(before, cut, Dscp().trimmed)
    after[HOP_LIMIT_OFFSET] -= 2
    after[1] |= CE << 4
    looks = [book.look(before), book.look(after)]
    assert looks[0] is not None
    assert looks[1] is not None
    assert (looks[0]["kind"], looks[1]["kind"]) == ("data", "trimmed")
    assert looks[0]["print"] == looks[1]["print"]
    again = book.look(data(crc=crc, flags=FLAG_RETX))
    assert again is not None
    assert again["print"] != looks[0]["print"]


@CRCS
def test_what_an_acknowledgement_says(crc: str) -> None:
    book = reader(Choice())
    said = book.look(ack(1000, 1007, base=3, bitmap=0b101, crc=crc))
    assert said is not None
    assert (said["kind"], said["cack"], said["caused"], said["base"], said["bitmap"]) == ("sack", 1000, 1007, 1003, 5)
    assert [covers(said, psn) for psn in (999, 1000, 1001, 1003, 1004, 1005, 1007)] == [
        True, True, False, True, False, True, True
    ]  # fmt: skip
    probed = book.look(ack(1000, 5, flags=FLAG_PROBE, crc=crc))
    assert probed is not None
    assert probed["caused"] is None
    for code in (NACK_TRIMMED, NACK_OUT_OF_ORDER, 0xFE):
        nack = book.look(back(crc).nack(1, 0, code, HIGH | 1000, 9, 7))
        assert nack is not None
        assert (nack["kind"], nack["wanted"], nack["reason"]) == ("nack", 1000, NACK_NAMES.get(code, "0xfe"))


def test_answers_of_others_are_nobodys_once_the_context_is_known() -> None:
    book = reader()
    mine = ack(1000, 1000)
    unknown = book.look(mine)
    assert unknown is not None, "no request was seen: it may be ours"
    assert unknown["qpn"] == 0
    assert book.look(data()) is not None
    known = book.look(mine)
    assert known is not None
    assert known["qpn"] == OWN_QPN
    other = reader(Choice(**{**ONE.settings(), "source_qpn": OWN_QPN + 1}))
    other.look(data())
    assert other.look(mine) is None
    assert book.look(back().control(1, CONTROL_PROBE, 0, HIGH | 1000, 9, 7)) is None


def test_how_far_an_acknowledgement_reaches() -> None:
    assert reader().look(ack(1000 + REACH - 1, 1000 + REACH - 1)) is not None
    assert reader().look(ack(1000 + REACH, 1000 + REACH)) is None
    assert reader().look(ack(990, 991, base=1, bitmap=1 << 9)) is not None
    assert reader().look(ack(990, 991, base=1, bitmap=1 << 8)) is None
    wrapped = reader(Choice(**{**ONE.settings(), "first": PSN_MASK}))
    assert wrapped.look(ack(5, 5)) is not None


def test_every_packet_is_recognised() -> None:
    book = reader(Choice())
    for crc in ("crc32", "none"):
        looks = [book.look(packet) for packet in one_of_each_uet(crc)]
        kinds = [look["kind"] if look else "" for look in looks]
        assert kinds.count("data") == 24
        assert kinds.count("sack") == 2
        assert kinds.count("nack") == len(NACK_NAMES)


@given(st.sampled_from(one_of_each_uet()), st.integers(0, 400), st.integers(0, 255))
def test_any_part_of_any_packet_is_looked_at(packet: bytes, place: int, value: int) -> None:
    harmed = bytearray(packet)
    harmed[place % len(harmed)] = value
    for choice in (Choice(), Choice(every=3), ONE):
        book = PacketReader(choice, Dscp())
        book.look(harmed)
        book.look(harmed[: place + 1])
