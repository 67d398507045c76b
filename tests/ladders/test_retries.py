"""Sending again: how often, after how long, in what order, and when it is enough."""

import itertools

import pytest

from mrcfabric.wire.layout import NACK, PROBE
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp
from tests.support.ladder import Ladder
from tests.support.wire import AB, BA


def gaps_of(ladder: Ladder, number: int) -> list[int]:
    """Times between the transmissions of one packet."""
    times = [seen.at_ns for seen in ladder.data(number=number)]
    return [later - earlier for earlier, later in itertools.pairwise(times)]


@pytest.mark.spec("MRC 1.0", "3")
def test_retries_are_linear_then_exponential_and_then_the_qp_fails() -> None:
    ladder = Ladder(retry_linear=3, retry_exponential=3)
    ladder.wire.drop(direction=AB, number=0)
    ladder.write(1)
    assert ladder.run(2_000)
    rto_ns = ladder.a.nic.config.settings.rto_ns
    factors = [round(gap / rto_ns) for gap in gaps_of(ladder, 0)]
    # MRC 1.0 section 3: so many at the plain timer, so many more at doubled ones.
    assert factors == [1, 1, 1, 1, 2, 4]
    assert len(ladder.data(number=0)) == 1 + 3 + 3
    assert ladder.a.errors == ["retry_counter_exceeded"]
    assert [event.status for event in ladder.a.completions] == ["retry_exceeded"]


@pytest.mark.spec("MRC 1.0", "3")
def test_a_packet_sent_again_starts_again_at_the_plain_timer() -> None:
    """A retransmission caused by a gap is not punished by a longer timeout."""
    ladder = Ladder(reorder_path_packets=0)
    ladder.wire.drop(direction=AB, number=0, times=2)
    ladder.write(180)
    assert ladder.run()
    ladder.verify()
    first, second = gaps_of(ladder, 0)
    settings = ladder.a.nic.config.settings
    assert settings.reorder_ns < first < settings.rto_ns
    assert second <= settings.rto_ns + ladder.base_rtt_ns


@pytest.mark.spec("MRC 1.0", "3")
def test_a_packet_that_was_asked_for_often_waits_no_longer_when_it_is_lost() -> None:
    """NACKs are signs of life: after ten of them the first silence still ends with the plain timer."""
    ladder = Ladder(retry_linear=2, retry_exponential=20)
    ladder.wire.trim(direction=AB, number=0, times=10)
    ladder.wire.drop(direction=AB, number=0, nth=1)
    ladder.write(1)
    assert ladder.run(2_000)
    ladder.verify()
    assert ladder.a.retransmits == {"trim": 10, "timeout": 1}
    settings = ladder.a.nic.config.settings
    assert max(gaps_of(ladder, 0)) <= settings.rto_ns + ladder.base_rtt_ns


@pytest.mark.spec("MRC 1.0", "3")
def test_nacks_and_timeouts_use_one_budget() -> None:
    ladder = Ladder(retry_linear=2, retry_exponential=1, retry_trims=0)
    ladder.wire.trim(direction=AB, number=0, times=2)
    ladder.wire.drop(direction=AB, number=0)
    ladder.write(1)
    assert ladder.run(2_000)
    assert len(ladder.sent(BA, opcode=NACK)) == 2
    assert len(ladder.data(number=0)) == 1 + 3
    assert ladder.a.retransmits == {"trim": 2, "timeout": 1}
    assert ladder.a.errors == ["retry_counter_exceeded"]


@pytest.mark.spec("MRC 1.0", "3")
def test_the_budget_is_of_each_packet() -> None:
    ladder = Ladder(retry_linear=1, retry_exponential=0)
    ladder.wire.trim(direction=AB, number=range(0, 40, 2), rtx=False)
    ladder.write(40)
    assert ladder.run()
    ladder.verify()
    assert ladder.a.retransmits == {"trim": 20}
    assert ladder.a.errors == []


@pytest.mark.spec("MRC 1.0", "3")
def test_the_oldest_gap_goes_first_and_before_new_data() -> None:
    """What is asked for again leaves in the order of PSNs, and nothing new before it."""
    ladder = Ladder(planes=1)
    for number in (9, 4, 6):
        ladder.wire.trim(direction=AB, number=number, rtx=False)
    # All three NACKs arrive at one instant, the youngest packet's first.
    hold = {9: 5_000, 6: 5_000, 4: 5_000}
    for number, by_ns in hold.items():
        ladder.wire.delay(by_ns, direction=BA, opcode=NACK, psn=ladder.psn(number))
    ladder.write(200)
    assert ladder.run()
    ladder.verify()
    again = ladder.data(rtx=True)
    assert [seen.number for seen in again] == [4, 6, 9]
    new = [seen for seen in ladder.data(rtx=False) if again[0].at_ns < seen.at_ns < again[-1].at_ns]
    nacks = [seen.at_ns for seen in ladder.sent(BA, opcode=NACK)]
    # Between two of them there is new data only while the next NACK has not come.
    assert len(new) <= (max(nacks) - min(nacks)) // 500 + 2


@pytest.mark.spec("MRC 1.0", "11.2")
def test_a_packet_is_never_sent_again_on_the_ev_that_failed() -> None:
    ladder = Ladder()
    ladder.wire.trim(direction=AB, number=range(0, 60, 3), times=40)
    ladder.write(60)
    assert ladder.run()
    ladder.verify()
    for number in range(0, 60, 3):
        evs = [seen.ev for seen in ladder.data(number=number)]
        assert all(one != other for one, other in itertools.pairwise(evs))


@pytest.mark.spec("MRC 1.0", "3")
def test_every_trim_costs_a_nack_and_a_retransmission_also_of_retransmissions() -> None:
    ladder = Ladder()
    rule = ladder.wire.trim(direction=AB, number={5, 6}, times=7)
    ladder.write(30)
    assert ladder.run()
    ladder.verify()
    assert rule.hits == 7
    assert len(ladder.sent(BA, opcode=NACK)) == 7
    assert ladder.a.retransmits == {"trim": 7}
    assert (ladder.a.timeouts, ladder.a.probes) == (0, 0)


@pytest.mark.spec("MRC 1.0", "11.2")
def test_a_trim_at_the_last_hop_accuses_no_ev() -> None:
    ladder = Ladder()
    ladder.wire.trim(last_hop=True, direction=AB, number={5, 6}, rtx=False)
    ladder.write(30)
    assert ladder.run()
    ladder.verify()
    assert {seen.reason for seen in ladder.sent(BA, opcode=NACK)} == {"TRIMMED_LASTHOP"}
    assert ladder.a.retransmits == {"trim": 2}
    assert ladder.a.count("ev_skips") == 0


@pytest.mark.spec("MRC 1.0", "3")
def test_a_lost_nack_costs_no_more_than_a_lost_packet() -> None:
    ladder = Ladder()
    ladder.wire.trim(direction=AB, number=5, rtx=False)
    ladder.wire.drop(direction=BA, opcode=NACK)
    ladder.write(200)
    assert ladder.run()
    ladder.verify()
    assert ladder.a.retransmits == {"gap": 1}
    assert ladder.a.timeouts == 0


@pytest.mark.spec("MRC 1.0", "3")
def test_a_nack_that_comes_late_asks_for_nothing() -> None:
    """The packet was already sent again, on another EV, for a gap."""
    ladder = Ladder()
    ladder.wire.trim(direction=AB, number=5, rtx=False)
    ladder.wire.delay(7 * ladder.base_rtt_ns, direction=BA, opcode=NACK)
    ladder.write(300)
    assert ladder.run()
    ladder.verify()
    assert ladder.a.retransmits == {"gap": 1}
    assert len(ladder.data(number=5)) == 2


@pytest.mark.spec("MRC 1.0", "3")
def test_packets_late_by_less_than_the_threshold_are_not_lost() -> None:
    # The wire holds single packets back, so later ones of their paths overtake them.
    ladder = Ladder(reorder_path_packets=0)
    settings = ladder.a.nic.config.settings
    ladder.wire.delay(settings.reorder_ns_min // 2, direction=AB, number=range(10, 200, 17))
    ladder.write(200)
    assert ladder.run()
    ladder.verify()
    assert (ladder.a.retransmits, ladder.a.count("packets_lost")) == ({}, 0)


@pytest.mark.spec("MRC 1.0", "3")
def test_lost_acknowledgements_cost_a_question_and_no_retransmission() -> None:
    ladder = Ladder()
    # The last SACKs and the transport ACK; the next one, asked for by a probe, says it all.
    ladder.wire.drop(direction=BA, where=lambda seen: seen.at_ns < 25_000)
    ladder.write(10)
    assert ladder.run()
    ladder.verify()
    assert (ladder.a.probes, ladder.a.retransmits, ladder.b.count("duplicates")) == (1, {}, 0)


@pytest.mark.spec("MRC 1.0", "3")
def test_a_duplicate_is_acknowledged_again_and_written_once() -> None:
    ladder = Ladder()
    # Nothing comes back until the RTO has sent everything again.
    ladder.wire.drop(direction=BA, where=lambda seen: seen.at_ns < ladder.a.nic.config.settings.rto_ns)
    ladder.write(6)
    assert ladder.run()
    ladder.verify()
    assert ladder.b.count("duplicates") == ladder.a.count("retransmits") > 0
    assert ladder.b.count("bytes_placed") == 6 * ladder.mtu
    assert ladder.b.count("messages_completed") == 1


@pytest.mark.spec("MRC 1.0", "3")
def test_a_qp_has_timers_of_its_own() -> None:
    ladder = Ladder(connect=False)
    for end, peer in ((ladder.a, ladder.b), (ladder.b, ladder.a)):
        end.command(CreateQp(1, end.qpn), 2)
        psns = (5, 9) if end is ladder.a else (9, 5)
        end.command(ConnectQp(2, end.qpn, ladder.topology.nic_index(peer.name), peer.qpn, *psns), 3)
        # 1.024 us times 2**7; one more try, then the end.
        end.command(ModifyQp(3, end.qpn, "rts", 7, 1, 0), 4)
    ladder.wire.drop(direction=AB, number=0)
    ladder.wire.first_psn[AB] = 5
    ladder.write(1)
    assert ladder.run()
    (gap,) = gaps_of(ladder, 0)
    assert abs(gap - (1_024 << 7)) < 1_000
    assert ladder.a.errors == ["retry_counter_exceeded"]


@pytest.mark.spec("MRC 1.0", "3")
def test_25_exponential_retries_mean_for_ever() -> None:
    ladder = Ladder(retry_linear=0, retry_exponential=25)
    ladder.wire.drop(direction=AB)
    ladder.write(1)
    assert not ladder.run(2_500)
    assert ladder.a.errors == []
    assert len(ladder.data(number=0)) > 7
    assert ladder.sent(AB, opcode=PROBE)


@pytest.mark.spec("MRC 1.0", "3")
def test_a_lost_probe_is_followed_by_more_of_them() -> None:
    """The tail is found lost by the answers of the next round, long before its RTO."""
    ladder = Ladder()
    ladder.wire.drop(direction=AB, number=9, nth=1)
    ladder.wire.drop(direction=AB, opcode=PROBE, nth=1)
    ladder.write(10)
    assert ladder.run()
    ladder.verify()
    assert (ladder.a.timeouts, ladder.a.probes, ladder.a.retransmits) == (0, 1, {"gap": 1})


@pytest.mark.spec("MRC 1.0", "3")
def test_a_lost_retransmission_is_sent_again_once_more() -> None:
    ladder = Ladder()
    ladder.wire.drop(direction=AB, number=20, times=2)
    ladder.write(400)
    assert ladder.run()
    ladder.verify()
    assert ladder.a.retransmits == {"gap": 2}
    assert ladder.a.timeouts == 0


@pytest.mark.spec("MRC 1.0", "3")
def test_n_lost_packets_are_n_retransmissions() -> None:
    ladder = Ladder()
    lost = {20, 21, 22, 40, 63, 90}
    ladder.wire.drop(direction=AB, number=lost, rtx=False)
    ladder.write(300)
    assert ladder.run()
    ladder.verify()
    assert sorted(seen.number for seen in ladder.data(rtx=True)) == sorted(lost)
    assert ladder.a.retransmits == {"gap": len(lost)}
    assert ladder.a.count("taken_back") == ladder.b.count("duplicates") == 0


@pytest.mark.spec("MRC 1.0", "3")
def test_both_directions_lose_on_their_own() -> None:
    ladder = Ladder()
    ladder.wire.drop(direction=AB, number=20, nth=1)
    ladder.wire.trim(direction=BA, number=30, nth=1)
    ladder.write(300)
    ladder.write(300, end=ladder.b)
    assert ladder.run()
    ladder.verify()
    assert (ladder.a.retransmits, ladder.b.retransmits) == ({"gap": 1}, {"trim": 1})
