"""A UET endpoint with the face of a QP: states, refusals, and how contexts are closed."""

import pytest

from mrcfabric.node import Input, Rank
from mrcfabric.wire.uet_layout import CONTROL_CLOSE
from nicd.core.commands import CreateQp, DestroyQp, ModifyQp, PostWrite
from nicd.core.events import CommandDone
from tests.nicd.core.uet.pipe import QPN_A, QPN_B, R_KEY, SOURCE_REGION, SOURCE_VA, TARGET_VA, Pipe, Seen


def errors(pipe: Pipe, side: int = 0) -> list[str]:
    return [event.error for event in pipe.events[side] if isinstance(event, CommandDone) and event.error]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"length": 0}, "a message of 0 bytes"), ({"length": 1 << 32}, "a message of"), ({"imm": 1 << 32}, "immediate"),
        ({"r_key": 1 << 32}, "R_Key"), ({"remote_va": (1 << 64) - 1}, "address"), ({"local_region": 9}, "region 9"),
        ({"local_va": 0}, "not inside"), ({"qpn": 7}, "no QP 7"),
    ],
)  # fmt: skip
def test_a_write_that_cannot_be_is_refused(change: dict[str, int], text: str) -> None:
    pipe = Pipe()
    values = {"token": 0, "qpn": QPN_A, "wr_id": 1, "local_region": SOURCE_REGION, "local_va": SOURCE_VA, "length": 100,
              "remote_va": TARGET_VA, "r_key": R_KEY}  # fmt: skip
    pipe.command(0, 10, PostWrite(**(values | change)))
    pipe.run(10_000)
    assert text in errors(pipe)[0]
    assert not pipe.data()


def test_no_more_messages_than_the_setting_allows() -> None:
    pipe = Pipe(work_requests_max=3)
    for number in range(5):
        pipe.write(100, wr_id=number)
    pipe.run(100_000)
    assert [text for text in errors(pipe) if "3 unfinished" in text] == errors(pipe)
    assert len(errors(pipe)) == 2
    assert len(pipe.completions()) == 3


def test_a_destroyed_qp_closes_its_context() -> None:
    pipe = Pipe()
    pipe.write(20_000)
    pipe.run(100_000)
    assert (len(pipe.transport(0).contexts), pipe.counter(1, "uet", "targets")) == (1, 1)
    pipe.command(0, 100_010, DestroyQp(0, QPN_A))
    pipe.run(1_000_000)
    closes = [seen for seen in pipe.sent(0) if seen.is_control]
    assert [seen.peeked[3] for seen in closes] == [CONTROL_CLOSE]
    assert (len(pipe.transport(0).contexts), pipe.counter(1, "uet", "targets")) == (0, 0)
    assert pipe.counter(0, "uet", "contexts_closed") == 1
    assert pipe.nics[1].qp_table()[0]["bytes_placed"] == 20_000, "counted on"
    assert pipe.quiet


@pytest.mark.parametrize("lost", [1, 3, 20])
def test_a_close_is_sent_again_until_it_is_answered(lost: int) -> None:
    gone: list[int] = []

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        if at_ns > 100_000 and len(gone) < lost:
            gone.append(at_ns)
            return False
        return True

    pipe = Pipe(fate)
    pipe.write(20_000)
    pipe.run(100_000)
    pipe.command(0, 100_010, DestroyQp(0, QPN_A))
    pipe.run(1_000_000_000)
    assert len(pipe.transport(0).contexts) == 0
    assert len(gone) == min(lost, 8)
    assert pipe.quiet


def test_closing_what_the_target_forgot() -> None:
    pipe = Pipe()
    pipe.write(20_000)
    pipe.run(100_000)
    pipe.command(1, 100_005, DestroyQp(0, QPN_B))
    pipe.command(0, 100_010, DestroyQp(0, QPN_A))
    pipe.run(1_000_000)
    assert len(pipe.transport(0).contexts) == len(pipe.transport(1).contexts) == 0
    assert pipe.quiet


def test_states_and_rows() -> None:
    pipe = Pipe()
    pipe.write(20_000)
    pipe.run(100_000)
    row = pipe.nics[0].qp_table()[0]
    assert (row["qpn"], row["state"], row["peer_qpn"], row["unfinished"]) == (QPN_A, "rts", QPN_B, 0)
    assert row["pdcid"] == pipe.link(0).pdcid > 0
    assert row["dpdcid"] in pipe.link(1).targets
    pipe.command(0, 100_010, ModifyQp(0, QPN_A, "error"))
    pipe.command(0, 100_011, PostWrite(0, QPN_A, 1, SOURCE_REGION, SOURCE_VA, 10, TARGET_VA, R_KEY))
    pipe.run(200_000)
    assert pipe.nics[0].qp_table()[0]["state"] == "error"
    assert "state error" in errors(pipe)[0]
    assert pipe.counter(1, "uet", "targets") == 0


def test_a_qp_that_stays_in_set_up_fails_with_a_reason() -> None:
    pipe = Pipe(setup_timeout_ns=5_000, connect=False)

    pipe.command(0, 5, CreateQp(0, 50))
    pipe.run(20_000)
    assert pipe.errors()[0].reason == "setup_timeout_in_init"


@pytest.mark.parametrize("control", ["nscc", "rccc", "both"])
@pytest.mark.parametrize("cwnd", [4_096, 9_000, 30_000])
def test_qps_that_share_a_window_or_credit_wake_each_other(control: str, cwnd: int) -> None:
    pipe = Pipe(uet_cc=control, cwnd_bytes=cwnd)
    pipe.connect(QPN_A + 1, QPN_B + 1)
    pipe.write(1 << 15)
    pipe.write(1 << 17, wr_id=2, qpn=QPN_A + 1, offset=1 << 15)
    for at_ns in range(500, 400_000, 250):
        pipe.run(at_ns)
        for qpn in (QPN_A, QPN_A + 1):
            link = pipe.link(0, qpn)
            assert link.waiting or not (link.has_packet() and link.open_ports()), "it could send, and nobody asks it"
    assert [done.status for done in pipe.completions()] == ["ok", "ok"]


@pytest.mark.parametrize("most", [2, 16, 1024])
@pytest.mark.parametrize("messages", [40, 200])
def test_responses_do_not_pile_up_beyond_their_room_and_all_messages_complete(messages: int, most: int) -> None:
    pipe = Pipe(uet_responses_max=most)
    for number in range(messages):
        pipe.write(1_000, number, 10 + 40 * number, offset=1_000 * number)
    pipe.run(3_000_000)
    assert sorted(one.wr_id for one in pipe.completions()) == list(range(messages))
    assert {one.status for one in pipe.completions()} == {"ok"}
    (target,) = pipe.transport(1)._targets.values()
    assert target.kept.peak <= most
    # All is sent, so that a CLEAR has to say what requests said before.
    uet = pipe.counter(0, "uet")
    assert (uet["clears_sent"] > 0) == (2 * target.kept.peak >= most)
    assert len(target.kept) * 2 < most + 2


@pytest.mark.parametrize("every", [3, 7])
@pytest.mark.parametrize("step_parts", [1, 3, 10])
def test_with_lost_answers_it_is_the_same_however_time_is_cut(every: int, step_parts: int) -> None:
    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        return not (seen.is_ack and seen.packet[-9] % every == 0)

    found = []
    for parts in (1, step_parts):
        pipe = Pipe(fate, uet_responses_max=3, sack_bytes=1)
        pipe.step_ns = pipe.delay_ns // parts
        for number in range(60):
            pipe.write(1_000, number, 10 + 2_000 * number, offset=1_000 * number)
        pipe.run(4_000_000)
        assert len(pipe.completions()) == 60
        found.append(sorted((at_ns, side, bytes(seen.packet)) for at_ns, side, seen in pipe.log))
    assert found[0] == found[1]


def test_a_response_that_comes_again_completes_no_other_message_of_its_id() -> None:
    held: list[bytearray] = []

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        if seen.is_ack and not held:
            held.append(seen.packet)
        return True

    pipe = Pipe(fate)
    pipe.write(4_096, 1)
    pipe.run(50_000)
    initiator = pipe.link(0).initiator
    # 65,535 messages later another one has the id 0; its packets are out.
    initiator._completed = 0
    pipe.fate = lambda at_ns, side, seen: side == 0 and not seen.is_data
    pipe.write(4_096, 2, 60_000)
    pipe.run(64_000)
    assert list(initiator._messages) == [0]
    frame = Input(65_000, int(Rank.FRAME), 0, 1 << 30, held[0])
    pipe.nics[0].advance([frame], 65_000)
    assert initiator.unfinished == 1
