"""When messages are complete: WRITEs in any order, immediates in the order of sending."""

import pytest

from mrcfabric.wire.layout import ACKNOWLEDGE, IMM_OPCODES, SYNDROME_INVALID_REQUEST
from tests.support.ladder import R_KEY, Ladder
from tests.support.wire import AB, BA


@pytest.mark.spec("MRC 1.0", "3")
def test_a_write_overtakes_one_that_waits_for_a_retransmission() -> None:
    ladder = Ladder()
    ladder.wire.drop(direction=AB, number=2, nth=1)
    slow, quick, last = ladder.write(4), ladder.write(4), ladder.write(400)
    assert ladder.run()
    ladder.verify()
    assert ladder.a.completed == [quick, slow, last]
    early = [seen for seen in ladder.sent(BA, opcode=ACKNOWLEDGE) if seen.a]
    assert [(seen.msn, seen.psn) for seen in early] == [(2, ladder.psn(7))]
    assert ladder.b.count("acks_early") == 1
    assert ladder.b.count("messages_completed") == 3


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("end", ["a", "b"])
def test_with_completion_in_order_it_does_not(end: str) -> None:
    ladder = Ladder(**{end: {"completion_in_order": True}})  # type: ignore[arg-type]
    ladder.wire.drop(direction=AB, number=2, nth=1)
    posts = [ladder.write(4), ladder.write(4), ladder.write(120)]
    assert ladder.run()
    ladder.verify()
    assert ladder.a.completed == posts


@pytest.mark.spec("MRC 1.0", "3")
def test_immediates_complete_in_order_and_after_everything_before_them() -> None:
    ladder = Ladder()
    ladder.wire.drop(direction=AB, number=0, nth=1)
    ladder.write(2)
    for number in range(5):
        ladder.write(1, imm=100 + number)
    assert ladder.run()
    ladder.verify()
    assert ladder.b.immediates == [100, 101, 102, 103, 104]
    assert ladder.a.completed == list(range(6))
    assert not [seen for seen in ladder.sent(BA, opcode=ACKNOWLEDGE) if seen.a]
    assert sorted(seen.rqmsn for seen in ladder.data(opcode=IMM_OPCODES)) == list(range(5))


@pytest.mark.spec("MRC 1.0", "3")
def test_no_more_immediates_are_out_than_the_peer_holds() -> None:
    ladder = Ladder(reorder_path_packets=0, b={"max_wimm": 32}, connect_a={"peer_max_wimm": 32})
    ladder.wire.drop(direction=AB, number=0, nth=1)
    for number in range(40):
        ladder.write(length=10, imm=number)
    ladder.run_for(4)
    assert len({seen.number for seen in ladder.data()}) == 32
    assert ladder.run()
    ladder.verify()
    assert ladder.b.immediates == list(range(40))


@pytest.mark.spec("MRC 1.0", "3")
def test_more_early_immediates_than_were_granted_end_the_qp() -> None:
    """A requestor that was told of more room than there is."""
    ladder = Ladder(b={"max_wimm": 32}, connect_a={"peer_max_wimm": 100})
    ladder.wire.drop(direction=AB, number=0)
    for number in range(40):
        ladder.write(length=10, imm=number)
    assert ladder.run()
    assert ladder.b.errors == ["immediates_overflow"]
    assert ladder.b.drops["immediates_overflow"] == 1
    assert ladder.a.errors == ["remote_invalid_request"]
    assert [seen.syndrome for seen in ladder.sent(BA, opcode=ACKNOWLEDGE)] == [SYNDROME_INVALID_REQUEST]
    assert ladder.b.immediates == []
    assert {event.status for event in ladder.a.completions} == {"remote_invalid_request", "flushed"}


@pytest.mark.spec("MRC 1.0", "3")
def test_a_lost_early_acknowledgement_is_made_good_by_the_cumulative_one() -> None:
    ladder = Ladder()
    ladder.wire.drop(direction=AB, number=2, nth=1)
    ladder.wire.drop(direction=BA, opcode=ACKNOWLEDGE, where=lambda seen: seen.a)
    posts = [ladder.write(4), ladder.write(4), ladder.write(120)]
    assert ladder.run()
    ladder.verify()
    assert ladder.a.completed == posts


@pytest.mark.spec("MRC 1.0", "3")
def test_a_lost_acknowledgement_is_asked_for_and_repeated() -> None:
    ladder = Ladder()
    ladder.wire.drop(direction=BA, opcode=ACKNOWLEDGE, nth=1)
    ladder.write(3)
    assert ladder.run()
    ladder.verify()
    assert (ladder.a.probes, ladder.a.timeouts, ladder.a.retransmits) == (1, 0, {})


@pytest.mark.spec("MRC 1.0", "3")
def test_a_sack_never_completes_a_message() -> None:
    ladder = Ladder()
    ladder.wire.drop(direction=BA, opcode=ACKNOWLEDGE)
    ladder.write(3)
    assert not ladder.run(60)
    assert ladder.a.completions == []
    assert ladder.a.qp["inflight_packets"] == 0


@pytest.mark.spec("MRC 1.0", "3")
def test_a_key_that_is_wrong_is_an_invalid_request() -> None:
    ladder = Ladder()

    def other_key(packet: bytearray) -> None:
        at = packet.index(R_KEY.to_bytes(4, "big"), 100)
        packet[at : at + 4] = b"\0\0\0\1"

    ladder.wire.change(other_key, direction=AB, number=0)
    ladder.write(1)
    assert ladder.run()
    assert ladder.b.errors == ["memory_access"]
    assert [event.status for event in ladder.a.completions] == ["remote_invalid_request"]
