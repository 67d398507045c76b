"""What a check says when a rule does not hold."""

from mrcfabric.units import Instant


class InvariantError(AssertionError):
    """An invariant is broken: which one, where, when, and how."""

    def __init__(self, invariant: str, node: str, at_ns: Instant, what: str) -> None:
        super().__init__(f"{invariant}: {node} at {at_ns:,} ns: {what}")
        self.invariant = invariant
        self.node = node
        self.at_ns = at_ns
        self.what = what
