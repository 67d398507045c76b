"""The shape of a fabric: names, addresses, uSIDs, cables and static tables of a multi-plane two-tier Clos.

The one place that knows which nodes and cables there are and which uSID, address and number each has
(`mrcfabric.naming` has their spelling and bits). It computes everything when asked and stores nothing per node, so that
the largest fabric costs as little as the smallest. `mrcfabric.paths` maps EVs to paths; `mrcfabric.topology_file` reads
YAML; the cores give the `nic` and `switch` settings their meaning (composed in `orchestrator.planning.plan`).

Cabling: NIC i has one port per plane; in every plane it hangs on T0 number i // nics_per_t0, at down-link
i % nics_per_t0. Every T0 has one up-link to each T1 of its plane. Planes never meet.

MRC 1.0 5 (routing), RFC 9800 4 (NEXT-C-SID), RFC 8986.
"""

import dataclasses
import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from mrcfabric import naming
from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.errors import ConfigError
from mrcfabric.latency import delay_ns
from mrcfabric.naming import (
    USID_BLOCK_DEFAULT,
    USID_TIER_DESTINATION,
    USID_TIER_T0,
    USID_TIER_T1,
    NodeId,
    Tier,
    nic_name,
    parse_name,
    shown,
    t0_name,
    t1_name,
    usid_of,
)
from mrcfabric.topology_check import check
from mrcfabric.units import bdp_bytes, serialization_ns
from mrcfabric.wire import layout

Setting: TypeAlias = int | float | str | bool

DATA_PACKET_EXTRA_BYTES: Final = (
    layout.EXTENSION_OFFSET + layout.METH_SIZE + layout.TSETH_SIZE + layout.RETH_SIZE + layout.ICRC_SIZE
)
"""Bytes of a full WRITE packet with a time stamp beside its payload."""
SACK_PACKET_BYTES: Final = layout.EXTENSION_OFFSET + layout.SETH_SIZE + layout.ICRC_SIZE


class PortLink(NamedTuple):
    """One port of a node and the cable in it."""

    port: int
    """0-based. NIC: the plane. T0: down-links, then up-links. T1: the T0's number."""
    peer: str
    peer_port: int
    link: str
    rate_bps: int
    delay_ns: int
    """From the last bit on the wire until the peer has the packet, including the latency of the nodes."""
    towards: Tier
    """The kind of node at the other end."""
    incoming_delay_ns: int
    """The same delay in the other direction, from the peer."""


class Link(NamedTuple):
    """One cable, lower tier first."""

    name: str
    plane: int
    a: str
    a_port: int
    b: str
    b_port: int


@dataclass(frozen=True, slots=True)
class Topology:
    """A fabric's sizes, figures and settings. Checks itself; see the module text for the cabling."""

    name: str = "fabric"
    """Names the run folder and the metrics label: lower-case letters, digits, hyphens; at most 32."""
    planes: int = 8
    t0_per_plane: int = 2
    t1_per_plane: int = 4
    nics_per_t0: int = 4
    rate_bps: int = 100_000_000_000
    """Rate of every port in both directions, except those in `link_rates_bps`."""
    link_delay_ns: int = 1000
    """Delay of every link, one way, at least 100. It includes the latency of the receiving switch, unless `latency`
    gives one."""
    latency: Mapping[str, int] = field(default_factory=dict)
    """Delays that nodes add to the links they receive from and send into, by name: see `mrcfabric.latency`."""
    mtu_bytes: int = 4096
    """Largest payload of one packet (the PMTU of InfiniBand: headers not counted)."""
    # MRC 1.0 6.2: 128-256 in all is usual; equal numbers in every plane.
    evs_per_qp: int = 128
    """EVs in use per QP, a multiple of the planes."""
    reserve_evs_per_qp: int = 32
    """EVs per QP that wait to replace a bad one, a multiple of the planes."""
    dilation: float | Literal["auto"] = "auto"
    """Wall time over fabric time, as the fastest pace asked for; `auto` lets the machine decide."""
    seed: str = "mrcfabric"
    """Every random choice in the fabric is seeded with this."""
    usid_block: int = USID_BLOCK_DEFAULT
    """The 32 bits in front of every uSID."""
    nic: Mapping[str, Setting] = field(default_factory=dict)
    """Settings of every NIC that differ from their defaults, by name, unchecked."""
    switch: Mapping[str, Setting] = field(default_factory=dict)
    """Settings of every switch that differ from their defaults, by name, unchecked."""
    wire: Mapping[str, Setting] = field(default_factory=dict)
    """Choices of the wire that differ from their defaults, by name, unchecked: `mrcfabric.wire_settings`."""
    dscp: Mapping[str, Setting] = field(default_factory=dict)
    """Code points of traffic classes that differ from their defaults, by role, unchecked."""
    system: str = ""
    """The bundle of settings that lies beneath those of the four tables above, by name; empty: none. It says where they
    come from, and changes nothing by itself."""
    link_rates_bps: Mapping[str, int] = field(default_factory=dict)
    """Cables with another rate than the rest, by name, both ways: a lane that is down, a port that came up too slow. No
    node is told: base RTT, thresholds and windows are computed from `rate_bps`."""

    def __post_init__(self) -> None:
        """Raises ConfigError, which names the field, for the first wrong value."""
        check(self)

    @classmethod
    def demo(cls) -> "Topology":
        """8 planes of 2 T0s and 4 T1s, 8 NICs: 56 nodes, the fabric of the demonstration."""
        return cls(name="demo")

    # ---- sizes -------------------------------------------------------------------------------------------------

    @property
    def nics(self) -> int:
        return self.t0_per_plane * self.nics_per_t0

    @property
    def switches_per_plane(self) -> int:
        return self.t0_per_plane + self.t1_per_plane

    @property
    def switches(self) -> int:
        return self.planes * self.switches_per_plane

    @property
    def nodes(self) -> int:
        return self.nics + self.switches

    @property
    def link_count(self) -> int:
        return self.planes * (self.nics + self.t0_per_plane * self.t1_per_plane)

    @property
    def paths_per_pair(self) -> int:
        """Paths between two NICs on different T0s."""
        return self.planes * self.t1_per_plane

    @property
    def system_name(self) -> str:
        """What reports call the system: the bundle, or without one the transport of the NICs."""
        return self.system or str(self.nic.get("transport", "mrc"))

    # ---- names and numbers -------------------------------------------------------------------------------------

    def nic_names(self) -> Iterator[str]:
        return map(nic_name, range(self.nics))

    def switch_names(self) -> Iterator[str]:
        """Plane by plane, T0s before T1s: in the order of `node_index`."""
        return map(self.node_name, range(self.nics, self.nodes))

    def node_names(self) -> Iterator[str]:
        """Every node, in the order of `node_index`."""
        return map(self.node_name, range(self.nodes))

    def node_name(self, number: int) -> str:
        """The name of node `number`, 0 <= number < nodes: NICs, then per plane T0s, then T1s."""
        assert 0 <= number < self.nodes
        if number < self.nics:
            return nic_name(number)
        plane, within = divmod(number - self.nics, self.switches_per_plane)
        if within < self.t0_per_plane:
            return t0_name(plane, within)
        return t1_name(plane, within - self.t0_per_plane)

    def tier_of(self, number: int) -> Tier:
        """The kind of node number `number`, 0 <= number < nodes."""
        if number < self.nics:
            return "nic"
        return "t0" if (number - self.nics) % self.switches_per_plane < self.t0_per_plane else "t1"

    def node_index(self, name: str) -> int:
        """The dense number of a node, the inverse of `node_name`. ConfigError when there is no such node."""
        tier, plane, index = self.parse_node(name)
        if tier == "nic":
            return index
        first = self.nics + plane * self.switches_per_plane
        return first + index + (self.t0_per_plane if tier == "t1" else 0)

    def nic_index(self, name: str) -> int:
        """The number of a NIC. ConfigError when no NIC has this name."""
        node = self.parse_node(name)
        if node.tier != "nic":
            raise ConfigError(shown(name), "is a switch where a NIC is wanted", f"NICs are {self._nic_span()}")
        return node.number

    def find_node(self, name: str) -> NodeId | None:
        """The node that a name means, or None when this fabric has no such node. Only the exact spelling counts."""
        node = parse_name(name)
        if node is None:
            return None
        if node.tier == "nic":
            return node if node.number < self.nics else None
        size = self.t0_per_plane if node.tier == "t0" else self.t1_per_plane
        return node if node.plane < self.planes and node.number < size else None

    def parse_node(self, name: str) -> NodeId:
        """The node that a name means. ConfigError with the nearest match when there is no such node."""
        node = self.find_node(name)
        if node is None:
            nearest = self.nearest(name)
            hint = f"nearest is {nearest}" if nearest else f"nodes are {self._nic_span()} and e.g. p0-t0-0, p0-t1-0"
            raise ConfigError(shown(name), f"no such node in fabric {self.name}", hint)
        return node

    def parse_link(self, name: str) -> Link:
        """The link between two neighbours, named in either order. ConfigError when there is none."""
        ends = name.split("~")
        if len(ends) != 2:
            raise ConfigError(shown(name), "is no link name", "two node names with ~ between, as h000~p0-t0-0")
        known = [end for end in ends if self.find_node(end)]
        for end in known:
            other = ends[1] if end == ends[0] else ends[0]
            for port in self._ports_towards(end, other):
                return self._link(end, port)
        if not known:
            self.parse_node(ends[0])
        self.parse_node(ends[1] if known[0] == ends[0] else ends[0])
        there = [port.link for end in ends for port in self.ports(end)]
        nearest = difflib.get_close_matches(name, there, n=1, cutoff=0.0)[0]
        raise ConfigError(shown(name), f"no such link in fabric {self.name}", f"nearest is {nearest}")

    def nearest(self, name: str) -> str:
        """The name of an existing node that is likely meant, or "" when none is close."""
        numbers = [int(text) for text in re.findall(r"\d{1,9}", name)]
        if len(numbers) == 1 and re.fullmatch("(h|nic|host|node)?[-_ ]?[0-9]+", name, re.IGNORECASE):
            return nic_name(min(numbers[0], self.nics - 1))
        if len(numbers) >= 2 and re.match("p[0-9]", name):
            plane = min(numbers[0], self.planes - 1)
            if len(numbers) >= 3 and numbers[1] >= 1:
                return t1_name(plane, min(numbers[-1], self.t1_per_plane - 1))
            return t0_name(plane, min(numbers[-1], self.t0_per_plane - 1))
        return ""

    # ---- cables ------------------------------------------------------------------------------------------------

    def ports(self, name: str) -> list[PortLink]:
        """Every port of a node, by number. ConfigError when there is no such node."""
        node = self.parse_node(name)
        return [self._port(node, port) for port in range(self.port_count(node.tier))]

    def port_count(self, tier: Tier) -> int:
        if tier == "nic":
            return self.planes
        return self.t0_per_plane if tier == "t1" else self.nics_per_t0 + self.t1_per_plane

    def links(self) -> Iterator[Link]:
        """Every cable once: NIC to T0 in NIC order, then T0 to T1 in plane order."""
        for nic in range(self.nics):
            for plane in range(self.planes):
                yield self._link(nic_name(nic), plane)
        for plane in range(self.planes):
            for t0 in range(self.t0_per_plane):
                for t1 in range(self.t1_per_plane):
                    yield self._link(t0_name(plane, t0), self.nics_per_t0 + t1)

    def _port(self, node: NodeId, port: int) -> PortLink:
        tier, plane, index = node
        towards: Tier = "t0"
        if tier == "nic":
            me, peer = nic_name(index), t0_name(port, index // self.nics_per_t0)
            peer_port, link = index % self.nics_per_t0, f"{me}~{peer}"
        elif tier == "t1":
            me, peer = t1_name(plane, index), t0_name(plane, port)
            peer_port, link = self.nics_per_t0 + index, f"{peer}~{me}"
        elif port < self.nics_per_t0:
            me, peer = t0_name(plane, index), nic_name(index * self.nics_per_t0 + port)
            peer_port, link, towards = plane, f"{peer}~{me}", "nic"
        else:
            me, peer = t0_name(plane, index), t1_name(plane, port - self.nics_per_t0)
            peer_port, link, towards = index, f"{me}~{peer}", "t1"
        rate_bps = self.link_rates_bps.get(link, self.rate_bps)
        there, back = self._delay_ns(tier, towards), self._delay_ns(towards, tier)
        return PortLink(port, peer, peer_port, link, rate_bps, there, towards, back)

    def _delay_ns(self, sender: Tier, receiver: Tier) -> int:
        """The delay of a link from one kind of node to another."""
        return self.link_delay_ns + delay_ns(self.latency, sender, receiver)

    @property
    def link_delay_ns_max(self) -> int:
        """The delay of the slowest link, latency of its nodes included; `link_delay_ns` is the least possible one."""
        ways: tuple[tuple[Tier, Tier], ...] = (("nic", "t0"), ("t0", "t1"), ("t1", "t0"), ("t0", "nic"))
        return max(self._delay_ns(*way) for way in ways)

    def _ports_towards(self, name: str, peer: str) -> list[int]:
        return [link.port for link in self.ports(name) if link.peer == peer]

    def _link(self, name: str, port: int) -> Link:
        node = self.parse_node(name)
        end = self._port(node, port)
        plane = port if node.tier == "nic" else node.plane
        if end.link.startswith(f"{name}~"):
            return Link(end.link, plane, name, port, end.peer, end.peer_port)
        return Link(end.link, plane, end.peer, end.peer_port, name, port)

    def _nic_span(self) -> str:
        return f"{nic_name(0)}..{nic_name(self.nics - 1)}"

    # ---- addresses, uSIDs, tables ------------------------------------------------------------------------------

    def nic_address(self, index: int) -> bytes:
        """The inner IPv6 address of a NIC, 16 bytes."""
        return naming.nic_address(index)

    def nic_of_address(self, address: bytes) -> int | None:
        """The NIC that owns a 16-byte address, or None."""
        index = naming.nic_of_address(address)
        return index if index is not None and index < self.nics else None

    def own_usid(self, switch: str) -> int:
        """The uSID a switch answers to. ConfigError for a NIC: NICs have none."""
        tier, plane, index = self.parse_node(switch)
        if tier == "nic":
            raise ConfigError(switch, "is a NIC where a switch is wanted")
        return usid_of(USID_TIER_T0 if tier == "t0" else USID_TIER_T1, plane, index)

    def fib(self, switch: str) -> dict[int, int]:
        """Next uSID -> egress port of a switch; it never changes.

        A T0 knows its own down-links and the T1s of its plane, a T1 the T0s of its plane.
        """
        tier, plane, _ = self.parse_node(switch)
        if tier == "t1":
            return {usid_of(USID_TIER_T0, plane, port): port for port in range(self.t0_per_plane)}
        if tier == "nic":
            raise ConfigError(switch, "is a NIC where a switch is wanted")
        fib = {usid_of(USID_TIER_DESTINATION, plane, port): port for port in range(self.nics_per_t0)}
        for t1 in range(self.t1_per_plane):
            fib[usid_of(USID_TIER_T1, plane, t1)] = self.nics_per_t0 + t1
        return fib

    # ---- figures -----------------------------------------------------------------------------------------------

    def base_rtt_ns(self, same_t0: bool = False) -> int:
        """Unloaded round trip of one full data packet and its SACK, store and forward, both ways."""
        links = 2 if same_t0 else 4
        data = serialization_ns(self.mtu_bytes + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES, self.rate_bps)
        sack = serialization_ns(SACK_PACKET_BYTES + OVERHEAD_BYTES, self.rate_bps)
        ends = self._delay_ns("nic", "t0") + self._delay_ns("t0", "nic")
        middle = 0 if same_t0 else self._delay_ns("t0", "t1") + self._delay_ns("t1", "t0")
        return links * (data + sack) + 2 * (ends + middle)

    @property
    def plane_bdp_bytes(self) -> int:
        """What one port has in flight during the longest base RTT; thresholds of switches are shares of it."""
        return bdp_bytes(self.rate_bps, self.base_rtt_ns())

    @property
    def nic_bdp_bytes(self) -> int:
        return self.planes * self.plane_bdp_bytes

    # ---- as data -----------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `Topology.from_dict` takes it back. Without `system` where there is none."""
        names = (item.name for item in dataclasses.fields(self) if item.name != "system" or self.system)
        values = ((name, getattr(self, name)) for name in names)
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "Topology":
        """A topology from plain data. ConfigError for unknown keys and bad values."""
        for key in raw:
            if key not in cls.__dataclass_fields__:
                raise ConfigError(f"topology.{key}", "no such setting")
        return cls(**raw)

    def digest(self) -> str:
        """A short hash of all settings: equal if and only if the topologies are."""
        text = json.dumps(self.to_dict(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
