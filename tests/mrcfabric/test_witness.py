"""What a witness recognises, and the bounds of its book."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.choice import Choice
from mrcfabric.naming import nic_address
from mrcfabric.units import Buffer
from mrcfabric.wire import srh
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.layout import NACK_TRIMMED, PSN_MASK, SYNDROME_ACK, WRITE_MIDDLE
from mrcfabric.wire.templates import ControlTemplate, DataTemplate
from mrcfabric.wire.trim import trim
from mrcfabric.wire.usid import build
from mrcfabric.witness import STATEMENTS_MAX, WAITING_MAX, Witness
from mrcfabric.witness_packets import REACH, covers
from tests.support.packets import one_of_each

DSCP = Dscp()
EV = 0x0001_8002
CONTAINER = build(0xFCBB_BB00, (0x4001, 0xC001))
FROM, TO, QPN, OWN_QPN = 4, 9, 0x77, 0x55
ONE = Choice(source=FROM, source_qpn=OWN_QPN, destination=TO, destination_qpn=QPN, first=1000, count=1)


def witness(choice: Choice = ONE) -> Witness:
    return Witness(choice, DSCP)


def data(psn: int = 1000, rtx: bool = False) -> bytearray:
    template = DataTemplate(nic_address(FROM), nic_address(TO), QPN, dscp=DSCP)
    return template.build(WRITE_MIDDLE, psn, 6, 7, 0x1000, 1, 1 << 20, EV, CONTAINER, b"payload!" * 32, rtx=rtx)


def answers() -> ControlTemplate:
    return ControlTemplate(nic_address(TO), nic_address(FROM), OWN_QPN, QPN, dscp=DSCP)


def sack(cack: int, caused: int, base: int = 1, bitmap: int = 0, probe: int | None = None) -> bytearray:
    offset = caused - cack
    return answers().sack(EV, CONTAINER, EV, 0, offset, cack & PSN_MASK, base, bitmap, 0, 0, 0, 0, False, probe)


def test_a_data_packet_is_described() -> None:
    packet = data(rtx=True)
    about = witness().look(packet)
    assert about is not None
    assert {key: about[key] for key in ("kind", "source", "destination", "qpn", "psn", "ev", "rtx", "size")} == {
        "kind": "data", "source": FROM, "destination": TO, "qpn": QPN, "psn": 1000, "ev": EV, "rtx": True,
        "size": len(packet),
    }  # fmt: skip
    assert witness().look(data(999)) is None


def test_a_packet_has_one_print_all_the_way() -> None:
    book, packet = witness(), data()
    cut = trim(packet, 128, DSCP.trimmed)
    with_srh = srh.insert(data(), srh.outer_with(CONTAINER, CONTAINER))
    packet[7] -= 1
    looks = [book.look(one) for one in (packet, cut, with_srh)]
    assert len({about["print"] for about in looks if about is not None}) == 1
    assert [about and about["kind"] for about in looks] == ["data", "trimmed", "data"]
    again = book.look(data(rtx=True))
    assert again is not None
    assert looks[0] is not None
    assert again["print"] != looks[0]["print"]


@pytest.mark.parametrize(
    ("packet", "followed"),
    [
        (sack(1000, 1000), True),
        (sack(1000 + REACH - 1, 2000), True),
        (sack(1000 + REACH, 2000), False),
        (sack(999, 999), False),
        (sack(990, 1000), True),
        (sack(990, 1000, probe=5), False),
        (sack(990, 990, base=5, bitmap=1 << 5), True),
        (sack(990, 990, base=5, bitmap=1 << 6), False),
        (answers().acknowledge(EV, CONTAINER, 1000, SYNDROME_ACK, 1), True),
        (answers().acknowledge(EV, CONTAINER, 999, SYNDROME_ACK, 1), False),
        (answers().nack(EV, CONTAINER, NACK_TRIMMED, EV, 1000, 0), True),
        (answers().nack(EV, CONTAINER, NACK_TRIMMED, EV, 1001, 0), False),
        (answers().probe(EV, CONTAINER, 1, 0), False),
    ],
)
def test_acknowledgements_of_a_followed_packet(packet: bytearray, followed: bool) -> None:
    about = witness().look(packet)
    assert (about is not None) is followed
    if about is not None and about["kind"] == "sack":
        assert covers(about, 1000)


def test_acknowledgements_of_others_are_nobodys() -> None:
    stranger = ControlTemplate(nic_address(TO), nic_address(FROM), OWN_QPN + 1, QPN, dscp=DSCP)
    assert witness().look(stranger.acknowledge(EV, CONTAINER, 1000, SYNDROME_ACK, 1)) is None


def test_a_share_follows_acknowledgements_too() -> None:
    book = witness(Choice(every=100))
    psn = next(psn for psn in range(100, 200) if book.look(data(psn)) is not None)
    about = book.look(sack(psn - 10, psn))
    assert about is not None
    assert covers(about, psn)
    assert book.look(sack(psn + REACH + 100, psn + REACH + 101)) is None or psn + REACH + 100 > 200


@given(st.binary(max_size=200))
def test_any_bytes_are_looked_at(noise: bytes) -> None:
    assert witness(Choice()).look(noise) is None


@given(st.sampled_from(sorted(one_of_each().values(), key=bytes)), st.integers(0, 200), st.integers(0, 255))
def test_any_part_of_any_packet_is_looked_at(packet: bytearray, place: int, value: int) -> None:
    harmed = bytearray(packet)
    harmed[place % len(harmed)] = value
    witness(Choice()).look(harmed)
    witness(Choice(every=3)).look(harmed[: place + 1])


def offered(book: Witness, packet: Buffer) -> None:
    book.offered(5, 1, packet, (100, 20, 3), "queued", packet)


def test_a_departure_refers_to_its_offer() -> None:
    book, packet = witness(), data()
    offered(book, packet)
    book.departed(9, (1, 20, packet))
    book.departed(9, (1, 20, packet))
    book.carried("loss", [])
    first, second = book.after(0, 9)["statements"]
    assert (first["n"], first["step"], first["data_bytes"], first["control_bytes"], first["wire_ns"]) == (
        1, "offer", 100, 20, 3
    )  # fmt: skip
    assert second == {"n": 2, "at_ns": 9, "step": "depart", "of": 1, "arrival_ns": 20, "marked": False}


def test_what_a_fault_did_is_told_of_the_last_departure() -> None:
    book, packet = witness(), data()
    offered(book, packet)
    book.departed(9, (1, 20, packet))
    book.carried("loss", [])
    assert book.after(2, 9)["statements"] == [{"n": 3, "at_ns": 9, "step": "carry", "of": 1, "lost": "loss"}]
    book.departed(10, (1, 21, data()))
    book.carried("loss", [])
    assert book.after(3, 9)["statements"] == [], "nobody follows that one"


def test_the_book_is_bounded_and_says_what_is_missing() -> None:
    book = witness()
    for _ in range(STATEMENTS_MAX + 3):
        book.dropped(1, data(), "hop_limit")
    assert book.lost == 3
    answer = book.after(0, 2)
    assert [one["n"] for one in answer["statements"]] == [4, 5]
    assert answer["more"]


def test_packets_that_never_leave_are_forgotten() -> None:
    book = witness()
    packets = [data() for _ in range(WAITING_MAX + 1)]
    for packet in packets:
        offered(book, packet)
    before = book.after(0, 1 << 20)["last"]
    book.departed(9, (1, 20, packets[0]))
    book.departed(9, (1, 20, packets[1]))
    assert [one["of"] for one in book.after(before, 9)["statements"]] == [2]


def steps(book: Witness) -> list[dict[str, Any]]:
    return [{key: value for key, value in one.items() if key != "n"} for one in book.after(0, 99)["statements"]]


def test_what_a_switch_says_of_a_packet_stands_in_its_next_statement_alone() -> None:
    book, packet = witness(), data()
    way = {"members": [4, 5], "hash": 77}
    book.routed(6, lambda: way)
    book.classed(3, 900)
    offered(book, packet)
    offered(book, data())
    book.routed(6, lambda: way)
    book.classed(3, 100)
    book.dropped(6, data(), "pfc_headroom")
    book.routed(7, lambda: None)
    book.dropped(7, data(), "buffer_full")
    first, second, third, fourth = steps(book)
    assert (first["class"], first["class_bytes"], first["ecmp"]) == (3, 900, way)
    assert not {"class", "class_bytes", "ecmp"} & second.keys()
    assert (third["reason"], third["ecmp"], third["port"]) == ("pfc_headroom", way, 6)
    assert (third["class"], third["class_bytes"]) == (3, 100)
    assert (fourth["port"], "ecmp" in fourth, "class" in fourth) == (7, False, False)


def test_nobody_asks_how_the_port_of_another_packet_was_chosen() -> None:
    book = witness()
    book.routed(6, lambda: pytest.fail("this packet is not followed"))
    offered(book, data(999))
    offered(book, data())
    assert "ecmp" not in steps(book)[0]


def test_a_pause_is_told_while_a_followed_packet_waits() -> None:
    book, packet = witness(), data()
    book.paused(3, 1, 3, 50)
    book.paused(4, 1, 3, 60)
    assert steps(book) == [], "nobody waits"
    book.classed(3, 0)
    offered(book, packet)
    book.paused(20, 1, 3, 80)
    book.paused(21, 1, 4, 80)
    book.paused(22, 2, 3, 80)
    book.paused(30, 1, 3, 30)
    book.departed(30, (1, 40, packet))
    book.paused(70, 1, 3, 90)
    told = [one for one in steps(book) if one["step"] == "pause"]
    assert told == [
        {"at_ns": 5, "step": "pause", "port": 1, "class": 3, "since_ns": 3, "until_ns": 60},
        {"at_ns": 20, "step": "pause", "port": 1, "class": 3, "since_ns": 3, "until_ns": 80},
        {"at_ns": 30, "step": "pause", "port": 1, "class": 3, "since_ns": 3, "until_ns": 30},
    ]


def test_a_pause_that_is_over_is_not_told() -> None:
    book = witness()
    book.paused(1, 1, 3, 4)
    book.classed(3, 0)
    offered(book, data())
    book.paused(9, 1, 3, 9)
    assert [one["step"] for one in steps(book)] == ["offer"]
    book.paused(10, 1, 3, 15)
    assert steps(book)[-1] == {"at_ns": 10, "step": "pause", "port": 1, "class": 3, "since_ns": 10, "until_ns": 15}


def test_pauses_are_told_while_the_node_asks_for_one_of_that_class() -> None:
    book = witness()
    book.asks_pause(8, 2, 3, "queue", 700)
    book.paused(10, 1, 3, 50)
    book.paused(11, 1, 4, 50)
    book.asks_no_more(2, 3)
    book.paused(20, 1, 3, 80)
    assert [(one["step"], one["at_ns"]) for one in steps(book)] == [("xoff", 8), ("pause", 10)]


def test_a_pause_that_the_node_asks_for() -> None:
    book = witness()
    book.asks_pause(8, 2, 3, "queue", 700, [(0, 500, None), (1, 200, 6)])
    assert steps(book) == [
        {"at_ns": 8, "step": "xoff", "port": 2, "class": 3, "why": "queue", "bytes": 700,
         "waits": [[0, 500, None], [1, 200, 6]]}
    ]  # fmt: skip
