"""Bytes read as decisions."""

from fuzz.script import Script, damaged
from fuzz.stage import packets_of_each_kind
from mrcfabric.wire.icrc import icrc_ok


def test_when_the_bytes_are_used_up_every_decision_is_zero() -> None:
    script = Script(b"\1\2\3")
    assert script.number(2) == 0x102
    assert script.below(2) == 1
    assert (script.left, script.number(4), script.below(7), script.take(3)) == (0, 0, 0, b"")


def test_no_edits_leave_a_packet_as_it_was() -> None:
    for packet in packets_of_each_kind():
        assert damaged(Script(b""), packet, (), ()) == packet


def test_damage_with_intent_has_a_good_sum() -> None:
    packet = packets_of_each_kind()[0]
    copy = damaged(Script(bytes([3, 2, 0, 110, 3])), packet, (), ())
    assert copy != packet
    assert icrc_ok(copy)
