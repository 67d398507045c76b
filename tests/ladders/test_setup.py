"""The life of a QP, from RESET to ERROR, and what its two ends agree on."""

import pytest

from mrcfabric.wire.layout import ACKNOWLEDGE, NACK, SACK
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp
from nicd.core.events import QpChange
from tests.support.ladder import Ladder
from tests.support.wire import AB, BA


@pytest.mark.spec("MRC 1.0", "3")
def test_a_qp_goes_from_reset_over_init_and_rtr_to_rts() -> None:
    ladder = Ladder()
    ladder.run_for(1)
    steps = [(event.source, event.target) for event in ladder.a.told(QpChange)]
    assert steps == [("reset", "init"), ("init", "rtr"), ("rtr", "rts")]


@pytest.mark.spec("MRC 1.0", "3")
def test_no_state_is_left_out() -> None:
    ladder = Ladder(connect=False)
    ladder.a.command(CreateQp(1, 100), 10)
    ladder.a.command(ModifyQp(2, 100, "rts"), 11)
    ladder.a.command(ConnectQp(3, 100, 2, 200, 0, 0), 12)
    ladder.a.command(ConnectQp(4, 100, 2, 200, 0, 0), 13)
    ladder.run_for(1)
    assert ladder.a.refusals == ["QP 100 cannot go from init to rts", "QP 100 is in state rtr, not init"]


@pytest.mark.spec("MRC 1.0", "3")
def test_nothing_is_sent_before_rts() -> None:
    ladder = Ladder(connect=False)
    ladder.a.command(CreateQp(1, 100), 10)
    ladder.write(1, at_ns=11)
    ladder.a.command(ConnectQp(3, 100, 2, 200, 0, 0), 12)
    ladder.write(1, at_ns=13)
    ladder.run_for(1)
    assert ladder.a.refusals == ["QP 100 is in state init, not rts", "QP 100 is in state rtr, not rts"]
    assert ladder.wire.seen == []


@pytest.mark.spec("MRC 1.0", "3")
def test_data_before_set_up_is_refused_and_arrives_when_the_peer_is_ready() -> None:
    ladder = Ladder(connect=False)
    for end, peer, psns in ((ladder.a, ladder.b, (5, 9)), (ladder.b, ladder.a, (9, 5))):
        end.command(CreateQp(1, end.qpn), 1)
        # The peer takes three round trips longer.
        late_ns = 0 if end is ladder.a else 3 * ladder.base_rtt_ns
        index = ladder.topology.nic_index(peer.name)
        end.command(ConnectQp(2, end.qpn, index, peer.qpn, *psns), 2 + late_ns)
        end.command(ModifyQp(3, end.qpn, "rts"), 3 + late_ns)
    ladder.write(1)
    ladder.run_for(2)
    assert ladder.b.drops == {"qp_not_ready": 1}
    assert ladder.sent(BA) == []
    assert ladder.run()
    ladder.verify()


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize(
    ("create", "connect", "why"),
    [
        ({"mpr": 0}, {}, "an MPR of 0"),
        ({"max_wimm": 0}, {}, "a max_wimm of 0"),
        ({}, {"peer_mpr": 0}, "a peer MPR of 0"),
        ({}, {"peer_max_wimm": 0}, "a peer max_wimm of 0"),
        ({"qps_per_peer": -1}, {}, "a hint qps_per_peer of -1"),
    ],
)
def test_limits_that_would_let_nothing_through_are_refused(
    create: dict[str, int], connect: dict[str, int], why: str
) -> None:
    ladder = Ladder(connect=False)
    ladder.a.command(CreateQp(1, 100, **create), 10)  # type: ignore[arg-type]
    if connect:
        ladder.a.command(ConnectQp(2, 100, 2, 200, 0, 0, **connect), 11)  # type: ignore[arg-type]
    ladder.run_for(1)
    (refusal,) = ladder.a.refusals
    assert why in refusal


@pytest.mark.spec("MRC 1.0", "3")
def test_a_qp_that_stays_in_set_up_fails_with_a_reason() -> None:
    ladder = Ladder(connect=False, setup_timeout_ns=5_000)
    ladder.a.command(CreateQp(1, 100), 10)
    ladder.b.command(CreateQp(1, 200), 10)
    ladder.b.command(ConnectQp(2, 200, 0, 100, 0, 0), 4_000)
    ladder.run_for(2)
    assert ladder.a.errors == ["setup_timeout_in_init"]
    assert ladder.b.errors == ["setup_timeout_in_rtr"]
    assert [event.at_ns for event in ladder.b.told(QpChange)][-1] == 9_000


@pytest.mark.spec("MRC 1.0", "3")
def test_a_qp_that_only_receives_need_not_be_rts() -> None:
    ladder = Ladder(connect=False, b={"setup_timeout_ns": 20_000})
    ladder.a.command(CreateQp(1, 100), 1)
    ladder.a.command(ConnectQp(2, 100, 2, 200, 0, 0), 2)
    ladder.a.command(ModifyQp(3, 100, "rts"), 3)
    ladder.b.command(CreateQp(1, 200), 1)
    ladder.b.command(ConnectQp(2, 200, 0, 100, 0, 0), 2)
    ladder.write(3)
    assert ladder.run()
    assert ladder.b.errors == []
    assert ladder.b.qp["state"] == "rtr"


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize(("a", "b"), [(True, True), (True, False), (False, True)])
def test_trims_are_answered_only_if_both_ends_offer_it(a: bool, b: bool) -> None:
    ladder = Ladder(connect=False)
    ladder.a.command(CreateQp(1, 100, trim_nack=a), 2)
    ladder.b.command(CreateQp(1, 200, trim_nack=b), 2)
    ladder.a.command(ConnectQp(2, 100, 2, 200, 0, 0, peer_trim_nack=b), 3)
    ladder.b.command(ConnectQp(2, 200, 0, 100, 0, 0, peer_trim_nack=a), 3)
    ladder.a.command(ModifyQp(3, 100, "rts"), 4)
    ladder.wire.trim(direction=AB, number=1, rtx=False)
    ladder.wire.first_psn[AB] = 0
    ladder.write(2)
    assert ladder.run()
    ladder.verify()
    assert len(ladder.sent(BA, opcode=NACK)) == (a and b)
    assert ladder.a.retransmits == ({"trim": 1} if a and b else {"timeout": 1})


@pytest.mark.spec("MRC 1.0", "3")
def test_a_qp_in_error_flushes_its_work_and_answers_no_more() -> None:
    ladder = Ladder(retry_linear=1, retry_exponential=2)
    ladder.write(100)
    ladder.write(1)
    ladder.b.command(ModifyQp(5, 200, "error"), 2_000)
    assert ladder.run()
    assert ladder.b.errors == ["modified"]
    assert ladder.sent(BA, opcode=SACK) == ladder.sent(BA, opcode=ACKNOWLEDGE) == []
    assert [event.status for event in ladder.a.completions] == ["retry_exceeded", "flushed"]
    assert ladder.a.errors == ["retry_counter_exceeded"]


@pytest.mark.spec("IBTA", "10.9.3")
def test_a_packet_of_another_partition_is_dropped_by_name_and_sent_again() -> None:
    ladder = Ladder()

    def other_partition(packet: bytearray) -> None:
        packet[90:92] = b"\x80\x01"

    ladder.wire.change(other_partition, direction=AB, number=3, nth=1)
    ladder.write(300)
    assert ladder.run()
    ladder.verify()
    assert ladder.b.drops == {"p_key": 1}
    assert ladder.a.retransmits == {"gap": 1}


@pytest.mark.spec("MRC 1.0", "3")
def test_hints_are_kept_and_share_the_window_out() -> None:
    ladder = Ladder(connect=False)
    ladder.a.command(CreateQp(1, 100, qps_per_peer=2, send_peers=5, incast=7), 2)
    ladder.run_for(1)
    row = ladder.a.qp
    assert (row["qps_per_peer"], row["send_peers"], row["incast"]) == (2, 5, 7)
    assert row["offered_mpr"] == 8
