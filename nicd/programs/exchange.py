"""Collectives that move data and add nothing: all-gather, all-to-all, broadcast.

Data of consecutive steps goes to different places in memory. A peer may be one step ahead of us, not two, because to
finish a step it needs something that we send in that step; so two places in turn are enough. In a broadcast a rank
needs no data from the ranks below it, so there every rank tells the one above when all below it have everything.
"""

from collections import deque
from typing import Final

from mrcfabric.errors import ConfigError
from mrcfabric.units import MIB
from nicd.programs.all_reduce import STEPS
from nicd.programs.kind import MESSAGE_BYTES_MAX, Figure, Figures, Kind, Part
from nicd.programs.noise import LANE_BYTES, SLACK_BYTES, begin_of, noise
from nicd.programs.program import RANKS_MAX, Program
from nicd.programs.rank import Rank
from nicd.programs.ring import Ring
from nicd.programs.strands import Signal
from nicd.programs.vector import Vector

_TOKEN_BYTES: Final = 4
_MESSAGE, _TOKEN = 0, 1
"""Channels of a broadcast."""


def _all_gather(program: Program, figures: Figures, number: int) -> Part:
    ranks, block = len(program.ranks), figures["block_bytes"]
    whole = ranks * block
    given = noise(program.seed, program.name, block + SLACK_BYTES)

    async def run(rank: Rank) -> None:
        """Run all-gathers one after the other, with two vectors in turn."""
        rings = [Ring(Vector(rank, turn * whole, whole), 2 * whole, turn * Ring.channels(ranks)) for turn in (0, 1)]
        for step in range(figures["steps"]):
            begin_ns = rank.now
            base, ring = step % 2 * whole, rings[step % 2]
            await ring.sent()
            start, own = begin_of(number, step), base + number * block
            rank.memory[own : own + block] = given[start : start + block]
            await ring.all_gather(0)
            for other in range(ranks):
                if other != number:
                    start = begin_of(other, step)
                    rank.verify(base + other * block, given[start : start + block])
            rank.step(begin_ns, begin_ns)

    return Part(Ring.peers(ranks, number), 2 * whole, b"", run)


def _all_to_all(program: Program, figures: Figures, number: int) -> Part:
    ranks, block = len(program.ranks), figures["block_bytes"]
    inbound = 2 * ranks * block
    given = noise(program.seed, program.name, block + SLACK_BYTES)
    window = figures["window"] or RANKS_MAX

    async def send(rank: Rank, step: int, to: int) -> None:
        """Send our blocks to all others, the next rank first."""
        unacknowledged: deque[Signal[None]] = deque()
        for distance in range(1, ranks):
            if len(unacknowledged) == window:
                await unacknowledged.popleft()
            peer = (number + distance) % ranks
            unacknowledged.append(rank.send(peer, inbound + begin_of(number, peer, step), block, to))
        for message in unacknowledged:
            await message

    async def run(rank: Rank) -> None:
        """Run exchanges one after the other; one ends when all blocks have arrived and all of ours are acknowledged."""
        for step in range(figures["steps"]):
            begin_ns = rank.now
            base = step % 2 * ranks * block
            sending = rank.begin(send(rank, step, base + number * block))
            for distance in range(1, ranks):
                peer = (number - distance) % ranks
                await rank.receive(peer)
                start = begin_of(peer, number, step)
                rank.verify(base + peer * block, given[start : start + block])
            await sending
            rank.step(begin_ns, begin_ns)

    return Part(tuple(peer for peer in range(ranks) if peer != number), inbound, given, run)


def tree(ranks: int, place: int) -> tuple[int | None, list[int]]:
    """The parent and the children of a place in a binomial tree, the child with the largest subtree first."""
    reach = 1
    while reach < ranks and not place & reach:
        reach *= 2
    below = []
    distance = reach // 2
    while distance:
        if place + distance < ranks:
            below.append(place + distance)
        distance //= 2
    return (place - reach if place else None), below


def _broadcast(program: Program, figures: Figures, number: int) -> Part:
    ranks, size, root = len(program.ranks), figures["message_bytes"], figures["root"]
    if root >= ranks:
        raise ConfigError(f"program {program.name}.root", f"there is no rank {root}", f"0 to {ranks - 1}")
    given = noise(program.seed, program.name, size + SLACK_BYTES)
    above, below = tree(ranks, (number - root) % ranks)
    parent = None if above is None else (above + root) % ranks
    children = [(place + root) % ranks for place in below]
    inbound = size + ranks * _TOKEN_BYTES

    async def run(rank: Rank) -> None:
        """Run broadcasts one after the other; one ends when all below have everything and the rank above knows it."""
        for step in range(figures["steps"]):
            begin_ns = rank.now
            start = begin_of(root, step)
            offset = inbound + start
            if parent is not None:
                await rank.receive(parent, _MESSAGE)
                rank.verify(0, given[start : start + size])
                offset = 0
            forwarded = [rank.send(child, offset, size, 0, _MESSAGE) for child in children]
            for child in children:
                await rank.receive(child, _TOKEN)
                rank.verify(size + child * _TOKEN_BYTES, given[start : start + _TOKEN_BYTES])
            for message in forwarded:
                await message
            if parent is not None:
                await rank.send(parent, inbound + start, _TOKEN_BYTES, size + number * _TOKEN_BYTES, _TOKEN)
            rank.step(begin_ns, begin_ns)

    peers = tuple(sorted([*children, *([] if parent is None else [parent])]))
    return Part(peers, inbound, given, run)


ALL_GATHER: Final = Kind(
    "Every rank's block goes to all others, round a ring in the order of the ranks.",
    {
        "steps": STEPS,
        "block_bytes": Figure(MIB >> 2, "The block of every rank.", LANE_BYTES, MESSAGE_BYTES_MAX, LANE_BYTES),
    },
    _all_gather,
)
ALL_TO_ALL: Final = Kind(
    "Every rank sends a block to every other.",
    {
        "steps": STEPS,
        "block_bytes": Figure(MIB >> 2, "The block from every rank to every other.", 1, MESSAGE_BYTES_MAX),
        "window": Figure(0, "Blocks that a rank may have unacknowledged; 0: all of a step.", 0, RANKS_MAX),
    },
    _all_to_all,
)
BROADCAST: Final = Kind(
    "A message of one rank goes to all others, down a binomial tree.",
    {
        "steps": STEPS,
        "message_bytes": Figure(MIB, "The message.", _TOKEN_BYTES, MESSAGE_BYTES_MAX),
        "root": Figure(0, "The rank that it comes from.", 0, RANKS_MAX - 1),
    },
    _broadcast,
)
