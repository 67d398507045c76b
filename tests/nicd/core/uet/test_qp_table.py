"""Commands about UET QPs: what they answer and what they refuse."""

from typing import Any

import pytest

from nicd.core.commands import ConnectQp, CreateQp, DestroyQp, ModifyQp
from nicd.core.events import CommandDone
from tests.nicd.core.uet.pipe import QPN_A, Pipe


def do(pipe: Pipe, command: Any) -> CommandDone:
    pipe.command(0, pipe.now + 5, command)
    pipe.run(pipe.now + 10)
    done: CommandDone = [event for event in pipe.events[0] if isinstance(event, CommandDone)][-1]
    return done


def test_numbers_are_given_and_come_back() -> None:
    pipe = Pipe(connect=False, qps_max=2)
    assert do(pipe, CreateQp(0)).result == {"qpn": 16}
    assert do(pipe, CreateQp(0, 17)).error is None
    assert "all 2 QPs" in str(do(pipe, CreateQp(0)).error)
    assert do(pipe, DestroyQp(0, 16)).error is None
    assert do(pipe, CreateQp(0)).result == {"qpn": 18}


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (CreateQp(0, 0), "QP number 0"), (CreateQp(0, QPN_A), "exists already"), (CreateQp(0, None, 3), "has no EVs"),
        (ConnectQp(0, 5, 1, 9, 0, 0), "no QP 5"), (ConnectQp(0, QPN_A, 1, 9, 0, 0), "not init"),
        (ConnectQp(0, QPN_A, 99, 9, 0, 0), "no NIC 99"), (ConnectQp(0, QPN_A, 1, 0, 0, 0), "peer QP number 0"),
        (ConnectQp(0, QPN_A, 1, 9, 1 << 24, 0), "no PSN"), (ModifyQp(0, QPN_A, "sqd"), "to rts or error"),
        (ModifyQp(0, QPN_A, "rts"), "cannot go"), (ModifyQp(0, QPN_A, "rts", 25), "timeout of 1.024 us"),
        (ModifyQp(0, QPN_A, "rts", None, 8), "linear"), (ModifyQp(0, QPN_A, "rts", None, None, 26), "exponential"),
    ],
)  # fmt: skip
def test_what_is_refused(command: Any, text: str) -> None:
    assert text in str(do(Pipe(), command).error)


def test_a_qp_has_timers_of_its_own() -> None:
    pipe = Pipe(lambda at_ns, side, seen: False, connect=False)
    for command in (CreateQp(0, 50), ConnectQp(0, 50, 1, 60, 1, 2), ModifyQp(0, 50, "rts", 6, 1, 0)):
        assert do(pipe, command).error is None
    pipe.write(100, qpn=50, at_ns=pipe.now + 5)
    pipe.run(10_000_000)
    first, second = (arrival for arrival, _, seen in pipe.log if seen.is_data)
    assert second - first == 1_024 << 6
    assert pipe.errors()[0].reason == "retry_counter_exceeded"
