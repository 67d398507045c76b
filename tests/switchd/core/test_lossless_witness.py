"""What a witness hears when a lossless switch asks for a pause: how much is held, and for which ports it waits."""

from typing import Any

import pytest

from mrcfabric.choice import Choice
from mrcfabric.wire.dscp import Dscp
from mrcfabric.witness import Witness
from switchd.core.commands import SetForwarding
from switchd.core.lossless import LosslessSwitch
from tests.switchd.core.test_lossless import asked, burst, pfc, switch
from tests.switchd.core.test_switch import command


def watched() -> tuple[LosslessSwitch, Witness]:
    node, witness = switch(), Witness(Choice(), Dscp())
    node.set_witness(witness)
    return node, witness


def xoffs(witness: Witness) -> list[dict[str, Any]]:
    statements = witness.after(0, 999)["statements"]
    return [one for one in statements if one["step"] == "xoff"]


@pytest.mark.parametrize("gap_ns", [0, 100, 500])
def test_an_xoff_says_what_is_held_and_for_whom(gap_ns: int) -> None:
    node, witness = watched()
    # Two ports in turn: NIC 3 is behind port 1, NIC 2 behind port 0.
    frames = [*burst(8, gap_ns=gap_ns, port=2), *burst(3, at_ns=11, gap_ns=gap_ns, port=3)]
    sent = node.advance(sorted(frames, key=lambda one: one[:4]), 3_000_000)
    found = xoffs(witness)
    assert [(one["at_ns"], one["port"]) for one in found] == [
        (at_ns, port) for at_ns, port, quanta in asked(sent) if quanta
    ]
    assert found
    first = found[0]
    assert (first["class"], first["why"], first["port"]) == (3, "queue", 2)
    assert first["waits"] == [[1, first["bytes"], None]], "all that is held of that port and class waits for one port"


def test_an_xoff_says_which_of_the_ports_is_paused_and_since_when() -> None:
    node, witness = watched()
    frames = [pfc(60_000, 5, 1), pfc(60_000, 9, 1, sequence=2), *burst(2, 10, port=2), *burst(9, 20, port=2, to=2)]
    node.advance(frames, 40)
    (found,) = xoffs(witness)
    waits = {port: (waiting, since_ns) for port, waiting, since_ns in found["waits"]}
    assert waits[1] == (2_000, 9)
    assert waits[0][1] is None
    assert sum(waiting for waiting, _ in waits.values()) == found["bytes"]


def test_a_repeated_xoff_is_told_with_what_waits_by_then() -> None:
    node, witness = watched()
    node.advance([pfc(60_000, 5, 1), *burst(8, 10, port=2)], 1_000_000)
    found = xoffs(witness)
    assert len(found) > 10
    assert {tuple(map(tuple, one["waits"])) for one in found[1:]} == {((1, 8_000, 5),)}
    assert {one["bytes"] for one in found[1:]} == {8_000}


def test_a_switch_that_goes_on_tells_its_pauses_anew() -> None:
    node, witness = watched()
    node.advance([pfc(60_000, 5, 1), *burst(8, 10, port=2), command(SetForwarding(1, False), 20)], 100_000)
    before = len(xoffs(witness))
    node.advance([command(SetForwarding(2, True), 200_000)], 200_001)
    assert before == 1
    assert [one["at_ns"] for one in xoffs(witness)[before:]] == [200_000]
