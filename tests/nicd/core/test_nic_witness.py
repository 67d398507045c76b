"""What a NIC's witness says of received packets and of what is sent again: two NICs on a wire that does as told."""

from collections import Counter
from itertools import count
from typing import Any

import pytest

from mrcfabric.choice import Choice
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.layout import PSN_MASK
from mrcfabric.witness import STATEMENTS_MAX, Witness
from mrcfabric.witness_packets import covers
from nicd.core.mrc.reverse_set import ReverseSet
from tests.support.ladder import FIRST_PSN, Ladder
from tests.support.wire import AB


class Scene:
    """A ladder with a witness in both NICs."""

    def __init__(self, **nic: Any) -> None:
        self.ladder = Ladder(**nic)
        self.books = {}
        for name in ("a", "b"):
            self.books[name] = Witness(Choice(), Dscp())
            getattr(self.ladder, name).nic.set_witness(self.books[name])

    def run(self, packets: int = 40) -> None:
        self.ladder.write(packets)
        assert self.ladder.run()
        self.ladder.verify()

    def told(self, name: str, step: str, *kinds: str) -> list[dict[str, Any]]:
        statements = self.books[name].after(0, STATEMENTS_MAX)["statements"]
        return [one for one in statements if one["step"] == step and one["packet"]["kind"] in kinds]


def number(statement: dict[str, Any]) -> int:
    psn: int = statement["packet"]["psn"]
    return (psn - FIRST_PSN[AB]) & PSN_MASK


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_every_packet_is_placed_and_acknowledged(scene: Scene) -> None:
    scene.run()
    takes = scene.told("b", "take", "data")
    assert sorted((number(one), one["verdict"]) for one in takes) == [(place, "placed") for place in range(40)]
    assert not [one for one in scene.told("a", "offer", "data") if "cause" in one]
    sacks = scene.told("a", "take", "sack")
    assert all(one["verdict"] == "taken" for one in sacks)
    for take in takes:
        assert any(covers(one["packet"], take["packet"]["psn"]) for one in sacks)


def test_why_it_is_sent_again(scene: Scene) -> None:
    scene.ladder.wire.drop(direction=AB, number=20, nth=1)
    scene.ladder.wire.trim(direction=AB, number={3, 7}, rtx=False)
    scene.ladder.wire.drop(direction=AB, number=39, nth=1)
    scene.run()
    causes = {number(one): one["cause"] for one in scene.told("a", "offer", "data") if "cause" in one}
    assert causes == {20: "gap", 3: "trim", 7: "trim", 39: "timeout"}
    assert Counter(causes.values()) == scene.ladder.a.retransmits
    trimmed = scene.told("b", "take", "trimmed")
    assert [(number(one), one["verdict"]) for one in trimmed] == [(3, "trimmed"), (7, "trimmed")]
    assert {one["packet"]["reason"] for one in scene.told("b", "offer", "nack")} == {"TRIMMED"}


def test_duplicates_and_drops(scene: Scene) -> None:
    scene.ladder.wire.duplicate(direction=AB, number=5)
    scene.ladder.wire.rule(
        "harmed", lambda seen, _wire: [(0, bytes(seen.packet[:-1]) + b"!")], direction=AB, number=9, nth=1
    )
    scene.run()
    verdicts: dict[int, list[str]] = {}
    for one in scene.told("b", "take", "data"):
        verdicts.setdefault(number(one), []).append(one["verdict"])
    assert verdicts[5] == ["placed", "duplicate"]
    assert verdicts[9] == ["dropped: icrc", "placed"]


@pytest.mark.pure
def test_a_packet_is_placed_whether_or_not_its_acknowledgement_finds_a_port(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = ReverseSet.reply
    asked = count()
    monkeypatch.setattr(ReverseSet, "reply", lambda own: None if next(asked) < 2 else reply(own))
    scene.ladder.wire.trim(direction=AB, number=1, rtx=False)
    scene.run()
    assert scene.ladder.b.drops == {"no_port": 2}
    takes = scene.told("b", "take", "data", "trimmed")
    verdicts = Counter(one["verdict"] for one in takes)
    assert verdicts["placed"] == 40
    assert verdicts["trimmed"] == 1
    assert set(verdicts) <= {"placed", "trimmed", "duplicate"}


def test_a_packet_without_room_is_told_by_the_reason_of_its_nack() -> None:
    small = Scene(ooo_packets_max=2)
    small.ladder.wire.drop(direction=AB, number=3, nth=1)
    small.run()
    told = Counter(one["verdict"] for one in small.told("b", "take", "data"))
    assert told == {"placed": 40, "dropped: no_pkt_buffer": small.ladder.b.drops["no_pkt_buffer"]}
    causes = Counter(one["cause"] for one in small.told("a", "offer", "data") if "cause" in one)
    assert causes == small.ladder.a.retransmits
    assert causes["nack"] > 0


def test_a_nic_whose_contexts_come_from_afar() -> None:
    small = Scene(sram_bytes=1 << 20)
    small.run()
    assert [one["verdict"] for one in small.told("b", "take", "data")] == ["placed"] * 40


def test_nobody_looks_any_more(scene: Scene) -> None:
    scene.ladder.a.nic.set_witness(None)
    scene.ladder.b.nic.set_witness(None)
    scene.run()
    assert all(book.after(0, 1)["last"] == 0 for book in scene.books.values())
