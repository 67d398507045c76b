"""A switch with a witness says of followed packets why they never reach a port, or what they find at one."""

import pytest

from mrcfabric.choice import Choice
from mrcfabric.node import Input, Rank
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.layout import WRITE_ONLY
from mrcfabric.wire.usid import build
from mrcfabric.witness import Witness
from switchd.core.commands import SetForwarding
from switchd.core.switch import Switch
from tests.support.packets import data_template
from tests.switchd.core.test_switch import BLOCK, NEXT, OWN, STRANGER, command, frame, switch


def packet(*usids: int, hop_limit: int = 64) -> bytearray:
    way = build(BLOCK, usids)
    made = data_template().build(WRITE_ONLY, 5, 6, 7, 0x1000, 1, 8, 9, way, b"payload!")
    made[7] = hop_limit
    return made


@pytest.fixture
def seen() -> tuple[Switch, Witness]:
    here, witness = switch(), Witness(Choice(), Dscp())
    here.set_witness(witness)
    return here, witness


def test_what_goes_on_is_told_by_its_port(seen: tuple[Switch, Witness]) -> None:
    here, witness = seen
    out = here.advance([frame(packet(OWN, NEXT))], 1_000)
    offer, depart = witness.after(0, 9)["statements"]
    assert (offer["step"], offer["at_ns"], offer["port"], offer["verdict"]) == ("offer", 10, 1, "queued")
    assert (depart["step"], depart["of"], depart["arrival_ns"]) == ("depart", offer["n"], out[0][1])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (packet(OWN, NEXT, hop_limit=1), "hop_limit"),
        (packet(OWN, STRANGER), "unknown_usid"),
        (packet(STRANGER), "not_own_usid"),
        (packet(OWN), "no_usid_left"),
    ],
)
def test_what_does_not_go_on(seen: tuple[Switch, Witness], body: bytearray, reason: str) -> None:
    here, witness = seen
    here.advance([frame(body)], 1_000)
    assert here.drops[reason] == 1
    assert [(one["step"], one["reason"]) for one in witness.after(0, 9)["statements"]] == [("drop", reason)]


def test_a_switch_that_stands_still(seen: tuple[Switch, Witness]) -> None:
    here, witness = seen
    here.advance([command(SetForwarding(1, False), 5), frame(packet(OWN, NEXT))], 1_000)
    assert [one["reason"] for one in witness.after(0, 9)["statements"]] == ["frozen"]


def test_bytes_that_are_no_packet_are_counted_and_nobody_follows_them(seen: tuple[Switch, Witness]) -> None:
    here, witness = seen
    here.advance([frame(b"x" * 8), Input(11, Rank.FRAME, 0, 2, b"\x40" + bytes(99))], 1_000)
    assert (here.drops["short"], here.drops["not_ipv6"], witness.after(0, 9)["last"]) == (1, 1, 0)
