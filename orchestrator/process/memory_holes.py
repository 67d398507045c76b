"""Fills the holes between objects, before a process forks.

After imports and a collection of garbage nearly every page of a process has room for a few more objects. Children put
theirs there, and each such page becomes a copy of their own: hundreds of pages for what fits into thirty. So the
parent fills the room with objects that stay, and what children make goes to fresh pages, side by side. It knows sizes
and addresses only: CPython has pools of equal objects up to SMALL_BYTES_MAX, and takes larger ones from the library's
`malloc`, which keeps lists of free pieces by size up to CACHED_BYTES_MAX.
"""

from itertools import repeat

ALIGNMENT = 16
SMALL_BYTES_MAX = 512
CACHED_BYTES_MAX = 1040
SIZES = (
    *range(ALIGNMENT, SMALL_BYTES_MAX + 1, ALIGNMENT),
    # The largest first: what they leave of a piece is for those that follow.
    *(4096, 3072, 2048, 1536, 1280), *range(CACHED_BYTES_MAX, SMALL_BYTES_MAX, -ALIGNMENT),
)  # fmt: skip
BLOCK_BYTES = 16 << 10
"""A pool of CPython."""
RUN_BYTES = 12 << 10
"""Objects that fill so much of one block come from fresh memory."""
LOOKED_AT = 16
"""Places that tell where a batch lies, at most."""
STRAYS = 2
"""But for so many, which take the place of numbers that were there for a moment."""
BATCHES_MAX = 64
"""For each size, where another allocator than CPython's is at work; CPython has up to 20 of them to fill."""
_BYTES_HEAD = bytes(0).__sizeof__()
_FLOAT_BYTES_MAX = 32


def fill_holes() -> list[list[object]]:
    """Make objects of each size until they come from fresh memory; the holes are filled while the caller keeps them."""
    kept: list[list[object]] = []
    for size in SIZES:
        for _ in range(BATCHES_MAX):
            batch = _objects(size)
            looked_at = batch[:: len(batch) // LOOKED_AT + 1]
            blocks = [id(one) // BLOCK_BYTES for one in looked_at]
            if blocks.count(blocks[-1]) >= len(blocks) - min(STRAYS, len(blocks) // 4):
                break
            kept.append(batch)
    return kept


def _objects(size: int) -> list[object]:
    """New objects that take `size` bytes each, RUN_BYTES together."""
    count = RUN_BYTES // size
    if size <= ALIGNMENT:
        return [object() for _ in repeat(None, count)]
    if size <= _FLOAT_BYTES_MAX:
        return [float("0.5") for _ in repeat(None, count)]
    # Not `bytes(length)`: that asks for zeros, for which `malloc` does not look into all of its lists.
    length = size - _BYTES_HEAD
    return [b"." * length for _ in repeat(None, count)]
