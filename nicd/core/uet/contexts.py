"""The packet delivery contexts of one NIC by PDCID, those of initiators and of targets, and those that are closing.

Owns the numbers. An initiator tells its own PDCID in its first packet, a target in its first acknowledgement; packets
carry both. A PDCID is not used again before all others were. UEC PDS (PDCID, SYN, CLOSE).
"""

from collections.abc import Iterator
from typing import Final, Protocol

from mrcfabric.errors import RefusedError
from mrcfabric.rng import Rng

PDCID_MAX: Final = 0xFFFF


class Context(Protocol):
    """One end of a context."""

    pdcid: int
    initiates: bool
    """Whether this end sends data on it."""


class Contexts:
    """All contexts of one NIC."""

    __slots__ = ("_by_id", "_next")

    def __init__(self, rng: Rng) -> None:
        self._by_id: dict[int, Context] = {}
        self._next = 1 + rng.below(PDCID_MAX)

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Context]:
        return iter(self._by_id.values())

    def enter(self, context: Context) -> int:
        """Give a context its PDCID. RefusedError when all are in use."""
        if len(self._by_id) >= PDCID_MAX:
            raise RefusedError(f"all {PDCID_MAX} contexts are in use")
        while self._next in self._by_id:
            self._step()
        pdcid = self._next
        self._step()
        self._by_id[pdcid] = context
        context.pdcid = pdcid
        return pdcid

    def _step(self) -> None:
        self._next = self._next + 1 if self._next < PDCID_MAX else 1

    def find(self, pdcid: int) -> Context | None:
        """The context with this number."""
        return self._by_id.get(pdcid)

    def replace(self, pdcid: int, context: Context) -> None:
        """Another end takes the number over."""
        self._by_id[pdcid] = context
        context.pdcid = pdcid

    def leave(self, pdcid: int) -> None:
        """The context is gone."""
        self._by_id.pop(pdcid, None)
