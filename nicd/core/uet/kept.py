"""The responses of one context that its target keeps until the initiator clears them.

Owns the table and its bound. A response may be lost like any packet; the request then comes again and is answered by
the same response, whatever has become of memory or message meanwhile. A request says up to which PSN its sender has no
more questions, a CLEAR says so where no request is to be sent. UEC PDS (guaranteed delivery, CLEAR).
"""

from heapq import heappop, heappush
from typing import Final, TypeAlias

Response: TypeAlias = tuple[int, int, int, int, int]
"""Opcode, return code, message id, generation and job, modified length."""
_PRESSING_PARTS: Final = 2
"""From this part of its room on, the table is worth a CLEAR of its own."""


class Kept:
    """Responses by PSN."""

    __slots__ = ("_by_psn", "_heap", "_most", "peak")

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_psn: dict[int, tuple[Response, str]] = {}
        self._heap: list[int] = []
        """Their PSNs, least first."""
        self.peak = 0

    def __len__(self) -> int:
        return len(self._by_psn)

    @property
    def full(self) -> bool:
        """Whether there is no room for another one."""
        return len(self._by_psn) >= self._most

    @property
    def pressing(self) -> bool:
        """Whether the initiator should clear some soon."""
        return len(self._by_psn) * _PRESSING_PARTS >= self._most

    def keep(self, psn: int, response: Response, reason: str = "") -> None:
        """Keep the response to a packet; `reason`: why that was dropped. Only while the table is not `full`."""
        self._by_psn[psn] = (response, reason)
        heappush(self._heap, psn)
        self.peak = max(self.peak, len(self._by_psn))

    def find(self, psn: int) -> tuple[Response, str] | None:
        """The response to a packet, and why it was dropped."""
        return self._by_psn.get(psn)

    def clear(self, last: int) -> None:
        """Nobody asks after PSNs up to `last` any more."""
        heap = self._heap
        while heap and heap[0] <= last:
            del self._by_psn[heappop(heap)]
