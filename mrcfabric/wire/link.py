"""The link header: it precedes each packet on an emulated link, and belongs to the emulation alone.

A datagram segment is this header and then one whole IPv6 packet as a port would see it, or one link control frame. The
header carries the instant at which the last bit reaches the peer, so that real processes can be late in wall time and
exact in fabric time. It is no part of MRC.

     0       8          14     16         18     19     20        24
    +-------+----------+------+----------+------+------+---------+----------
    |arrival| sequence | size |incarnation|version|flags|  tag   | packet ...
    +-------+----------+------+----------+------+------+---------+----------

`sequence` counts every frame of one link direction from 1, over restarts of the sender. `size` is the frame's, in
bytes, this header included: a train of frames of one size is cut by it. `incarnation` tells restarts apart. `tag` marks
one direction of one link in one launch; it is derived from the launch's secret. So a port never takes a frame of
another fabric for its own. A process that receives the frames of one direction, for instance on the port of a dead
node, cannot send in the other direction.

`flags`: with CONTROL the rest is a link control frame, a whole MAC frame that no queue of packets ever holds
(`mrcfabric.wire.pfc`). A frame with another flag is refused.
"""

import struct
from hashlib import blake2b
from typing import Final

LINK_VERSION: Final = 3
LINK_HEADER: Final = struct.Struct(">QQ8s")
"""The header as two numbers, arrival; sequence and size; and all that follows them, the stamp."""
LINK_HEADER_BYTES: Final = LINK_HEADER.size
_STAMP: Final = struct.Struct(">HBBI")
SIZE_BITS: Final = 16
SIZE_AT: Final = 14
CONTROL: Final = 1
"""The flag of a link control frame."""


def link_stamp(incarnation: int, flags: int, tag: int, version: int = LINK_VERSION) -> bytes:
    """The last 8 bytes of a header: the same for all packets that a port sends in one life."""
    return _STAMP.pack(incarnation, version, flags, tag)


def read_stamp(stamp: bytes) -> tuple[int, int, int, int]:
    """(incarnation, version, flags, tag) of a stamp."""
    incarnation, version, flags, tag = _STAMP.unpack(stamp)
    return incarnation, version, flags, tag


def link_frame(arrival_ns: int, sequence: int, stamp: bytes, packet: bytes) -> bytes:
    """A whole frame."""
    return LINK_HEADER.pack(arrival_ns, sequence << SIZE_BITS | LINK_HEADER_BYTES + len(packet), stamp) + packet


class ControlFrame(bytes):
    """One link control frame, in a core's inputs and transmits: from the MAC header to the check sequence.

    Drivers set the flag from this type when they send, and make this type from the flag when they receive. A core that
    does not know such frames drops them.
    """

    __slots__ = ()


_PERSON: Final = b"mrcfabric-link"


def link_tag(secret: bytes, fabric: str, epoch: int, node: str, port: int) -> int:
    """The 32-bit tag of all frames that `node` sends on `port` in one launch; `secret` is the launch's."""
    name = f"{fabric}/{epoch}/{node}/{port}".encode()
    return int.from_bytes(blake2b(name, key=secret, digest_size=4, person=_PERSON).digest(), "big")
