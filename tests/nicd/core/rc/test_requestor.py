"""The sending half of an RC QP: segmentation, windows, acknowledgements, going back, time-outs, completions."""

from mmap import mmap
from typing import Any

import pytest

from mrcfabric.rng import Rng
from mrcfabric.wire.layout import PSN_MASK
from mrcfabric.wire.roce_layout import (
    NAK_INVALID_REQUEST,
    NAK_REMOTE_ACCESS,
    NAK_SEQUENCE,
    RC_WRITE_FIRST,
    RC_WRITE_LAST,
    RC_WRITE_LAST_IMM,
    RC_WRITE_MIDDLE,
    RC_WRITE_ONLY,
    RC_WRITE_ONLY_IMM,
)
from nicd.core.commands import ModifyQp, PostWrite, RegisterMemory
from nicd.core.events import RECV_WITH_IMM, Completion, QpChange, Retransmit
from tests.nicd.core.rc.lone import MTU, PSN_SEND, QPN, R_KEY, VA, LoneNic
from tests.nicd.core.rc.pipe import Pipe, Seen

SETTLED_NS = 100_000


def psn(number: int) -> int:
    return (PSN_SEND + number) & PSN_MASK


def statuses(lone: LoneNic) -> list[tuple[int, str]]:
    return [(done.wr_id, done.status) for done in lone.told(Completion) if done.opcode != RECV_WITH_IMM]


@pytest.mark.parametrize("imm", [None, 0, 0xFFFFFFFF])
@pytest.mark.parametrize("length", [1, MTU - 1, MTU, MTU + 1, 3 * MTU, 3 * MTU + 5])
def test_a_message_is_cut_into_packets_and_the_last_one_asks(length: int, imm: int | None) -> None:
    lone = LoneNic()
    sent = lone.post(length, imm=imm) + lone.wait(SETTLED_NS)
    packets = -(-length // MTU)
    if packets == 1:
        assert sent == [(RC_WRITE_ONLY if imm is None else RC_WRITE_ONLY_IMM, psn(0), 1)]
        return
    last = RC_WRITE_LAST if imm is None else RC_WRITE_LAST_IMM
    assert [row[0] for row in sent] == [RC_WRITE_FIRST, *[RC_WRITE_MIDDLE] * (packets - 2), last]
    assert [row[1] for row in sent] == [psn(number) for number in range(packets)]
    assert [row[2] for row in sent] == [0] * (packets - 1) + [1]


@pytest.mark.parametrize("recovery", ["go_back_n", "go_back_0", "selective"])
def test_the_longest_message_has_more_packets_than_there_are_psns(recovery: str) -> None:
    """2**32 - 1 bytes in packets of 256: 2**24 PSNs. Memory that nobody touches takes no room."""
    lone = LoneNic(rc_recovery=recovery, rc_window_bytes=4 * MTU, rc_ack_every=0)
    length = (1 << 32) - 1
    lone.do(RegisterMemory(0, VA, length, 2, 8, memoryview(mmap(-1, length + 1))))
    lone.do(PostWrite(0, QPN, 1, 2, VA, length, VA, R_KEY))
    lone.post(3, 2)
    lone.wait(SETTLED_NS)
    row = lone.nic.qp_table()[0]
    assert (row["unfinished"], row["inflight_bytes"]) == (2, 4 * MTU)
    for number in range(50):
        lone.arrive(lone.control.ack(psn(number), 0, cause=psn(number)))
    assert lone.nic.qp_table()[0]["inflight_packets"] == 4
    assert lone.nic.qp_table()[0]["cack"] == PSN_SEND + 49
    lone.do(ModifyQp(0, QPN, "error"))
    assert [done.byte_len for done in lone.told(Completion)] == [length, 3]


@pytest.mark.parametrize("recovery", ["go_back_n", "go_back_0", "selective"])
def test_no_more_is_in_flight_than_may_be(recovery: str) -> None:
    """Also when a receiver that forgets asks for the first packet of a message of which most had arrived."""
    lone = LoneNic(rc_recovery=recovery, rc_psns_max=8, rc_ack_every=0)
    lone.post(30 * MTU)
    for number in range(20):
        lone.arrive(lone.control.ack(psn(number), 0, cause=psn(number)))
        assert lone.nic.qp_table()[0]["inflight_packets"] == 8
    lone.arrive(lone.control.ack(psn(0), 0, NAK_SEQUENCE, psn(1)))
    for _ in range(4):
        assert 0 <= int(lone.nic.qp_table()[0]["inflight_packets"]) <= 8
        assert lone.nic.counters()["mpr"]["used_ppm_max"] <= 1_000_000
        lone.wait(100)


@pytest.mark.spec("IBTA", "9.7.5")
def test_an_acknowledgement_completes_all_messages_up_to_it() -> None:
    lone = LoneNic()
    for wr_id in range(4):
        lone.post(2 * MTU, wr_id)
    lone.wait(SETTLED_NS)
    lone.arrive(lone.control.ack(psn(4), 2))
    assert statuses(lone) == [(0, "ok"), (1, "ok")]
    # One that is late says nothing.
    lone.arrive(lone.control.ack(psn(2), 1))
    lone.arrive(lone.control.ack(psn(7), 4))
    assert statuses(lone)[2:] == [(2, "ok"), (3, "ok")]
    assert lone.idle
    assert not lone.drops()


@pytest.mark.parametrize("number", [8, 9, 1000, (PSN_MASK >> 1) - 1])
@pytest.mark.parametrize("syndrome", [0x1F, NAK_SEQUENCE, NAK_INVALID_REQUEST])
def test_nonsense_about_packets_that_were_never_sent_changes_nothing(number: int, syndrome: int) -> None:
    lone = LoneNic()
    lone.post(8 * MTU)
    lone.wait(SETTLED_NS)
    lone.arrive(lone.control.ack(psn(number), 1, syndrome))
    assert lone.drops() == {"ack_of_unsent": 1}
    assert not statuses(lone)
    assert lone.state() == "rts"
    lone.arrive(lone.control.ack(psn(7), 1))
    assert statuses(lone) == [(1, "ok")]


@pytest.mark.spec("IBTA", "9.7.5")
@pytest.mark.parametrize("missing", [0, 1, 4, 7])
def test_a_nak_sends_everything_from_its_psn_on_again(missing: int) -> None:
    lone = LoneNic()
    before = lone.post(8 * MTU) + lone.wait(SETTLED_NS)
    sent = lone.arrive(lone.control.ack(psn(missing), 0, NAK_SEQUENCE)) + lone.wait(SETTLED_NS)
    assert sent == before[missing:]
    assert [row[1] for row in sent] == [psn(number) for number in range(missing, 8)]
    (again,) = lone.told(Retransmit)
    assert (again.cause, again.count) == ("nack", 8 - missing)
    counters = lone.nic.counters()
    assert counters["retransmits"]["nack"] == 8 - missing
    assert counters["rc"]["retransmitted_bytes"] == (8 - missing) * MTU
    assert counters["rc"]["naks_received"] == counters["rc"]["passes_begun"] == 1


def test_an_acknowledgement_that_overtakes_a_pass_is_not_sent_again() -> None:
    lone = LoneNic()
    for wr_id in range(3):
        lone.post(40 * MTU, wr_id)
    lone.wait(SETTLED_NS)
    sent = lone.arrive(lone.control.ack(psn(0), 0, NAK_SEQUENCE))
    sent += lone.arrive(lone.control.ack(psn(99), 2), wait_ns=1)
    sent += lone.wait(SETTLED_NS)
    assert len(sent) < 40
    assert [row[1] for row in sent][-20:] == [psn(number) for number in range(100, 120)]
    assert statuses(lone) == [(0, "ok"), (1, "ok")]


@pytest.mark.spec("IBTA", "9.7.5")
@pytest.mark.parametrize("code", [NAK_INVALID_REQUEST, NAK_REMOTE_ACCESS, 0x63])
def test_a_refusal_ends_the_qp(code: int) -> None:
    lone = LoneNic()
    for wr_id in range(3):
        lone.post(MTU, wr_id)
    lone.wait(SETTLED_NS)
    lone.arrive(lone.control.ack(psn(1), 1, code))
    assert statuses(lone) == [(0, "ok"), (1, "remote_invalid_request"), (2, "flushed")]
    assert lone.told(QpChange)[-1].reason == "remote_invalid_request"
    assert lone.idle


@pytest.mark.parametrize("window", [1, MTU, 3 * MTU + 10, 20 * MTU])
def test_no_more_is_in_flight_than_the_window_allows(window: int) -> None:
    lone = LoneNic(rc_window_bytes=window)
    sent = lone.post(50 * MTU) + lone.wait(SETTLED_NS)
    room = max(1, window // MTU)
    assert len(sent) == room
    assert sent[-1][2] == 1, "the last packet that a window allows asks"
    assert lone.nic.qp_table()[0]["inflight_bytes"] == room * MTU
    for number in range(room, 50):
        assert len(lone.arrive(lone.control.ack(psn(number - room), 0)) + lone.wait(SETTLED_NS)) == 1


def test_short_messages_fill_a_window_by_bytes_and_psns_by_number() -> None:
    lone = LoneNic(rc_window_bytes=1000, rc_psns_max=20)
    for wr_id in range(300):
        lone.post(100 if wr_id < 100 else 1, wr_id)
    assert lone.nic.qp_table()[0]["inflight_packets"] == 10

    for number in range(10, 100, 10):
        lone.arrive(lone.control.ack(psn(number - 1), number))
        lone.wait(SETTLED_NS)
    lone.arrive(lone.control.ack(psn(99), 100))
    lone.wait(SETTLED_NS)
    assert lone.nic.qp_table()[0]["inflight_packets"] == 20


@pytest.mark.spec("IBTA", "9.7.6.1.3")
def test_a_nak_uses_up_no_retries_and_progress_gives_them_back() -> None:
    lone = LoneNic(rc_timeout=4, rc_retry_cnt=1)
    lone.post(4 * MTU)
    lone.wait(1_000)
    for _ in range(20):
        lone.arrive(lone.control.ack(psn(1), 0, NAK_SEQUENCE), wait_ns=10_000)
    assert lone.state() == "rts"
    lone.wait(4_096 << 4)
    lone.arrive(lone.control.ack(psn(1), 0))
    lone.wait((4_096 << 4) + 100)
    assert lone.state() == "rts"
    assert lone.nic.counters()["timeouts"] == 2
    lone.wait(4_096 << 4)
    assert lone.state() == "error"


def test_an_idle_qp_sets_no_timer_and_exponent_0_means_never() -> None:
    lone = LoneNic(rc_timeout=0)
    lone.post(4 * MTU)
    lone.wait(1 << 50)
    assert lone.nic.counters()["timeouts"] == 0
    assert lone.idle


@pytest.mark.parametrize("post_ns", [0, 700])
def test_the_host_takes_its_time_and_a_pass_does_not_run_ahead_of_it(post_ns: int) -> None:
    lone = LoneNic(host_post_ns=post_ns, host_complete_ns=300)
    assert bool(lone.post(4, 1)) == (post_ns == 0)
    assert bool(lone.wait(post_ns)) == (post_ns > 0)
    begin = lone.now
    lone.post(4, 2)
    lone.arrive(lone.control.ack(psn(0), 0, NAK_SEQUENCE), wait_ns=1)
    lone.wait(SETTLED_NS)
    lone.arrive(lone.control.ack(psn(1), 2))
    lone.wait(400)
    assert statuses(lone) == [(1, "ok"), (2, "ok")]
    assert lone.now > begin


def random_run(seed: int, recovery: str) -> None:
    """Both ends send messages of all sizes while data and answers are lost, doubled and held back."""
    rng = Rng("random", seed, recovery)

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        return not rng.chance(30_000)

    nic: dict[str, Any] = {
        "rc_timeout": 6,
        "rc_window_bytes": (0, 5_000)[seed & 1],
        "rc_psns_max": 64,
        "rc_ack_every": seed % 5,
    }
    pipe = Pipe(fate, size=1 << 17, mtu=256, host_post_ns=500 * (seed % 3), rc_recovery=recovery, **nic)
    if seed & 2:
        pipe.copies = lambda: tuple(
            rng.below(9_000) if rng.chance(30_000) else 0 for _ in range(1 + rng.chance(30_000))
        )
    wanted = [0, 0]
    sizes = [0, 0]
    for side in (0, 1):
        offset = 0
        for number in range(60):
            length = 1 + rng.below(3_000 >> rng.below(4))
            imm = number if rng.chance(500_000) else None
            pipe.write(length, number, 10 + 1_000 * number, imm, side, offset)
            offset += length
            wanted[side] += imm is not None
        sizes[side] = offset
    pipe.run(1 << 33)
    for side in (0, 1):
        assert not pipe.errors(side)
        assert [(done.wr_id, done.status) for done in pipe.completions(side)] == [(n, "ok") for n in range(60)]
        assert len(pipe.completions(1 - side, RECV_WITH_IMM)) == wanted[side]
        sent = sizes[side]
        assert pipe.target(1 - side)[:sent] == bytes(pipe.source[:sent])
        assert pipe.counter(side, "messages_completed") == 60
        assert pipe.nics[side].next_timeout() is None


@pytest.mark.parametrize("recovery", ["go_back_n", "go_back_0", "selective"])
@pytest.mark.parametrize("seed", range(4))
def test_every_message_arrives_once_whatever_is_lost(seed: int, recovery: str) -> None:
    random_run(seed, recovery)


@pytest.mark.long
@pytest.mark.parametrize("recovery", ["go_back_n", "go_back_0", "selective"])
@pytest.mark.parametrize("seed", range(100, 160))
def test_every_message_arrives_once_over_seeds(seed: int, recovery: str) -> None:
    random_run(seed, recovery)
