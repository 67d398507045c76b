"""What one neighbour has been told, and what it is to be told next.

Owns the difference between the two, and how it is packed into messages: one message holds prefixes with the same
attributes, and what was offered and taken back in between is never said. `router` decides when.

RFC 4271 9.2, 3.2 (Adj-RIB-Out).
"""

from typing import NamedTuple

from mrcfabric.prefix import Prefix
from mrcfabric.wire import bgp_update
from mrcfabric.wire.bgp_update import Attributes


class Offer(NamedTuple):
    """What a neighbour is told of a prefix."""

    as_path: tuple[int, ...]
    origin: int
    communities: tuple[int, ...]


class Outbound:
    """What one neighbour is told."""

    def __init__(self, next_hop: bytes) -> None:
        self.told: dict[Prefix, Offer] = {}
        self.withdrawals = 0
        """Prefixes that were taken back, over all sessions."""
        self.end_of_rib = False
        """The neighbour waits to hear that its first table is whole."""
        self._pending: dict[Prefix, Offer | None] = {}
        self._next_hop = next_hop

    def forget(self) -> None:
        """The session has ended: the neighbour knows nothing any more."""
        self.told.clear()
        self._pending.clear()
        self.end_of_rib = False

    def offer(self, prefix: Prefix, offer: Offer | None) -> None:
        """From now on the neighbour is to know this of a prefix; None: nothing."""
        if self.told.get(prefix) == offer:
            self._pending.pop(prefix, None)
        else:
            self._pending[prefix] = offer

    @property
    def waiting(self) -> bool:
        """Whether there is something to say."""
        return bool(self._pending) or self.end_of_rib

    def take(self, held: frozenset[Prefix] | set[Prefix] = frozenset()) -> list[bytes]:
        """The messages that say all that is to be said, but nothing new of prefixes that are `held` back."""
        withdrawn: list[Prefix] = []
        by_offer: dict[Offer, list[Prefix]] = {}
        left: dict[Prefix, Offer | None] = {}
        for prefix, offer in sorted(self._pending.items(), key=lambda item: item[0]):
            if offer is None:
                withdrawn.append(prefix)
                self.told.pop(prefix, None)
            elif prefix in held:
                left[prefix] = offer
            else:
                by_offer.setdefault(offer, []).append(prefix)
                self.told[prefix] = offer
        self._pending = left
        self.withdrawals += len(withdrawn)
        messages = list(bgp_update.withdrawals(withdrawn))
        for (as_path, origin, communities), prefixes in by_offer.items():
            messages += bgp_update.announcements(Attributes(as_path, self._next_hop, origin, communities), prefixes)
        if self.end_of_rib and not left:
            self.end_of_rib = False
            messages.append(bgp_update.end_of_rib())
        return messages
