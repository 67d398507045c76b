"""RoCE packets as a switch sees them, made by hand: an IPv6 header, a UDP header, a number, and filling.

What stands behind the UDP header no switch reads; only its first eight bytes are a number that tells packets apart.
"""

from struct import Struct

from mrcfabric.naming import nic_address
from mrcfabric.node import Input, Rank
from mrcfabric.wire.dscp import ECT_0

_HEADERS = Struct(">HHHBB16s16sHHHHQ")
DATA_DSCP, NOTICE_DSCP = 26, 48
SIZE = 4096 + 64


def roce(
    source: int, destination: int, sport: int = 0xC000, *, dscp: int = DATA_DSCP, ecn: int = ECT_0, size: int = SIZE,
    number: int = 0, hop_limit: int = 64, next_header: int = 17,
) -> bytearray:  # fmt: skip
    """A packet of `size` bytes from one NIC (by number) to another."""
    packet = bytearray(size)
    head = 6 << 12 | (dscp << 2 | ecn) << 4
    addresses = nic_address(source), nic_address(destination)
    _HEADERS.pack_into(
        packet, 0, head, 0, size - 40, next_header, hop_limit, *addresses, sport, 4791, size - 40, 0, number
    )
    return packet


def number_of(packet: bytes | bytearray | memoryview) -> int:
    """The number that `roce` wrote."""
    return int(_HEADERS.unpack_from(packet)[-1])


def sport_of(packet: bytes | bytearray | memoryview) -> int:
    """The UDP source port."""
    return int(_HEADERS.unpack_from(packet)[7])


def frame(packet: object, at_ns: int = 10, port: int = 0, sequence: int = 1) -> Input:
    """A packet that arrives."""
    return Input(at_ns, Rank.FRAME, port, sequence, packet)
