"""Credits: every message gets through, and none overwrites one that was not looked at."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.rng import Rng
from orchestrator.workers.stream import (
    CREDIT_BIT,
    StreamReceiver,
    StreamSender,
    credit_imm,
    credit_of,
    message_imm,
)


@given(messages=st.integers(1, 60), depth=st.integers(1, 9), seed=st.integers(0, 1 << 30))
def test_every_message_arrives_and_no_slot_is_overwritten(messages: int, depth: int, seed: int) -> None:
    rng = Rng(seed)
    sender, receiver = StreamSender(3, messages, depth), StreamReceiver(3, messages, depth)
    slots: list[int | None] = [None] * depth
    wire: deque[int] = deque()
    unacknowledged: list[int] = []
    returned: deque[int] = deque()
    seen = []
    while not (sender.done and receiver.done):
        moves = ["send"] + ["deliver"] * bool(wire) + ["look"] * (receiver.next() is not None)
        moves += ["complete"] * bool(unacknowledged) + ["credit"] * bool(returned)
        move = moves[rng.below(len(moves))]
        if move == "send":
            wire.extend(sender.ready())
        elif move == "deliver":
            number = wire.popleft()
            assert slots[number % depth] is None
            slots[number % depth] = number
            assert receiver.arrived(message_imm(number))
            unacknowledged.append(number)
        elif move == "complete":
            sender.complete(unacknowledged.pop(rng.below(len(unacknowledged))))
        elif move == "credit":
            sender.credit(returned.popleft())
        else:
            number = receiver.next() or 0
            assert slots[number % depth] == number
            slots[number % depth] = None
            seen.append(number)
            credit = receiver.use()
            if credit is not None:
                returned.append(credit)
    assert seen == list(range(messages))
    assert receiver.used == messages


def test_no_credit_is_returned_that_nobody_needs() -> None:
    receiver = StreamReceiver(0, 4, 4)
    for number in range(4):
        assert receiver.arrived(number)
        assert receiver.use() is None


def test_a_message_out_of_turn_is_noticed() -> None:
    receiver = StreamReceiver(0, 2, 4)
    assert not receiver.arrived(1)
    assert receiver.arrived(0)
    assert not receiver.arrived(0)
    assert receiver.arrived(1)
    assert not receiver.arrived(2)


def test_credits_of_another_round_mean_nothing() -> None:
    sender = StreamSender(1, 10, 1)
    assert list(sender.ready()) == [0]
    sender.complete(0)
    sender.credit(credit_imm(0, 5))
    assert not sender.ready()
    sender.credit(credit_imm(129, 1))
    assert list(sender.ready()) == [1]


def test_credits_and_messages_are_told_apart() -> None:
    assert credit_of(message_imm(CREDIT_BIT - 1)) is None
    assert credit_of(credit_imm(130, 77)) == (2, 77)
