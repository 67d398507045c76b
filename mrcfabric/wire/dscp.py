"""Traffic classes: the six DSCP roles of MRC, the two ECN bits, and both of them on a packet's outer header.

Owns which code point means what and which roles travel in the control class. `mrcfabric.egress` queues by class; the
NIC core reacts to marks and trims.

Sources: MRC 1.0 (trim indication; values are a deployment's), RFC 2474, RFC 3168, RFC 8200 3.
"""

from dataclasses import dataclass, fields
from typing import Final

from mrcfabric.errors import ConfigError
from mrcfabric.units import Buffer

# RFC 3168 5: the ECN field.
NOT_ECT: Final = 0
ECT_1: Final = 1
ECT_0: Final = 2
CE: Final = 3

DSCP_MAX: Final = 63
CONTROL_CLASS: Final = 6
"""Where packets of MRC's control class travel on a port with eight classes."""


@dataclass(frozen=True, slots=True)
class Dscp:
    """The code points of the six roles. Values 0..63, all different; the same on every node of a fabric."""

    trimmable: int = 4
    """Data, may be trimmed."""
    no_trim: int = 0
    """Data that is dropped rather than trimmed; also probes."""
    trimmable_retx: int = 8
    """Data sent again, may be trimmed."""
    trimmed: int = 12
    """The rest of a data packet that a switch inside the fabric trimmed."""
    trimmed_lasthop: int = 16
    """The rest of a data packet that a T0 trimmed towards a NIC: no path is to blame."""
    control: int = 46
    """SACK, NACK, transport acknowledgement, endpoint response."""

    def __post_init__(self) -> None:
        role_of: dict[int, str] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= DSCP_MAX:
                raise ConfigError(f"dscp.{field.name}", f"{value!r} is no code point", f"0 to {DSCP_MAX}")
            if value in role_of:
                raise ConfigError(
                    f"dscp.{field.name}", f"{value} is already {role_of[value]}", "each role needs its own value"
                )
            role_of[value] = field.name

    def role(self, dscp: int) -> str:
        """The role's name, `other` for a code point that has none."""
        for field in fields(self):
            if getattr(self, field.name) == dscp:
                return field.name
        return "other"

    def control_table(self) -> bytes:
        """64 bytes, indexed by DSCP: 1 where packets travel in the control class, 0 in the data class."""
        return _table(self.control, self.trimmed, self.trimmed_lasthop)

    def trimmable_table(self) -> bytes:
        """64 bytes, indexed by DSCP: 1 where a switch may trim."""
        return _table(self.trimmable, self.trimmable_retx)

    def trimmed_table(self) -> bytes:
        """64 bytes, indexed by DSCP: 1 where a packet has been trimmed."""
        return _table(self.trimmed, self.trimmed_lasthop)


def traffic_class_of_dscp(roles: Dscp) -> bytes:
    """64 bytes, indexed by DSCP: the class, 0 to 7, of a port with eight (`mrcfabric.class_egress`).

    MRC's control packets and trimmed packets travel in class 6, all others in the class that the upper three bits of
    their code point name: data of RoCE (26) in class 3, congestion notifications (48) in class 6.
    """
    return bytes(CONTROL_CLASS if control else dscp >> 3 for dscp, control in enumerate(roles.control_table()))


def _table(*members: int) -> bytes:
    return bytes(1 if dscp in members else 0 for dscp in range(DSCP_MAX + 1))


def traffic_class(dscp: int, ecn: int) -> int:
    """The traffic class byte of a code point and an ECN field."""
    return dscp << 2 | ecn


# RFC 8200 3: version 4 bits, traffic class 8 bits, flow label 20 bits.
def traffic_class_of(packet: Buffer) -> int:
    """The traffic class of an IPv6 packet."""
    return (packet[0] & 0x0F) << 4 | packet[1] >> 4


def dscp_of(packet: Buffer) -> int:
    """The DSCP of an IPv6 packet."""
    return (packet[0] & 0x0F) << 2 | packet[1] >> 6


def ecn_of(packet: Buffer) -> int:
    """The ECN field of an IPv6 packet."""
    return packet[1] >> 4 & 3


def set_traffic_class(packet: bytearray | memoryview, value: int) -> None:
    """Overwrite the traffic class of an IPv6 packet in place."""
    packet[0] = packet[0] & 0xF0 | value >> 4
    packet[1] = packet[1] & 0x0F | (value & 0x0F) << 4


def set_dscp(packet: bytearray | memoryview, dscp: int) -> None:
    """Overwrite the DSCP of an IPv6 packet in place; the ECN field stays."""
    packet[0] = packet[0] & 0xF0 | dscp >> 2
    packet[1] = packet[1] & 0x3F | (dscp & 3) << 6


def mark_ce(packet: bytearray | memoryview) -> None:
    """Set "congestion experienced" in place. The caller has made sure that the packet is ECN-capable."""
    # RFC 3168 5
    packet[1] |= 0x30
