"""How frames make trains, and where they lie in one.

Pure. A train is a row of frames of one size, of which only the last may be shorter (`mrcfabric.udp`).
"""

import struct
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.link import LINK_HEADER_BYTES

_HEADER: Final = 24
assert _HEADER == LINK_HEADER_BYTES
_CUTS_MAX: Final = 1024
_COUNT_BITS: Final = 16


Sent: TypeAlias = tuple[Any, ...]
"""A `mrcfabric.node.Transmit` as an object: compiled code passes it on, and does not take it apart and make it anew."""


class Cut:
    """Where the frames of a train lie, by their size and number."""

    __slots__ = ("bodies", "unpack")

    def __init__(self, size: int, count: int) -> None:
        self.unpack: Callable[[Buffer], tuple[Any, ...]] = struct.Struct(
            f">{f'QQ8s{size - _HEADER}x' * (count - 1)}QQ8s"
        ).unpack_from
        """All link headers at once: the three parts of each (`LINK_HEADER`)."""
        self.bodies = [slice(start + _HEADER, start + size) for start in range(0, size * count, size)]
        """What follows the headers; the last may end sooner."""


_cuts: Final[dict[int, Cut]] = {}


def cut_of(size: int, count: int) -> Cut:
    """The cut of a train of `count` frames of `size` bytes, header included."""
    key = size << _COUNT_BITS | count
    cut = _cuts.get(key)
    if cut is None:
        if len(_cuts) >= _CUTS_MAX:
            _cuts.clear()
        cut = _cuts[key] = Cut(size, count)
    return cut


def longest_first(transmits: list[Sent]) -> list[Sent]:
    """The transmits of a port and a tick in an order that fills fewer trains: by size, the longest first.

    The receiver goes by their instants, and by the order on the link only if two are the same: then it stays.
    """
    if len(transmits) < 2:
        return transmits
    before_ns: Instant = -1
    # Nearly always there are two sizes: full packets, and what acknowledges them.
    first: list[Sent] = []
    second: list[Sent] = []
    first_bytes = len(transmits[0][2])
    second_bytes = -1
    more = False
    for transmit in transmits:
        arrival_ns: Instant = transmit[1]
        if arrival_ns <= before_ns:
            return transmits
        before_ns = arrival_ns
        size = len(transmit[2])
        if size == first_bytes:
            first.append(transmit)
        elif size == second_bytes:
            second.append(transmit)
        elif second_bytes < 0:
            second_bytes = size
            second.append(transmit)
        else:
            more = True
    if second_bytes < 0:
        return transmits
    if more:
        return _by_size(transmits)
    if first_bytes > second_bytes:
        first.extend(second)
        return first
    second.extend(first)
    return second


def _by_size(transmits: list[Sent]) -> list[Sent]:
    """Those of one size after those of a larger one, in their order."""
    by_size: dict[int, list[Sent]] = {}
    for transmit in transmits:
        size = len(transmit[2])
        alike = by_size.get(size)
        if alike is None:
            by_size[size] = [transmit]
        else:
            alike.append(transmit)
    return [transmit for size in sorted(by_size, reverse=True) for transmit in by_size[size]]
