"""The sending half of a UET QP: the first byte without a round trip, flags, completion, the target's window."""

import pytest

from mrcfabric.wire.uet import read_response, read_write
from mrcfabric.wire.uet_layout import (
    FLAG_AR,
    FLAG_RETX,
    FLAG_SYN,
    RESPONSE,
    ROD_REQUEST,
    RUD_CC_REQUEST,
    RUD_REQUEST,
    SES_EOM,
    SES_HD,
    SES_SOM,
)
from nicd.core.events import Completion
from tests.nicd.core.uet.pipe import FIRST_PSN, QPN_A, QPN_B, Pipe, Seen


@pytest.mark.parametrize("delay_ns", [500, 1_000, 7_000])
@pytest.mark.parametrize("size", [1, 4_096, 9_000])
def test_the_first_byte_arrives_after_half_a_round_trip(delay_ns: int, size: int) -> None:
    """U5: no packet goes before the first data packet, which says SYN; it is placed when its last bit has come."""
    pipe = Pipe(delay_ns=delay_ns)
    pipe.write(size, at_ns=10)
    pipe.run(100_000)
    arrival, sender, seen = pipe.log[0]
    assert sender == 0
    assert seen.is_data
    assert seen.flags & FLAG_SYN
    wire = min(size, 4_096) + 108 + 38
    assert arrival == 10 + -(-wire * 8 * 1_000_000_000 // pipe.rate_bps) + delay_ns
    assert pipe.counter(1, "bytes_placed") == size
    assert pipe.target()[:size] == bytes(pipe.source[:size])


def test_packets_say_syn_until_the_target_has_answered() -> None:
    pipe = Pipe()
    pipe.write(1 << 18)
    pipe.run(1_000_000)
    first_answer = next(arrival for arrival, sender, _ in pipe.log if sender == 1)
    for arrival, sender, seen in pipe.log:
        if sender == 0:
            # What left before the answer came says SYN, and how far it is behind the first packet.
            syn = bool(seen.flags & FLAG_SYN)
            if arrival < first_answer + pipe.delay_ns:
                assert syn
                assert seen.peeked[8] == (seen.psn - FIRST_PSN) & 0xFFF
            elif arrival > first_answer + pipe.delay_ns + 2_000:
                assert not syn
                assert seen.peeked[8] == pipe.link(0).initiator.dpdcid
    assert {seen.peeked[7] for seen in pipe.data()} == {pipe.link(0).pdcid}
    assert pipe.counter(0, "uet", "contexts_opened") == pipe.counter(1, "uet", "contexts_taken") == 1
    assert pipe.quiet


def test_every_packet_says_where_it_belongs() -> None:
    pipe = Pipe(mtu=1024)
    pipe.write(2_500, imm=0xFEEDBEEF, offset=64)
    pipe.run(100_000)
    writes = [read_write(seen.packet, seen.peeked[9]) for seen in pipe.data()]
    assert [write.flags for write in writes] == [SES_SOM | SES_HD, 0, SES_EOM]
    assert [write.message_offset for write in writes] == [0, 1024, 2048]
    assert writes[0].data == 0xFEEDBEEF
    assert {(write.pid << 12 | write.resource, write.initiator, write.length) for write in writes} == {
        (QPN_B, QPN_A, 2_500)
    }
    assert [seen.psn for seen in pipe.data()] == [FIRST_PSN + place & 0xFFFFFFFF for place in range(3)]
    assert pipe.data()[-1].flags & FLAG_AR


def test_psns_wrap() -> None:
    pipe = Pipe(mtu=1024)
    pipe.write(600 * 1024)
    pipe.run(1_000_000)
    psns = [seen.psn for seen in pipe.data()]
    assert len(psns) == 600
    assert (max(psns), min(psns)) == (0xFFFFFFFF, 0)
    assert [done.status for done in pipe.completions()] == ["ok"]
    assert pipe.target()[: 600 * 1024] == bytes(pipe.source[: 600 * 1024])


def test_the_kind_of_request_is_a_setting() -> None:
    for nic, kind in (({}, RUD_REQUEST), ({"uet_mode": "rod"}, ROD_REQUEST), ({"uet_cc": "rccc"}, RUD_CC_REQUEST)):
        pipe = Pipe(**nic)
        pipe.write(9_000)
        pipe.run(100_000)
        assert {seen.kind for seen in pipe.data()} == {kind}


def test_a_message_completes_by_its_response() -> None:
    pipe = Pipe()
    pipe.write(9_000, imm=5)
    pipe.run(100_000)
    answers = [(at, read_response(seen.packet, seen.peeked[9])) for at, side, seen in pipe.log if side and seen.is_ack]
    ((at_ns, response),) = ((at, one) for at, one in answers if one[0] == RESPONSE)
    assert response == (RESPONSE, 1, 0, 9_000)
    assert [done.at_ns for done in pipe.completions()] == [at_ns]
    assert pipe.completions(1, "recv_with_imm")[0].imm == 5


def test_a_lost_response_is_made_good_by_acknowledgements() -> None:
    lost = []

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        if side == 1 and seen.is_ack and read_response(seen.packet, seen.peeked[9])[0] == RESPONSE and not lost:
            lost.append(at_ns)
            return False
        return True

    pipe = Pipe(fate)
    pipe.write(9_000, wr_id=1)
    pipe.write(9_000, wr_id=2, at_ns=3_000, offset=9_000)
    pipe.run(1_000_000)
    assert lost
    assert sorted(done.wr_id for done in pipe.completions()) == [1, 2]
    assert pipe.counter(0, "retransmits") == dict.fromkeys(pipe.counter(0, "retransmits"), 0)
    assert pipe.quiet


def test_the_targets_window_binds() -> None:
    pipe = Pipe(mtu=256, mpr_units=1, uet_cc="none", delay_ns=6_000)
    most = 0
    pipe.write(1 << 18)
    while pipe.now < 600_000:
        pipe.run(pipe.now + 500)
        link = pipe.link(0)
        most = max(most, link.initiator.psn_next - link.initiator.table.cack - 1)
    assert most == 128
    assert pipe.target()[: 1 << 18] == bytes(pipe.source[: 1 << 18])


def test_a_lost_packet_is_sent_again_alone_and_says_so() -> None:
    lost: list[int] = []

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        if side == 0 and seen.psn == (FIRST_PSN + 20) & 0xFFFFFFFF and not lost:
            lost.append(seen.entropy)
            return False
        return True

    pipe = Pipe(fate)
    pipe.write(1 << 19)
    pipe.run(2_000_000)
    again = [seen for seen in pipe.data() if seen.flags & FLAG_RETX]
    assert [seen.psn for seen in again] == [(FIRST_PSN + 20) & 0xFFFFFFFF]
    assert again[0].entropy != lost[0]
    assert pipe.counter(0, "retransmits", "gap") == 1
    assert pipe.counter(0, "timeouts") == 0
    assert pipe.target()[: 1 << 19] == bytes(pipe.source[: 1 << 19])


def test_messages_overtake_each_other_unless_they_are_ordered() -> None:
    for mode, order in (("rud", [1, 2, 0]), ("rod", [0, 1, 2])):
        lost: list[int] = []

        def fate(at_ns: int, side: int, seen: Seen, lost: list[int] = lost) -> bool:
            if side == 0 and seen.psn == FIRST_PSN and not lost:
                lost.append(at_ns)
                return False
            return True

        pipe = Pipe(fate, uet_mode=mode)
        for number in range(3):
            pipe.write(5_000, wr_id=number, offset=5_000 * number, imm=number)
        pipe.run(1_000_000)
        assert [done.wr_id for done in pipe.completions()] == order
        assert [done.imm for done in pipe.completions(1, "recv_with_imm")] == [0, 1, 2], "handed over in order"


def test_nonsense_is_dropped() -> None:
    pipe = Pipe()
    pipe.write(9_000)
    pipe.run(1_200)
    initiator = pipe.link(0).initiator
    before = initiator.table.cack
    for cack in (before + 50, before - 3, before + (1 << 31)):
        assert not initiator.on_ack(pipe.now, 0, 0, cack & 0xFFFFFFFF, 7, None, None, False)
    assert initiator.table.cack == before
    assert not initiator.dpdcid
    pipe.run(1_000_000)
    assert [done.status for done in pipe.completions()] == ["ok"]


def test_a_qp_that_fails_flushes_what_it_has() -> None:
    pipe = Pipe(lambda at_ns, side, seen: False, retry_linear=1, retry_exponential=1)
    pipe.write(9_000, wr_id=1)
    pipe.write(9_000, wr_id=2)
    pipe.run(100_000_000)
    done = pipe.completions()
    assert [(one.wr_id, one.status) for one in done] == [(1, "retry_exceeded"), (2, "flushed")]
    assert pipe.errors()[0].reason == "retry_counter_exceeded"
    assert all(isinstance(one, Completion) for one in done)
    assert pipe.counter(0, "windows", "inflight_bytes") == 0
    assert pipe.quiet
