"""The ways from a NIC back to itself: out to its T0, or through its T0 to a T1, and home the same way.

Owns which such ways there are, their numbers, their EVs and outer addresses, and which NICs test which of them in which
round. No node answers a packet on one of these ways: switches shift uSIDs as for any other packet. `mrcfabric.topology`
knows where the nodes are; the NIC core sends the packets, and core and orchestrator judge the results.

Way number `plane * (t1s + 1)` turns round at the plane's T0, the next `t1s` numbers at its T1s in turn. A packet goes
up and down the same way: it crosses the NIC-T0 link in both directions, and with a T1 the T0-T1 link too. The numbers
beyond those are the loops: up through one T1 to another T0, and home through another T1. A loop fills the container's
six uSIDs and crosses four T0-T1 links in one direction each; it shows in which direction a fault is.

arXiv 2605.04333 8 (probes addressed back to the sender); RFC 9800 4.1.1.
"""

from mrcfabric.naming import USID_TIER_DESTINATION, USID_TIER_T0, USID_TIER_T1, usid_of
from mrcfabric.paths import ev_of
from mrcfabric.topology import Topology
from mrcfabric.wire import usid


class TurnTable:
    """The ways back to one NIC."""

    __slots__ = ("_block", "_down", "_sharing", "_t0", "numbers", "planes", "t0s", "t1s", "ways")

    def __init__(self, topology: Topology, nic: int) -> None:
        assert 0 <= nic < topology.nics
        self._t0, self._down = divmod(nic, topology.nics_per_t0)
        self._sharing = topology.nics_per_t0
        self._block = topology.usid_block
        self.planes = topology.planes
        self.t1s = topology.t1_per_plane
        """T1s per plane."""
        self.ways = self.planes * (self.t1s + 1)
        """How many ways turn round and come home as they went; their numbers are below this."""
        self.t0s = topology.t0_per_plane
        self.numbers = self.ways + self.planes * self.t1s * self.t0s * self.t1s
        """How many ways there are, loops included; every number is below this."""

    def number(self, plane: int, t1: int | None) -> int:
        """The number of a way, by its plane and the T1 where it turns round; None: at the T0."""
        return plane * (self.t1s + 1) + (0 if t1 is None else t1 + 1)

    def loop_number(self, plane: int, t1_out: int, t0: int, t1_home: int) -> int:
        """The number of the loop out through `t1_out` to T0 number `t0`, and home through `t1_home`."""
        return self.ways + ((plane * self.t1s + t1_out) * self.t0s + t0) * self.t1s + t1_home

    def loop(self, way: int) -> tuple[int, int, int, int] | None:
        """(plane, T1 out, T0, T1 home) of a loop; None for a way that turns round."""
        if way < self.ways:
            return None
        rest, t1_home = divmod(way - self.ways, self.t1s)
        rest, t0 = divmod(rest, self.t0s)
        plane, t1_out = divmod(rest, self.t1s)
        return plane, t1_out, t0, t1_home

    def plane(self, way: int) -> int:
        """The plane, and so the NIC's port, of a way."""
        loop = self.loop(way)
        return way // (self.t1s + 1) if loop is None else loop[0]

    def t1(self, way: int) -> int | None:
        """The T1 where a way turns round, or through which a loop goes out; None: the way turns round at the T0."""
        loop = self.loop(way)
        if loop is not None:
            return loop[1]
        place = way % (self.t1s + 1)
        return place - 1 if place else None

    def ev(self, way: int) -> int:
        """The EV that a packet on this way carries: plane and up-link as in any EV, no draw."""
        return ev_of(self.plane(way), self.t1(way) or 0, 0)

    def outer(self, way: int) -> bytes:
        """The outer destination address of a way, 16 bytes: T0, down-link; T0, T1, T0, down-link; or a whole loop."""
        plane, t1 = self.plane(way), self.t1(way)
        near = usid_of(USID_TIER_T0, plane, self._t0)
        last = usid_of(USID_TIER_DESTINATION, plane, self._down)
        if t1 is None:
            return usid.build(self._block, (near, last))
        loop = self.loop(way)
        if loop is not None:
            _, _, t0, t1_home = loop
            far = usid_of(USID_TIER_T0, plane, t0), usid_of(USID_TIER_T1, plane, t1_home)
            return usid.build(self._block, (near, usid_of(USID_TIER_T1, plane, t1), *far, near, last))
        return usid.build(self._block, (near, usid_of(USID_TIER_T1, plane, t1), near, last))

    def of_round(self, number: int, testers: int) -> list[int]:
        """The ways this NIC tests in round `number`: those to its T0s, and its share of those through T1s.

        In every round `testers` of the NICs below a T0 (or all, when there are fewer) test each T1 of each plane.
        Within as many rounds as a T0 has NICs each NIC tests each T1 equally often. The order goes from plane to plane,
        so that consecutive probes leave by different ports.
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
