"""The ways that lead from a NIC back to itself: out to its T0, or through its T0 to a T1, and home the same way.

Owns which such ways there are, their numbers, their EVs and outer addresses, and which NICs test which of them in
which round. Nobody answers a packet on one of these ways: switches shift uSIDs as for any other. Where the nodes are
is `mrcfabric.topology`; what is sent and what is concluded is the NIC core's and the orchestrator's.

Way number `plane * (t1s + 1)` turns round at the plane's T0, the next `t1s` numbers at its T1s in turn. One way up and
the same way down again: a packet on it crosses the NIC-T0 link in both directions, and with a T1 the T0-T1 link too.

arXiv 2605.04333 8 (probes addressed back to the sender); RFC 9800 4.1.1.
"""

from mrcfabric.naming import USID_TIER_DESTINATION, USID_TIER_T0, USID_TIER_T1, usid_of
from mrcfabric.paths import ev_of
from mrcfabric.topology import Topology
from mrcfabric.wire import usid


class TurnTable:
    """The ways back to one NIC."""

    __slots__ = ("_block", "_down", "_sharing", "_t0", "planes", "t1s", "ways")

    def __init__(self, topology: Topology, nic: int) -> None:
        assert 0 <= nic < topology.nics
        self._t0, self._down = divmod(nic, topology.nics_per_t0)
        self._sharing = topology.nics_per_t0
        self._block = topology.usid_block
        self.planes = topology.planes
        self.t1s = topology.t1_per_plane
        """T1s per plane."""
        self.ways = self.planes * (self.t1s + 1)
        """How many ways there are; they are numbered below it."""

    def number(self, plane: int, t1: int | None) -> int:
        """The number of a way, by its plane and the T1 it turns round at; None: at the T0."""
        return plane * (self.t1s + 1) + (0 if t1 is None else t1 + 1)

    def plane(self, way: int) -> int:
        """The plane, and so the NIC's port, of a way."""
        return way // (self.t1s + 1)

    def t1(self, way: int) -> int | None:
        """The T1 a way turns round at; None: it turns round at the T0."""
        place = way % (self.t1s + 1)
        return place - 1 if place else None

    def ev(self, way: int) -> int:
        """The EV that a packet on this way carries: plane and up-link as in any EV, no draw."""
        return ev_of(self.plane(way), self.t1(way) or 0, 0)

    def outer(self, way: int) -> bytes:
        """The outer destination address of a way, 16 bytes: T0, down-link; or T0, T1, T0, down-link."""
        plane, t1 = self.plane(way), self.t1(way)
        near = usid_of(USID_TIER_T0, plane, self._t0)
        last = usid_of(USID_TIER_DESTINATION, plane, self._down)
        if t1 is None:
            return usid.build(self._block, (near, last))
        return usid.build(self._block, (near, usid_of(USID_TIER_T1, plane, t1), near, last))

    def of_round(self, number: int, testers: int) -> list[int]:
        """The ways this NIC tests in round `number`: those to its T0s, and its share of those through T1s.

        In every round each T1 of each plane is tried by `testers` of the NICs below a T0 (all, when there are
        fewer), and within as many rounds as a T0 has NICs each NIC has tried each of them equally often. The order
        goes from plane to plane, so that neighbours in time leave by different ports.
        """
        sharing = self._sharing
        found = [self.number(plane, None) for plane in range(self.planes)]
        for t1 in range(self.t1s):
            found += [
                self.number(plane, t1)
                for plane in range(self.planes)
                if (t1 + plane + self._down + number) % sharing < testers
            ]
        return found
