"""How long frames on the wire between hosts are, and which payload fits which MTU. Pure."""

from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES
from mrcfabric.topology_check import MTU_CHOICES
from mrcfabric.udp import IP_BYTES
from mrcfabric.wire.layout import IMM_SIZE, UDP_SIZE
from mrcfabric.wire.link import LINK_HEADER_BYTES


def frame_bytes(payload_bytes: int, ip_version: int) -> int:
    """The largest IP packet between hosts: a last packet with immediate data, behind the headers of the underlay."""
    packet = payload_bytes + DATA_PACKET_EXTRA_BYTES + IMM_SIZE
    return IP_BYTES[ip_version] + UDP_SIZE + LINK_HEADER_BYTES + packet


def payload_within(mtu: int, ip_version: int) -> int | None:
    """The largest `mtu_bytes` of a topology whose frames fit an MTU of the underlay; None: there is none."""
    return max((size for size in MTU_CHOICES if frame_bytes(size, ip_version) <= mtu), default=None)


def what_fits(mtu: int, ip_version: int) -> str:
    """The result of `payload_within` in words."""
    payload = payload_within(mtu, ip_version)
    return f"mtu_bytes: {payload} fits" if payload else "no mtu_bytes is small enough"
