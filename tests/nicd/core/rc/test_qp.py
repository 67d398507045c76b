"""A QP's life: states, what it refuses in each, its port's carrier, and its end."""

import pytest

from mrcfabric.wire.roce_layout import RC_WRITE_ONLY
from nicd.core.commands import ConnectQp, CreateQp, DestroyQp, ModifyQp, PostWrite, SetCarrier
from nicd.core.events import CommandDone, Completion, QpChange
from tests.nicd.core.rc.lone import PEER_QPN, QPN, R_KEY, SIZE, VA, LoneNic
from tests.nicd.core.rc.pipe import Pipe

TIMEOUT_NS = 4_096 << 4


def outcome(lone: LoneNic, command: object) -> str | None:
    """Why a command was refused; None: it was not."""
    lone.do(command)
    done: CommandDone = lone.told(CommandDone)[-1]
    return done.error


def work(length: int = 4, va: int = VA, imm: int | None = None, remote: int = VA, r_key: int = R_KEY) -> PostWrite:
    return PostWrite(0, QPN, 1, 1, va, length, remote, r_key, imm)


@pytest.mark.spec("IBTA", "10.3.1")
def test_a_qp_goes_through_its_states_and_sends_in_the_last() -> None:
    lone = LoneNic(connect=False)
    assert outcome(lone, CreateQp(0, QPN)) is None
    assert "is in state init, not rts" in (outcome(lone, work()) or "")
    assert "cannot go from init to rts" in (outcome(lone, ModifyQp(0, QPN, "rts")) or "")
    lone.arrive(lone.packet(RC_WRITE_ONLY, 0, 4))
    assert outcome(lone, ConnectQp(0, QPN, 1, PEER_QPN, 0, 500)) is None
    assert "is in state rtr, not init" in (outcome(lone, ConnectQp(0, QPN, 1, PEER_QPN, 0, 500)) or "")
    assert "is in state rtr, not rts" in (outcome(lone, work()) or "")
    lone.arrive(lone.packet(RC_WRITE_ONLY, 0, 4))
    assert outcome(lone, ModifyQp(0, QPN, "rts")) is None
    assert outcome(lone, work()) is None
    assert lone.drops() == {"qp_not_ready": 1}
    assert lone.nic.counters()["bytes_placed"] == 4
    changes = [(change.source, change.target) for change in lone.told(QpChange)]
    assert changes == [("reset", "init"), ("init", "rtr"), ("rtr", "rts")]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (work(0), "a message of 0 bytes"),
        (work(1 << 32), "possible are 1 to 2**32 - 1"),
        (work(SIZE + 1), "are not inside region 1"),
        (work(4, VA - 1), "are not inside region 1"),
        (work(imm=1 << 32), "is no immediate of 32 bits"),
        (work(imm=-1), "is no immediate of 32 bits"),
        (work(remote=(1 << 64) - 3), "remote address out of range"),
        (work(r_key=1 << 32), "R_Key or remote address"),
        (ModifyQp(0, QPN, "rtr"), "moved to rts or error"),
        (ModifyQp(0, 77, "rts"), "no QP 77"),
        (ModifyQp(0, QPN, "rts"), "cannot go from rts to rts"),
        (ModifyQp(0, QPN, "rts", timeout_exponent=32), "4.096 us times 2 to 32"),
        (ModifyQp(0, QPN, "rts", retry_linear=8), "8 retries"),
        (CreateQp(0, QPN), "exists already"),
        (CreateQp(0, 1), "possible are"),
        (CreateQp(0, 1 << 24), "possible are"),
        (CreateQp(0, None, profile=3), "no EV profile 3"),
        (ConnectQp(0, QPN, 2, 5, 0, 0), "no NIC 2; the fabric has 2"),
        (ConnectQp(0, QPN, 1, 1, 0, 0), "peer QP number 1"),
        (ConnectQp(0, QPN, 1, 5, 1 << 24, 0), "is no PSN of 24 bits"),
        (ConnectQp(0, QPN, 1, 5, 0, -1), "is no PSN of 24 bits"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(command: object, why: str) -> None:
    lone = LoneNic()
    assert why in (outcome(lone, command) or "")
    assert lone.state() == "rts"
    assert lone.nic.qp_table()[0]["unfinished"] == 0


def test_bounds_of_qps_and_of_unfinished_work() -> None:
    lone = LoneNic(qps_max=2, work_requests_max=3)
    assert outcome(lone, CreateQp(0)) is None
    assert "all 2 QPs are in use" in (outcome(lone, CreateQp(0)) or "")
    assert [outcome(lone, work()) for _ in range(3)] == [None] * 3
    assert "has 3 unfinished messages" in (outcome(lone, work()) or "")
    assert outcome(lone, DestroyQp(0, 16)) is None
    assert outcome(lone, CreateQp(0)) is None


@pytest.mark.parametrize("destroyed", [True, False])
def test_the_end_of_a_qp_flushes_its_work_and_frees_its_memory(destroyed: bool) -> None:
    lone = LoneNic()
    for wr_id in range(3):
        lone.post(SIZE // 2, wr_id)
    lone.do(DestroyQp(0, QPN) if destroyed else ModifyQp(0, QPN, "error"))
    assert [(done.wr_id, done.status) for done in lone.told(Completion)] == [(n, "flushed") for n in range(3)]
    lone.wait(10_000)
    assert lone.idle
    lone.arrive(lone.packet(RC_WRITE_ONLY, 0, 4))
    assert lone.drops() == ({"unknown_qp": 1} if destroyed else {"qp_state": 1})
    assert lone.nic.counters()["qps"]["error"] == (not destroyed)


@pytest.mark.parametrize("received", [False, True])
def test_a_qp_that_stays_in_set_up_fails_unless_it_has_received(received: bool) -> None:
    lone = LoneNic(connect=False, setup_timeout_ns=20_000)
    lone.do(CreateQp(0, QPN))
    lone.do(ConnectQp(0, QPN, 1, PEER_QPN, 0, 500))
    if received:
        lone.arrive(lone.packet(RC_WRITE_ONLY, 0, 4))
    lone.wait(20_000)
    assert lone.state() == ("rtr" if received else "error")
    assert received or lone.told(QpChange)[-1].reason == "setup_timeout_in_rtr"


def test_without_carrier_a_qp_waits_and_goes_on_where_it_was() -> None:
    pipe = Pipe(size=1 << 18, rc_timeout=10)
    pipe.write(1 << 18)
    for at_ns, up in ((5_000, False), (400_000, True)):
        pipe.command(0, at_ns, SetCarrier(0, 0, up))
    pipe.run(399_999)
    assert not pipe.completions()
    pipe.run(1 << 33)
    (done,) = pipe.completions()
    assert done.status == "ok"
    assert 400_000 < done.at_ns < 500_000, "a NAK does it"
    assert pipe.target() == bytes(pipe.source)


def test_without_carrier_for_good_a_qp_ends_by_its_retries() -> None:
    lone = LoneNic(rc_timeout=4, rc_retry_cnt=2)
    lone.do(SetCarrier(0, 0, False))
    begin = lone.now + 1
    lone.post(4)
    lone.wait(3 * TIMEOUT_NS)
    assert lone.told(QpChange)[-1].at_ns == begin + 3 * TIMEOUT_NS
    assert [done.status for done in lone.told(Completion)] == ["retry_exceeded"]


@pytest.mark.parametrize("failover", [True, False])
def test_a_qp_takes_another_port_only_if_it_may(failover: bool) -> None:
    pipe = Pipe(size=1 << 18, planes=2, rc_port_failover=failover, rc_timeout=4)
    pipe.write(1 << 18)
    pipe.run(5_000)
    port = int(pipe.nics[0].qp_table()[0]["port"])
    pipe.command(0, 6_000, SetCarrier(0, port, False))
    pipe.run(1 << 33)
    (done,) = pipe.completions()
    assert done.status == ("ok" if failover else "retry_exceeded")
    row = pipe.nics[0].qp_table()[0]
    assert row["port"] == (1 - port if failover else port)
    assert row["planes"] == (1 << 1 - port if failover else 0)
    assert not failover or pipe.target() == bytes(pipe.source)


def test_a_timer_of_its_own() -> None:
    lone = LoneNic(connect=False)
    lone.do(CreateQp(0, QPN))
    lone.do(ConnectQp(0, QPN, 1, PEER_QPN, 0, 500))
    lone.do(ModifyQp(0, QPN, "rts", timeout_exponent=3, retry_linear=1))
    begin = lone.now + 1
    lone.post(4)
    lone.wait(100 * TIMEOUT_NS)
    assert lone.told(QpChange)[-1].at_ns == begin + 2 * (4_096 << 3)
