"""A list of messages, each at its instant: for example a recorded application.

Every message has its own place at its receiver. Messages of one sender to one receiver are complete in the order of
their instants. If earlier ones are still under way at a message's instant, it is posted all the same.
"""

from functools import partial
from typing import Final, NamedTuple

from mrcfabric.errors import ConfigError
from nicd.programs.kind import Figures, Kind, Part, TraceFigure
from nicd.programs.noise import SLACK_BYTES, begin_of, noise
from nicd.programs.program import Program
from nicd.programs.rank import Rank


class Message(NamedTuple):
    """One line of the list."""

    at_ns: int
    """Counted from the begin of the program."""
    number: int
    """Number of the line: keeps the order of messages at the same instant."""
    sender: int
    receiver: int
    size: int
    place: int
    """Its offset in the receiver's memory."""


def _messages(program: Program, figures: Figures) -> tuple[list[Message], int]:
    """All messages in the order of their instants, and the memory that the busiest receiver needs for them."""
    found = []
    used = [0] * len(program.ranks)
    for number, (sender, receiver, size, at_ns) in enumerate(figures["messages"]):
        if sender == receiver or max(sender, receiver) >= len(used):
            where = f"program {program.name}.messages[{number}]"
            raise ConfigError(where, f"from rank {sender} to rank {receiver}", f"two of the ranks 0 to {len(used) - 1}")
        found.append(Message(at_ns, number, sender, receiver, size, used[receiver]))
        used[receiver] += size
    return sorted(found), max(used)


def _part(program: Program, figures: Figures, number: int) -> Part:
    messages, inbound = _messages(program, figures)
    own = [message for message in messages if number in (message.sender, message.receiver)]
    peers = {rank for message in own for rank in (message.sender, message.receiver)} - {number}
    given = noise(program.seed, program.name, max(message.size for message in messages) + SLACK_BYTES)
    return Part(tuple(sorted(peers)), inbound, given, partial(_run, own, inbound, given))


async def _run(messages: list[Message], inbound: int, given: bytes, rank: Rank) -> None:
    senders = sorted({message.sender for message in messages} - {rank.number})
    hearing = [rank.begin(_hear(messages, sender, given, rank)) for sender in senders]
    for message in messages:
        if message.sender == rank.number:
            await rank.until(rank.program.begin_ns + message.at_ns)
            rank.send(message.receiver, inbound + begin_of(message.number), message.size, message.place)
    await rank.all_sent()
    for strand in hearing:
        await strand


async def _hear(messages: list[Message], sender: int, given: bytes, rank: Rank) -> None:
    """Receive and verify the messages of one sender, in its order."""
    for message in messages:
        if message.sender == sender:
            await rank.receive(sender)
            start = begin_of(message.number)
            rank.verify(message.place, given[start : start + message.size])


TRACE: Final = Kind(
    "Messages from a list, each at its instant.",
    {"messages": TraceFigure("[from rank, to rank, bytes, instant in ns after the begin], line by line.")},
    _part,
    required=frozenset({"messages"}),
)
