"""The shared buffer of a switch: who fills it, whom it asks to pause, and what it must drop. Pure arithmetic.

Owns the account of every packet by the port and the class it came in on, from its admission to its departure, and the
decisions that follow from it: XOFF (ask the neighbour to pause this class), XON (let it go on), or a drop. The loop of
the switch sends the frames and knows the time. HPCC's public simulator keeps its account the same way.

The buffer has four parts. Each (port, class) has `reserved_bytes` of its own. Each lossless one has its headroom
besides, and room for the frame that crosses the threshold. What is left is the *pool* that all share. A pair's *share*
is what it holds of the pool.

- A lossless pair below its threshold is admitted, always. When its share then reaches the threshold, or the pool is
  used up, it is XOFF. While it is XOFF every byte goes to its headroom; beyond that it is dropped (`pfc_headroom`).
- A departing packet frees headroom first. With headroom empty and the share `xon_offset_bytes` below the threshold, or
  zero, the pair is XON again.
- Any other pair may have as much of the pool as the threshold says, and nothing beyond (`buffer_full`).

The threshold is `xoff_bytes` less what is reserved, or, if that is 0, the unused pool shifted right by `alpha_shift`.
No sequence of calls holds more than `bytes_total`: what would is dropped as `buffer_full`, and with packets of at most
`frame_bytes_max` that happens to no lossless pair.
"""

from dataclasses import dataclass
from typing import Final

from mrcfabric.errors import ConfigError, out_of_order

CLASSES: Final = 8
XOFF: Final = "xoff"
"""Admitted, and the neighbour has to be paused."""
NO_HEADROOM: Final = "pfc_headroom"
FULL: Final = "buffer_full"
DROPS: Final = (NO_HEADROOM, FULL)
"""Why the buffer refuses a packet."""


@dataclass(frozen=True, slots=True)
class BufferConfig:
    """The buffer of one switch. Raises ConfigError."""

    bytes_total: int
    headroom_bytes: tuple[int, ...]
    """By port: headroom of each of its lossless classes."""
    lossless: tuple[int, ...]
    """The classes that are paused rather than dropped."""
    frame_bytes_max: int
    """The largest packet that the fabric makes."""
    reserved_bytes: int = 4_096
    """Of each (port, class)."""
    xoff_bytes: int = 0
    """Bytes of a (port, class), reserved ones included, at which it is XOFF; 0: follows the unused pool."""
    alpha_shift: int = 1
    xon_offset_bytes: int = 3_072

    def __post_init__(self) -> None:
        if not set(self.lossless) <= set(range(CLASSES)) or len(set(self.lossless)) != len(self.lossless):
            raise ConfigError(
                "buffer.lossless", f"{self.lossless} will not do", f"different classes, 0 to {CLASSES - 1}"
            )
        if self.xoff_bytes and self.xoff_bytes <= self.reserved_bytes:
            raise out_of_order("buffer.reserved_bytes", self.reserved_bytes, "buffer.xoff_bytes", self.xoff_bytes)
        if self.pool_bytes < self.frame_bytes_max:
            taken = self.bytes_total - self.pool_bytes
            what = f"{self.bytes_total} leave no pool: headroom and reserved bytes of {self.ports} ports take {taken}"
            raise ConfigError("buffer.bytes_total", what, "a larger buffer, fewer lossless classes, or less headroom")

    @property
    def ports(self) -> int:
        """Ports of the switch."""
        return len(self.headroom_bytes)

    @property
    def pool_bytes(self) -> int:
        """What all pairs share."""
        own = sum(len(self.lossless) * (headroom + self.frame_bytes_max) for headroom in self.headroom_bytes)
        return self.bytes_total - own - self.ports * CLASSES * self.reserved_bytes

    @property
    def first_xoff_bytes(self) -> int:
        """Bytes at which a lossless pair is paused that has the pool to itself."""
        if self.xoff_bytes:
            return self.xoff_bytes
        # s = (pool - s) / 2^shift
        return self.reserved_bytes + self.pool_bytes // (1 + (1 << self.alpha_shift))


class SharedBuffer:
    """The account. A pair is `port * CLASSES + class`; all lists are indexed by it."""

    __slots__ = (
        "_lossless", "_offset", "_pool", "_reserved", "_shift", "_static", "_total_max", "config", "drops",
        "headroom", "headroom_max", "headroom_peak", "peak", "pool_used", "stock", "total", "total_peak", "xoff",
    )  # fmt: skip

    def __init__(self, config: BufferConfig) -> None:
        pairs = config.ports * CLASSES
        self.config = config
        self.stock = [0] * pairs
        """Bytes outside the headroom."""
        self.headroom = [0] * pairs
        self.xoff = [False] * pairs
        """Whether the neighbour is asked to pause."""
        self.peak = [0] * pairs
        """The most bytes, headroom included."""
        self.headroom_peak = [0] * pairs
        self.pool_used = 0
        self.total = 0
        self.total_peak = 0
        self.drops = {reason: [0] * pairs for reason in DROPS}
        self._pool = config.pool_bytes
        self._total_max = config.bytes_total
        self._reserved = config.reserved_bytes
        self._static = max(0, config.xoff_bytes - config.reserved_bytes)
        self._shift = config.alpha_shift
        self._offset = config.xon_offset_bytes
        self._lossless = [pair % CLASSES in config.lossless for pair in range(pairs)]
        self.headroom_max = [config.headroom_bytes[pair // CLASSES] for pair in range(pairs)]
        """What the headroom may hold; a fault makes it less than configured."""

    def admit(self, pair: int, size: int) -> str | None:
        """A packet of `size` bytes came in on this pair: None when it is admitted, XOFF, or one of `DROPS`."""
        xoff, held = self.xoff[pair], self.headroom[pair] + size
        if xoff and held > self.headroom_max[pair]:
            return self._refuse(pair, NO_HEADROOM)
        if self.total + size > self._total_max:
            return self._refuse(pair, FULL)
        crossed = False
        if xoff:
            self.headroom[pair] = held
            if held > self.headroom_peak[pair]:
                self.headroom_peak[pair] = held
        else:
            stock = self.stock[pair]
            over = stock - self._reserved
            grows = size if over >= 0 else max(0, over + size)
            share = over + size if grows else 0
            if self._lossless[pair]:
                self.pool_used += grows
                crossed = self.xoff[pair] = share > 0 and share >= self.threshold
            elif grows and (share > self._shared_threshold or grows > self._pool - self.pool_used):
                return self._refuse(pair, FULL)
            else:
                self.pool_used += grows
            self.stock[pair] = stock + size
        self.total += size
        if self.total > self.total_peak:
            self.total_peak = self.total
        if self.stock[pair] + self.headroom[pair] > self.peak[pair]:
            self.peak[pair] = self.stock[pair] + self.headroom[pair]
        return XOFF if crossed else None

    def release(self, pair: int, size: int) -> bool:
        """`size` admitted bytes of this pair leave the buffer; True: the neighbour may go on (XON)."""
        self.total -= size
        freed = 0
        if self.headroom[pair]:
            freed = min(size, self.headroom[pair])
            self.headroom[pair] -= freed
        stock = self.stock[pair]
        self.stock[pair] = left = stock - size + freed
        assert left >= 0, f"pair {pair}: more bytes left than came in"
        over = stock - self._reserved
        share = left - self._reserved if left > self._reserved else 0
        if over > 0:
            self.pool_used -= over - share
        if not self.xoff[pair] or self.headroom[pair] or (share and share + self._offset > self.threshold):
            return False
        self.xoff[pair] = False
        return True

    def set_headroom(self, port: int, bytes_max: int | None) -> None:
        """Let a port's lossless pairs have so much headroom from now on, at most the configured; None: that."""
        configured = self.config.headroom_bytes[port]
        for pair in range(port * CLASSES, port * CLASSES + CLASSES):
            self.headroom_max[pair] = configured if bytes_max is None else min(bytes_max, configured)

    @property
    def threshold(self) -> int:
        """The share at which a lossless pair is XOFF."""
        left = self._pool - self.pool_used
        if left <= 0:
            return 0
        return self._static or left >> self._shift

    @property
    def _shared_threshold(self) -> int:
        """The largest share of a pair that is not lossless."""
        return max(0, self._pool - self.pool_used) >> (0 if self._static else self._shift)

    def _refuse(self, pair: int, reason: str) -> str:
        self.drops[reason][pair] += 1
        return reason
