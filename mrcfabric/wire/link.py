"""The link header: it precedes each packet on an emulated link, and belongs to the emulation alone.

A datagram segment is this header and then one whole IPv6 packet as a port would see it, or one link control frame. The
header carries the instant at which the last bit reaches the peer, so that real processes can be late in wall time and
exact in fabric time. It is no part of MRC.

     0       8        16         18     19     20        24
    +-------+--------+----------+------+------+---------+----------
    |arrival|sequence|incarnation|version|flags|  tag   | packet ...
    +-------+--------+----------+------+------+---------+----------

`sequence` counts every frame of one link direction from 1, over restarts of the sender. `incarnation` tells restarts
apart. `tag` marks one direction of one link in one launch; it is derived from the launch's secret. So a port never
takes a frame of another fabric for its own. A process that receives the frames of one direction, for instance on the
port of a dead node, cannot send in the other direction.

`flags`: with CONTROL the rest is a link control frame, a whole MAC frame that no queue of packets ever holds
(`mrcfabric.wire.pfc`). A frame with another flag is refused.
"""

import struct
from hashlib import blake2b
from typing import Final

LINK_VERSION: Final = 2
LINK_HEADER: Final = struct.Struct(">QQHBBI")
LINK_HEADER_BYTES: Final = LINK_HEADER.size
CONTROL: Final = 1
"""The flag of a link control frame."""
LINK_STAMP: Final = struct.Struct(">QQQ")
"""The same with all that follows `sequence` as one number, the stamp: what a port compares and packs for each frame."""
assert LINK_STAMP.size == LINK_HEADER_BYTES


def link_stamp(incarnation: int, flags: int, tag: int) -> int:
    """The stamp of frames of this version."""
    return incarnation << 48 | LINK_VERSION << 40 | flags << 32 | tag


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
