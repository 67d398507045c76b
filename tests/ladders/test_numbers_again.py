"""A QP number that is used again at once: what is still under way of the one before does no harm."""

import pytest

from mrcfabric.units import Buffer
from mrcfabric.wire.icrc import seal
from mrcfabric.wire.layout import ACKNOWLEDGE, NACK, NACK_UNEXP_EVENT, SYNDROME_INVALID_REQUEST
from nicd.core.commands import ConnectQp, CreateQp, DestroyQp, ModifyQp
from nicd.core.events import QpChange
from tests.support.ladder import R_KEY, Ladder
from tests.support.pattern import pattern
from tests.support.wire import AB, BA, Seen, Wire

LATE_NS = 60_000
"""Six round trips of the ladder: long after the new QPs have begun."""
AGAIN = {AB: 0x700000, BA: 0x900000}
"""First PSNs of the new QPs: nowhere near those of the old ones."""


def begin_again(ladder: Ladder) -> None:
    """Both ends destroy their QP, whatever it does, and make another one of the same number."""
    now = ladder.simulator.now_ns
    ladder.wire.first_psn = AGAIN
    for end, peer, send, receive in ((ladder.a, ladder.b, AB, BA), (ladder.b, ladder.a, BA, AB)):
        end.command(DestroyQp(0, end.qpn), now + 1)
        end.command(CreateQp(0, end.qpn), now + 2)
        index = ladder.topology.nic_index(peer.name)
        end.command(ConnectQp(0, end.qpn, index, peer.qpn, AGAIN[send], AGAIN[receive]), now + 3)
        end.command(ModifyQp(0, end.qpn, "rts"), now + 4)
    ladder.run_for(0.5)


def assert_unharmed(ladder: Ladder) -> None:
    """What is posted now arrives once, at both ends, and the late packets of the old QPs have come in between."""
    since_ns = ladder.simulator.now_ns
    size = 40 * ladder.mtu
    ends = (ladder.a, ladder.b)
    posts = {end.name: [ladder.write(20, end=end, offset=size * place) for place in (5, 6)] for end in ends}
    ladder.run(60)
    ladder.run_for(10)
    for end, peer in (ends, ends[::-1]):
        done = [event.wr_id for event in end.completions if event.at_ns > since_ns and event.status == "ok"]
        assert sorted(done) == posts[end.name]
        source = pattern(end.qpn, ladder.size)
        for place in (5, 6):
            at = size * place
            assert peer.target[at : at + 20 * ladder.mtu] == source[at : at + 20 * ladder.mtu]
        errors = [event for event in end.told(QpChange) if event.target == "error" and event.at_ns > since_ns]
        assert errors == []


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("direction", [AB, BA])
def test_late_packets_of_every_kind(direction: str) -> None:
    ladder = Ladder()
    ladder.wire.drop(direction=AB, number={2, 9}, rtx=False)
    ladder.wire.trim(direction=AB, number={4, 5}, rtx=False)
    ladder.wire.delay(LATE_NS, direction=direction, times=60)
    ladder.write(30)
    ladder.write(30, end=ladder.b)
    ladder.run_for(1.5)
    begin_again(ladder)
    assert_unharmed(ladder)


@pytest.mark.spec("MRC 1.0", "3")
def test_a_late_refusal_is_not_for_the_new_qp() -> None:
    ladder = Ladder()

    def other_key(packet: bytearray) -> None:
        at = packet.index(R_KEY.to_bytes(4, "big"), 100)
        packet[at : at + 4] = b"\0\0\0\1"

    ladder.wire.change(other_key, direction=AB, number=0, times=1)
    ladder.wire.delay(LATE_NS, direction=BA, opcode=ACKNOWLEDGE, times=1)
    ladder.write(1)
    ladder.run_for(2)
    assert ladder.b.errors == ["memory_access"]
    assert ladder.sent(BA, opcode=ACKNOWLEDGE)[0].syndrome == SYNDROME_INVALID_REQUEST
    begin_again(ladder)
    assert_unharmed(ladder)
    assert ladder.a.drops == {"ack_of_unsent": 1}


@pytest.mark.spec("MRC 1.0", "7.5")
def test_a_late_unexpected_event_is_not_for_the_new_qp() -> None:
    ladder = Ladder(reorder_path_packets=0)

    def late_and_unexpected(seen: Seen, wire: Wire) -> list[tuple[int, Buffer]]:
        packet = bytearray(seen.packet)
        packet[102] = NACK_UNEXP_EVENT
        seal(packet)
        return [(LATE_NS, packet)]

    ladder.wire.trim(direction=AB, number=3, times=1)
    ladder.wire.rule("late", late_and_unexpected, direction=BA, opcode=NACK, times=1)
    ladder.write(20)
    ladder.run_for(2)
    begin_again(ladder)
    assert_unharmed(ladder)
    assert ladder.a.drops == {"ack_of_unsent": 1}
