"""Estimates what a node takes of its host: CPU, memory and ports, by its tier.

Pure. Owns the figures. They are means of `make bench` (docs/PERFORMANCE.md) on one machine: good for ratios, but no
promise. They assume that every port is busy both ways at the rate of the fabric, since that decides how fast a loaded
fabric can go. They ignore `link_rates_bps`, which makes too small a difference.
"""

from typing import Final

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.naming import Tier
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, Topology

NIC_PACKET_S: Final = 18e-6
"""CPU of a NIC for each data packet that it sends or receives, with its acknowledgements."""
SWITCH_PACKET_S: Final = 13e-6
"""CPU of a switch for each data packet that it forwards."""
NIC_BYTES: Final = 7_100_000
"""Memory of a NIC's process, without regions of applications."""
SWITCH_BYTES: Final = 6_000_000
SHARED_BYTES: Final = 60_000_000
"""Memory that the processes of one host share."""

TIERS: Final[tuple[Tier, ...]] = ("nic", "t0", "t1")


def data_packet_bytes(topology: Topology) -> int:
    """Size of a full data packet, as it follows the link header."""
    return topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES


def port_packets(topology: Topology) -> float:
    """Data packets per second of fabric time that fill one port, one way."""
    return topology.rate_bps / (8 * (data_packet_bytes(topology) + OVERHEAD_BYTES))


def cpu_s(topology: Topology, tier: Tier) -> float:
    """CPU seconds that a node takes for one second of fabric time with all ports busy."""
    each = 2 * NIC_PACKET_S if tier == "nic" else SWITCH_PACKET_S
    return each * topology.port_count(tier) * port_packets(topology)


def memory_bytes(tier: Tier) -> int:
    """Memory of one node, without what processes share."""
    return NIC_BYTES if tier == "nic" else SWITCH_BYTES


def ports(topology: Topology, tier: Tier) -> int:
    """How many port numbers a node takes on its host: one per cable, and one for its control socket."""
    return topology.port_count(tier) + 1
