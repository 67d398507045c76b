"""The link header: what stands before each packet on an emulated link, and belongs to the emulation alone.

A datagram segment is this header and then one whole IPv6 packet as a port would see it. The header carries the
instant at which the last bit reaches the peer, so that real processes can be late in wall time and exact in fabric
time. It is no part of MRC.

     0       8        16         18     19     20        24
    +-------+--------+----------+------+------+---------+----------
    |arrival|sequence|incarnation|version|flags|  tag   | packet ...
    +-------+--------+----------+------+------+---------+----------

`sequence` counts every frame of one link direction from 1, over restarts of the sender. `incarnation` tells restarts
apart. `tag` is derived from the fabric's name and epoch: a frame of another fabric is never taken for one of ours.
"""

import struct
from hashlib import blake2b

LINK_VERSION = 1
LINK_HEADER = struct.Struct(">QQHBBI")
LINK_HEADER_BYTES = LINK_HEADER.size


def link_tag(fabric: str, epoch: int) -> int:
    """The 32-bit mark of one launch of one fabric."""
    return int.from_bytes(blake2b(f"{fabric}/{epoch}".encode(), digest_size=4).digest(), "big")
