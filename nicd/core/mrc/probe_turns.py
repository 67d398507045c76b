"""When each peer's reverse paths are looked after next, so that all peers together cost a NIC's links little.

Owns the turns alone. `reverse_set` chooses the path to probe and acts on the answer. A peer has a turn per
refresh time; where more peers send than that allows, turns lie further apart and go round over all of them.

MRC 1.0 leaves open how often; arXiv 2605.04333 section 2 probes once per round trip, and knows one peer.
"""

from mrcfabric.units import Instant


class ProbeTurns:
    """One per NIC."""

    __slots__ = ("_gap_ns", "_last_ns", "_refresh_ns")

    def __init__(self, refresh_ns: int, turns: int) -> None:
        """A turn per peer and `refresh_ns` while peers are no more than `turns`; 0: always."""
        self._refresh_ns = refresh_ns
        self._gap_ns = refresh_ns // turns if turns else 0
        self._last_ns: Instant = 0

    def next(self, now: Instant) -> Instant:
        """A peer has its turn now. Returns when it has the next."""
        self._last_ns = turn_ns = max(now + self._refresh_ns, self._last_ns + self._gap_ns)
        return turn_ns
