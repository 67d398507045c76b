"""A stream of numbered messages over one QP with credits, as a state machine without any I/O.

Owns the flow control of measurements and transfers. Message k uses slot k % depth at both ends. The sender may send it
once the receiver has used message k - depth and its own slot is free again. The receiver returns credits as tiny
WRITE_WITH_IMMs in the other direction, each for several messages. The caller fills and reads the messages.
"""

from collections import deque

CREDIT_BIT = 1 << 31
"""Set in the immediate of a credit, clear in that of a message."""
ROUND_BITS = 7
COUNT_BITS = 24
MESSAGES_MAX = (1 << COUNT_BITS) - 1
CREDIT_BYTES = 4
DEPTH_MAX = 1024


def message_imm(number: int) -> int:
    """The immediate of message `number`, counted from 0."""
    return number


def credit_imm(turn: int, used: int) -> int:
    """The immediate of a credit: in this round (modulo 128) the receiver has used `used` messages."""
    return CREDIT_BIT | (turn % (1 << ROUND_BITS)) << COUNT_BITS | used


def credit_of(imm: int) -> tuple[int, int] | None:
    """(round modulo 128, messages used) of a credit; None for a message."""
    if not imm & CREDIT_BIT:
        return None
    return imm >> COUNT_BITS & ((1 << ROUND_BITS) - 1), imm & MESSAGES_MAX


class StreamSender:
    """The sending end: which messages may be sent now."""

    def __init__(self, turn: int, messages: int, depth: int) -> None:
        assert 0 < messages <= MESSAGES_MAX
        assert 0 < depth <= DEPTH_MAX
        self._turn = turn % (1 << ROUND_BITS)
        self._messages = messages
        self._depth = depth
        self._used_by_peer = 0
        self._posted = 0
        self._complete: set[int] = set()
        self.acknowledged = 0
        """How many messages are complete without a gap."""

    @property
    def done(self) -> bool:
        """Whether every message is complete at the receiver."""
        return self.acknowledged == self._messages

    def ready(self) -> range:
        """Numbers of the messages that may be posted now. They count as posted from here on."""
        limit = min(self._messages, self._depth + min(self._used_by_peer, self.acknowledged))
        numbers = range(self._posted, max(self._posted, limit))
        self._posted = numbers.stop
        return numbers

    def complete(self, number: int) -> None:
        """Note a message that the NIC has completed; completions may come in any order."""
        self._complete.add(number)
        while self.acknowledged in self._complete:
            self._complete.remove(self.acknowledged)
            self.acknowledged += 1

    def credit(self, imm: int) -> None:
        """Take a credit. Ignores a stale one of another round."""
        turn, used = credit_of(imm) or (-1, 0)
        if turn == self._turn:
            self._used_by_peer = max(self._used_by_peer, used)


class StreamReceiver:
    """The receiving end: which message to look at next, and when to return credits."""

    def __init__(self, turn: int, messages: int, depth: int) -> None:
        self._turn = turn
        self._messages = messages
        self._depth = depth
        self._step = max(1, depth // 4)
        self._arrived: deque[int] = deque()
        self._expected = 0
        self.used = 0
        """How many messages the receiver has used."""
        self._granted = 0

    @property
    def done(self) -> bool:
        return self.used == self._messages

    def arrived(self, number: int) -> bool:
        """Note message `number`, which is in place. Returns False if another one was due."""
        due = number == self._expected and number < self._messages
        if due:
            self._expected += 1
            self._arrived.append(number)
        return due

    def next(self) -> int | None:
        """The oldest message that has not been used; None if there is none."""
        return self._arrived[0] if self._arrived else None

    def use(self) -> int | None:
        """Note that the oldest message has been used. Returns the immediate of a credit to send now, or None."""
        self._arrived.popleft()
        self.used += 1
        # Send no credits that the sender does not need any more: they would meet the next round.
        needed = self._granted + self._depth < self._messages
        if needed and self.used - self._granted >= self._step:
            self._granted = self.used
            return credit_imm(self._turn, self.used)
        return None
