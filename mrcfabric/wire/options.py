"""The wire's settings: one named choice for each point where public descriptions of MRC disagree.

Every node of a fabric uses the same options. `mrcfabric.wire.dscp` has the code points of the traffic classes.
"""

from dataclasses import dataclass
from typing import Final

from mrcfabric.errors import ConfigError
from mrcfabric.wire.entropy import EvOrder

# RoCEv2 (IBTA A17); MRC 1.0 7.5.5.2 prints 4971, which looks like two digits swapped.
UDP_PORT_ROCE: Final = 4791
UDP_PORT_PRINTED: Final = 4971

P_KEY_DEFAULT: Final = 0xFFFF
HOP_LIMIT_DEFAULT: Final = 64

LMC_MAX: Final = 7
"""InfiniBand: a port has at most 2 to this power LIDs."""

EETH_OP_HIGH: Final = 2
"""The endpoint response's `op` in bits 3:2 of its second byte."""
EETH_OP_LOW: Final = 0
"""`op` in bits 1:0, where the endpoint request has it."""
EETH_OP_TOP: Final = 4
"""`op` in bits 5:4, where one public parser reads it."""
EETH_OP_SHIFTS: Final = (EETH_OP_HIGH, EETH_OP_LOW, EETH_OP_TOP)


@dataclass(frozen=True, slots=True)
class WireOptions:
    """Choices that both ends must share. All have a default; a wrong one is a `ConfigError`."""

    udp_port: int = UDP_PORT_ROCE
    """Destination port of sent packets, 1..65535."""
    udp_ports_accepted: tuple[int, ...] = (UDP_PORT_ROCE, UDP_PORT_PRINTED)
    """Destination ports that a receiver accepts for MRC; includes `udp_port`."""
    ev_order: EvOrder = EvOrder.PORT_LOW
    """Which half of the EV the UDP source port carries."""
    eeth_op_shift: int = EETH_OP_HIGH
    """Position of `op` in the endpoint response's second byte: how many bits are to the right of it, 2, 0 or 4."""
    nack_cc_type: int = 0
    """cc_type of a NACK; public encoders send 0 or 2."""
    p_key: int = P_KEY_DEFAULT
    """Partition key of the BTH, 16 bits."""
    hop_limit: int = HOP_LIMIT_DEFAULT
    """Hop limit both IPv6 headers start with, 1..255."""
    lid_lmc: int = -1
    """InfiniBand: packets begin with an LRH, and a port has 2 to this power LIDs; -1: they begin with IPv6 headers."""

    def __post_init__(self) -> None:
        if not 0 < self.udp_port <= 0xFFFF:
            raise ConfigError("wire.udp_port", f"{self.udp_port} is no UDP port", "1 to 65535")
        if self.udp_port not in self.udp_ports_accepted:
            raise ConfigError("wire.udp_ports_accepted", f"{self.udp_port} is sent but not accepted", "add it")
        if self.eeth_op_shift not in EETH_OP_SHIFTS:
            raise ConfigError("wire.eeth_op_shift", f"{self.eeth_op_shift} is none of its places", "2, 0 or 4")
        if not 0 <= self.nack_cc_type <= 15:
            raise ConfigError("wire.nack_cc_type", f"{self.nack_cc_type} does not fit in 4 bits", "0 to 15")
        if not 0 <= self.p_key <= 0xFFFF:
            raise ConfigError("wire.p_key", f"{self.p_key} does not fit in 16 bits", "0 to 65535")
        if not 0 < self.hop_limit <= 255:
            raise ConfigError("wire.hop_limit", f"{self.hop_limit} is no hop limit", "1 to 255")
        if not -1 <= self.lid_lmc <= LMC_MAX:
            raise ConfigError("wire.lid_lmc", f"{self.lid_lmc} is no LMC", f"0 to {LMC_MAX}, or -1")


DEFAULT_OPTIONS: Final = WireOptions()
