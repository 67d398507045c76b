"""From a topology to the routing core of one switch: AS numbers, neighbours, prefixes, the table of a warm start.

`switchd.compose` makes everything else. Each plane is a fabric of its own, so numbers of AS may repeat from plane to
plane; they do not, and captures of several planes can be told apart.

RFC 7938 5.2.1: one AS number for each T0, one for all T1s of a plane, so that no path goes down and up again. RFC 6996:
private numbers of four bytes.
"""

from dataclasses import fields, replace

from mrcfabric.naming import nic_address, port_mac, t0_name
from mrcfabric.prefix import BITS, Prefix, cover
from mrcfabric.topology import Topology
from mrcfabric.wire.local import link_local
from switchd.core.forwarding.ecmp import EcmpConfig
from switchd.core.routing.config import Neighbor, RoutingConfig, RoutingKnobs
from switchd.core.settings import SwitchSettings

FIRST_ASN = 4_200_000_000
_PLANE_SHIFT = 12
_MSS = 1_220
_HEADERS_BYTES = 60
"""IPv6 and TCP."""


def asn_of(topology: Topology, name: str) -> int:
    """The AS number of a switch: FIRST_ASN and 4,096 per plane, then 0 for T1s and 1 on for T0s."""
    tier, plane, index = topology.parse_node(name)
    return FIRST_ASN + (plane << _PLANE_SHIFT) + (index + 1 if tier == "t0" else 0)


def router_id_of(topology: Topology, name: str) -> int:
    """The BGP identifier of a switch: 10.plane.tier and half of the index, in dotted form."""
    tier, plane, index = topology.parse_node(name)
    return 10 << 24 | plane << 16 | (tier == "t1") << 15 | index + 1


def rack_prefixes(topology: Topology, index: int, each: bool) -> list[Prefix]:
    """What T0 number `index` tells of: the NICs below it, each by itself or in as few prefixes as will do."""
    first = index * topology.nics_per_t0
    if each:
        return [Prefix(_address(nic), BITS) for nic in range(first, first + topology.nics_per_t0)]
    return cover(_address(first), _address(first + topology.nics_per_t0 - 1))


def routing_config(topology: Topology, name: str, settings: SwitchSettings) -> RoutingConfig:
    """The routing core of switch `name`."""
    tier, _, index = topology.parse_node(name)
    ends = [end for end in topology.ports(name) if end.towards != "nic"]
    neighbors = tuple(
        Neighbor(
            end.port, end.peer, asn_of(topology, end.peer), link_local(port_mac(end.peer, end.peer_port)),
            link_local(port_mac(name, end.port)), router_id_of(topology, end.peer), dials=tier == "t0",
        )
        for end in ends
    )  # fmt: skip
    each = settings.bgp_prefixes == "nic"
    own: dict[Prefix, int] = {}
    if tier == "t0":
        own = {prefix: at if each else -1 for at, prefix in enumerate(rack_prefixes(topology, index, each))}
    warm = {one.port: _told_by(topology, one, index, each) for one in neighbors if settings.bgp_start == "warm"}
    knobs = RoutingKnobs(**{item.name: getattr(settings, item.name) for item in fields(RoutingKnobs)})
    return RoutingConfig(
        name, asn_of(topology, name), router_id_of(topology, name), neighbors, own, warm, knobs,
        min(_MSS, topology.mtu_bytes - _HEADERS_BYTES), topology.seed,
    )  # fmt: skip


def _told_by(topology: Topology, neighbor: Neighbor, index: int, each: bool) -> dict[Prefix, tuple[int, ...]]:
    """What a neighbour tells switch number `index` of its tier, and by which path, in a fabric without faults."""
    tier, plane, number = topology.parse_node(neighbor.name)
    if tier == "t0":
        return dict.fromkeys(rack_prefixes(topology, number, each), (neighbor.asn,))
    found: dict[Prefix, tuple[int, ...]] = {}
    for rack in range(topology.t0_per_plane):
        if rack != index:
            path = neighbor.asn, asn_of(topology, t0_name(plane, rack))
            found |= dict.fromkeys(rack_prefixes(topology, rack, each), path)
    return found


def learned_config(topology: Topology, name: str, static: EcmpConfig) -> EcmpConfig:
    """What of a static table stays: a T0 knows the NICs at its own ports, a T1 nothing."""
    if topology.parse_node(name).tier == "t0":
        return replace(static, failover_ns=-1)
    return replace(static, down=(), up=(*static.down, *static.up), nics_per_port=1, failover_ns=-1)


def _address(nic: int) -> int:
    return int.from_bytes(nic_address(nic), "big")
