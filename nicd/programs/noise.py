"""What programs send: bytes that look random, are computed from names, and whose sums can be computed without sending.

Owns the noise of a program and the expected sums of reductions. A reduction adds lanes of 32 bits, each little endian.
All ranks know one noise; each rank contributes a part of it, shifted by a stride per rank. The top bits of each lane
stay 0, with room for the sum over all ranks. So lanes never overflow, adding is adding whole numbers, and the sum of
any number of contributions takes as many additions as that number has bits.
"""

import hashlib
from functools import lru_cache
from typing import Final

from mrcfabric.rng import seed_of

LANE_BYTES: Final = 4
LANE_BITS: Final = 8 * LANE_BYTES
SLACK_BYTES: Final = 1 << 16
"""How much longer the noise is than what is sent, so that consecutive messages can begin at different places in it."""
STRIDE_BYTES: Final = 17 * LANE_BYTES
"""How far after one rank's contribution the next rank's begins in the noise."""
_CACHED: Final = 8
# Coprime to every power of two, so that a begin repeats only after all others.
_STEP: Final = 40_503


@lru_cache(maxsize=_CACHED)
def noise(seed: str, name: str, size: int) -> bytes:
    """`size` bytes computed from the names."""
    return hashlib.shake_128(seed_of(seed, name, "noise").to_bytes(8, "little")).digest(size)


def begin_of(*places: int) -> int:
    """Where in the slack the message identified by `places` begins: 0 .. SLACK_BYTES - 1."""
    value = 0
    for place in places:
        value = (value * 257 + place + 1) * _STEP % SLACK_BYTES
    return value


def lane_of(*places: int) -> int:
    """As `begin_of`, rounded down to the begin of a lane."""
    return begin_of(*places) // LANE_BYTES * LANE_BYTES


def lane_room_bits(ranks: int) -> int:
    """Bits at the top of each lane of a contribution that stay 0, so that the sum of `ranks` of them fits."""
    return (ranks - 1).bit_length()


@lru_cache(maxsize=_CACHED)
def contributions(seed: str, name: str, size: int, ranks: int) -> bytes:
    """The noise from which `ranks` ranks contribute.

    Rank r takes `size` bytes, SLACK_BYTES included, from r strides on.
    """
    length = size + (ranks - 1) * STRIDE_BYTES
    lane = (1 << LANE_BITS - lane_room_bits(ranks)) - 1
    mask = int.from_bytes(lane.to_bytes(LANE_BYTES, "little") * (length // LANE_BYTES), "little")
    return (int.from_bytes(noise(seed, name, length), "little") & mask).to_bytes(length, "little")


@lru_cache(maxsize=_CACHED)
def sums(seed: str, name: str, size: int, ranks: int) -> bytes:
    """The sum of all contributions, lane by lane: `size` bytes."""
    one = int.from_bytes(contributions(seed, name, size, ranks), "little")
    shift = STRIDE_BYTES * 8
    # total: the sum of the first `count` ranks; power: that of the first `reach` ranks, a power of two.
    total, count, power, reach = 0, 0, one, 1
    while True:
        if ranks & reach:
            total += power >> count * shift
            count += reach
        if count == ranks:
            break
        power += power >> reach * shift
        reach *= 2
    return (total & (1 << 8 * size) - 1).to_bytes(size, "little")


def added(one: bytes | memoryview, other: bytes | memoryview) -> bytes:
    """The sum of two parts of the same length, lane by lane."""
    total = int.from_bytes(one, "little") + int.from_bytes(other, "little")
    # Contributions leave room, but received bytes may be anything.
    return total.to_bytes(len(one) + 1, "little")[: len(one)]


def differing(one: bytes, other: bytes) -> int:
    """How many bytes differ between two parts of the same length."""
    return 0 if one == other else sum(mine != theirs for mine, theirs in zip(one, other, strict=True))
