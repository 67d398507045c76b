"""Chooses which packets are followed: some PSNs of one QP, or a share of all packets. Every node chooses alike.

Owns the choice and its spelling as data. A packet carries no mark that it is followed. Every node decides by fields
that do not change on the way. For a share these are the pair of NICs and the PSN: out of every `every` PSNs in a row a
hash picks exactly one. An acknowledgement names PSNs but another QP, so it is chosen together with the packets it
acknowledges; a retransmission is chosen with the original. This replaces a trace id in the link header: nobody has to
write one, and a node that joins late chooses as all others do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from typing import Final

from mrcfabric.errors import ConfigError
from mrcfabric.naming import nic_address
from mrcfabric.wire.layout import PSN_MASK, QPN_MAX

NIC_MAX: Final = 1 << 24
EVERY_MAX: Final = 1 << 20
"""The smallest share is one packet in this many."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One direction of a QP and a range of its PSNs, or one packet in `every` of all. Raises ConfigError.

    With a QP, `every` thins out its range in the same way. The default chooses everything.
    """

    source: int = -1
    """Number of the NIC that sends the data; -1: every NIC, and then the next three fields mean nothing."""
    source_qpn: int = 0
    destination: int = 0
    """Number of the NIC that receives the data."""
    destination_qpn: int = 0
    first: int = 0
    """First PSN, 24 bits; a range wraps around."""
    count: int = PSN_MASK + 1
    """How many PSNs, starting with `first`."""
    every: int = 1
    """Follow one PSN in this many."""

    def __post_init__(self) -> None:
        for name, (least, most) in _BOUNDS.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise ConfigError(f"choice.{name}", f"{value!r} will not do", f"wanted: {least} to {most}")

    def settings(self) -> dict[str, int]:
        """As plain data: the inverse of `from_settings`."""
        return asdict(self)

    @classmethod
    def from_settings(cls, raw: object) -> "Choice":
        """From a table of numbers; missing fields get their defaults. Raises ConfigError, also for an unknown field."""
        if not isinstance(raw, Mapping):
            raise ConfigError("choice", f"{raw!r} is no table of fields")
        known = [field.name for field in fields(cls)]
        for name in raw:
            if name not in known:
                raise ConfigError(f"choice.{name}", "no such field", "known: " + ", ".join(known))
        return cls(**raw)


_BOUNDS: Final = {
    "source": (-1, NIC_MAX),
    "source_qpn": (0, QPN_MAX),
    "destination": (0, NIC_MAX),
    "destination_qpn": (0, QPN_MAX),
    "first": (0, PSN_MASK),
    "count": (1, PSN_MASK + 1),
    "every": (1, EVERY_MAX),
}


class Chooser:
    """Applies a choice to packets. Addresses are the 16 bytes of inner headers."""

    __slots__ = ("_count", "_data", "_every", "_first", "_words", "choice", "ends")

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        self._first, self._count, self._every = choice.first, choice.count, choice.every
        one = choice.source >= 0
        source, destination = nic_address(max(choice.source, 0)), nic_address(choice.destination)
        self._data = (source, destination, choice.destination_qpn) if one else None
        # The same fields of acknowledgements in the reverse direction.
        self._words = (destination, source, choice.source_qpn) if one else None
        self.ends = frozenset((source, destination) if one else ())
        """Destinations of followed packets and of their acknowledgements; empty: any destination."""

    def data(self, source: bytes, destination: bytes, qpn: int, psn: int) -> bool:
        """Whether a data packet is followed."""
        if self._data is not None and (source, destination, qpn) != self._data:
            return False
        if (psn - self._first) & PSN_MASK >= self._count:
            return False
        return self._every == 1 or psn == self._drawn(source, destination, psn // self._every)

    def concerns(self, source: bytes, destination: bytes, qpn: int | None) -> bool:
        """Whether an acknowledgement may name followed packets. The arguments are the acknowledgement's own.

        `qpn` None: nobody knows here which QP it is for.
        """
        words = self._words
        return words is None or (words[:2] == (source, destination) and qpn in (None, words[2]))

    def chosen(self, source: bytes, destination: bytes, first: int, count: int) -> Iterator[int]:
        """The followed PSNs among `count` PSNs from `first` on, of data from `source` to `destination`."""
        # PSNs wrap at 24 bits, and the last block is cut off there.
        over = max(0, first + count - PSN_MASK - 1)
        for start, end in ((first, first + count - over), (0, over)):
            for psn in self._drawn_between(source, destination, start, end):
                if (psn - self._first) & PSN_MASK < self._count:
                    yield psn

    def _drawn_between(self, source: bytes, destination: bytes, start: int, end: int) -> Iterator[int]:
        every = self._every
        if every == 1 or start == end:
            yield from range(start, end)
            return
        for block in range(start // every, (end - 1) // every + 1):
            psn = self._drawn(source, destination, block)
            if start <= psn < end:
                yield psn

    def _drawn(self, source: bytes, destination: bytes, block: int) -> int:
        """The PSN that the hash picks in a block of `every`."""
        place = blake2b(source[8:] + destination[8:] + block.to_bytes(4, "big"), digest_size=4).digest()
        return block * self._every + int.from_bytes(place, "big") % self._every
