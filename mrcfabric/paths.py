"""Which path an EV takes: EV -> ports at both ends, plane, T1 and outer address. Also draws the EVs of a QP.

Owns the bits of an EV, and is the one place that turns an EV into a path. `mrcfabric.topology` knows where the nodes
are, `mrcfabric.wire.usid` lays uSIDs into an address, the wire stripes an EV over flow label and source port, and the
NIC core decides which EV is good.

    bit 31            14 13          3 2     0
       +----------------+-------------+-------+
       |      draw      |   up-link   | plane |
       +----------------+-------------+-------+

The low fourteen bits name the path, as the plane and the T0's up-link do in MRC. The draw bits tell apart EVs that
share a path, so that a QP has 128 to 256 of them in a small fabric too. Every 32-bit value is an EV: plane and up-link
are taken modulo their number, so that no value from outside can be wrong.

MRC 1.0 6 (EV sets), 7.5.5.2 (EV on the wire).
"""

from typing import Final, NamedTuple

from mrcfabric.naming import (
    PLANES_MAX,
    USID_INDEX_MAX,
    USID_TIER_DESTINATION,
    USID_TIER_T0,
    USID_TIER_T1,
    nic_address,
    nic_name,
    usid_of,
)
from mrcfabric.plane_ports import PlanePorts
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from mrcfabric.wire import usid

EV_PLANE_MASK: Final = PLANES_MAX - 1
EV_UPLINK_SHIFT: Final = EV_PLANE_MASK.bit_length()
EV_UPLINK_MASK: Final = USID_INDEX_MAX
EV_DRAW_SHIFT: Final = EV_UPLINK_SHIFT + EV_UPLINK_MASK.bit_length()
EV_DRAW_BITS: Final = 32 - EV_DRAW_SHIFT
EV_MAX: Final = (1 << 32) - 1
_EV_PATH_MASK: Final = (1 << EV_DRAW_SHIFT) - 1


def ev_of(plane: int, uplink: int, draw: int) -> int:
    """The EV with these three parts."""
    return draw << EV_DRAW_SHIFT | uplink << EV_UPLINK_SHIFT | plane


class Path(NamedTuple):
    """Where the packets of one EV go."""

    port: int
    """The port of ours by which they leave."""
    in_port: int
    """The port of the peer by which they arrive."""
    plane: int
    """The class of the EV: what it shares a window and a reserve with; see `mrcfabric.plane_ports`."""
    number: int
    """The T1 that they go through; 0 between NICs on one T0, whose path has no T1."""
    outer: bytes
    """The outer destination address, 16 bytes: a uSID container as it leaves the NIC."""


class Destination:
    """Another NIC, and the paths to it from one NIC."""

    __slots__ = (
        "_block", "_cache", "_down", "_t0_far", "_t0_near", "address", "paths_per_plane", "planes", "ports",
        "rate_bps", "rates_bps", "same_t0",
    )  # fmt: skip

    def __init__(self, topology: Topology, nic: int, peer: int) -> None:
        self._t0_near = nic // topology.nics_per_t0
        self._t0_far, self._down = divmod(peer, topology.nics_per_t0)
        self._block = topology.usid_block
        # At most one entry per path of the pair and per spelling of it in an EV: the path bits bound it.
        self._cache: dict[int, Path] = {}
        self.address = nic_address(peer)
        """The inner destination address, 16 bytes."""
        self.same_t0 = self._t0_near == self._t0_far
        self.planes = topology.planes
        self.ports = PlanePorts(range(topology.planes), range(topology.planes))
        """The ports of both ends by plane: here port p of every NIC is in plane p."""
        near, far = topology.ports(nic_name(nic)), topology.ports(nic_name(peer))
        ends = zip(self.ports.port, self.ports.in_port, strict=True)
        self.rates_bps = tuple(min(near[port].rate_bps, far[in_port].rate_bps) for port, in_port in ends)
        """The rate per plane: the slower one of the two NICs' ports."""
        self.rate_bps = sum(self.rates_bps)
        """The sum over all planes."""
        self.paths_per_plane = 1 if self.same_t0 else topology.t1_per_plane

    def path(self, ev: int) -> Path:
        """The path of an EV."""
        key = ev & _EV_PATH_MASK
        path = self._cache.get(key)
        if path is None:
            path = self._cache[key] = self._path(ev)
        return path

    def _path(self, ev: int) -> Path:
        plane = (ev & EV_PLANE_MASK) % self.planes
        number = (ev >> EV_UPLINK_SHIFT & EV_UPLINK_MASK) % self.paths_per_plane
        outer = usid.build(self._block, self._usids(plane, number))
        return Path(self.ports.port[plane], self.ports.in_port[plane], plane, number, outer)

    def usids(self, ev: int) -> tuple[int, ...]:
        """The uSIDs of an EV's path: T0, T1, T0, down-link; between NICs on one T0: T0, down-link."""
        path = self.path(ev)
        return self._usids(path.plane, path.number)

    def _usids(self, plane: int, number: int) -> tuple[int, ...]:
        first = usid_of(USID_TIER_T0, plane, self._t0_near)
        last = usid_of(USID_TIER_DESTINATION, plane, self._down)
        if self.same_t0:
            return first, last
        far = usid_of(USID_TIER_T0, plane, self._t0_far)
        return first, usid_of(USID_TIER_T1, plane, number), far, last

    def draw_evs(self, rng: Rng, per_plane_active: int, per_plane_reserve: int) -> tuple[list[int], list[int]]:
        """(active, reserve): distinct random EVs, plane after plane, the same number in every plane.

        Within a plane each T1 is used equally often, give or take one, by active and reserve together and by each
        alone. Which T1s come first is random. Senders do not coordinate.
        """
        # MRC 1.0 6.2: drawn at random among the paths of each plane, the same count in each.
        wanted = per_plane_active + per_plane_reserve
        assert wanted <= 1 << (EV_DRAW_BITS - 1)
        active: list[int] = []
        reserve: list[int] = []
        for plane in range(self.planes):
            uplinks = list(range(self.paths_per_plane))
            rng.shuffle(uplinks)
            evs: dict[int, None] = {}
            while len(evs) < wanted:
                # A repeated EV is useless and is drawn again for the same up-link.
                evs[ev_of(plane, uplinks[len(evs) % len(uplinks)], rng.below(1 << EV_DRAW_BITS))] = None
            active += list(evs)[:per_plane_active]
            reserve += list(evs)[per_plane_active:]
        return active, reserve


class PathTable:
    """The paths out of one NIC: a template per destination, expanded per EV, as a real NIC keeps it."""

    __slots__ = ("_nic", "_topology")

    def __init__(self, topology: Topology, nic: int) -> None:
        assert 0 <= nic < topology.nics
        self._topology = topology
        self._nic = nic

    @property
    def nics(self) -> int:
        """How many NICs the fabric has; peers are numbered below it."""
        return self._topology.nics

    @property
    def ports(self) -> tuple[int, ...]:
        """Plane -> the port of ours by which its packets leave, whichever the peer."""
        return tuple(range(self._topology.planes))

    @property
    def t1_per_plane(self) -> int:
        """How many paths a plane has between NICs of different T0s."""
        return self._topology.t1_per_plane

    def towards(self, peer: int) -> Destination:
        """The paths to NIC number `peer`, 0 <= peer < nics; those to itself turn round at the T0."""
        assert 0 <= peer < self._topology.nics
        return Destination(self._topology, self._nic, peer)
