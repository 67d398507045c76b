"""Routes that flap get penalties, which fade; above a threshold a route is left out until its penalty has faded.

Owns the arithmetic. A route that is taken back gets 1,000, one whose attributes change 500. What a session that ends
takes with it is not counted: only what neighbours say.

Sources: RFC 2439 4.2 and 4.8 (penalties that fade, suppression and reuse), RFC 7196 (thresholds that leave most routes
alone).
"""

from math import ceil, log2
from typing import Final

from mrcfabric.prefix import Prefix
from mrcfabric.units import NEVER, Instant
from switchd.core.settings_bgp import BgpKnobs

WITHDRAWAL: Final = 1_000
CHANGE: Final = 500


class Dampening:
    """The penalties of one switch."""

    def __init__(self, knobs: BgpKnobs) -> None:
        self._half_life_ns = knobs.bgp_dampening_half_life_ns
        self._reuse = knobs.bgp_dampening_reuse
        self._suppress = knobs.bgp_dampening_suppress
        self.ceiling = knobs.bgp_dampening_reuse * 2 ** (
            knobs.bgp_dampening_max_suppress_ns / knobs.bgp_dampening_half_life_ns
        )
        """A penalty never grows beyond it, so that no route is left out for longer than is set."""
        self._penalties: dict[tuple[int, Prefix], tuple[float, Instant]] = {}
        """Of a route (port, prefix): the penalty, and at which instant it was that."""
        self.damped: dict[tuple[int, Prefix], Instant] = {}
        """Routes that are left out, and until when."""

    def penalty(self, at_ns: Instant, port: int, prefix: Prefix) -> float:
        """The penalty of a route at an instant."""
        value, since_ns = self._penalties.get((port, prefix), (0.0, at_ns))
        return float(value * 2.0 ** ((since_ns - at_ns) / self._half_life_ns))

    def flap(self, at_ns: Instant, port: int, prefix: Prefix, points: int) -> bool:
        """A route has flapped. Whether it is left out from now on, and was not before."""
        value = min(self.penalty(at_ns, port, prefix) + points, self.ceiling)
        self._penalties[port, prefix] = value, at_ns
        known = (port, prefix) in self.damped
        if not known and value <= self._suppress:
            return False
        faded_ns = self._half_life_ns * log2(value / self._reuse)
        self.damped[port, prefix] = at_ns + max(1, ceil(faded_ns))
        return not known

    def reuse(self, at_ns: Instant) -> list[tuple[int, Prefix]]:
        """The routes that are used again from this instant on, in their order."""
        found = sorted(route for route, until_ns in self.damped.items() if until_ns <= at_ns)
        for route in found:
            del self.damped[route]
        self._forget(at_ns)
        return found

    @property
    def next_ns(self) -> Instant:
        """When the next route is used again."""
        return min(self.damped.values(), default=NEVER)

    def _forget(self, at_ns: Instant) -> None:
        """Forget penalties of less than half of what a route is used again with (RFC 2439 4.8.2)."""
        for port, prefix in list(self._penalties):
            if (port, prefix) not in self.damped and self.penalty(at_ns, port, prefix) < self._reuse / 2:
                del self._penalties[port, prefix]
