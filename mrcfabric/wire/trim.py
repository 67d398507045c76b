"""Trimming: cuts a packet that found no room.

`mrcfabric.egress` decides when and where a switch trims; the NIC core answers a trimmed packet.

Source: MRC 1.0 (trim indication): the same packet, cut short, under another DSCP; no header says so, no length is
corrected and no ICRC recomputed.
"""

from typing import Final

from mrcfabric.units import Buffer
from mrcfabric.wire.dscp import set_dscp

TRIM_BYTES_MIN: Final = 128
"""A cut at 128 bytes keeps every header of a data packet, ImmDt included; a shorter one may lose what a receiver needs.
With a segment routing header they take 24 bytes more."""
TRIM_BYTES_DEFAULT: Final = 256


def trim(packet: Buffer, trim_bytes: int, dscp: int) -> bytearray:
    """A new packet: the first `trim_bytes` (counted from the outer IPv6 header) under `dscp`, ECN kept.

    A packet that is shorter stays whole and only gets the new DSCP. The result shares no memory with `packet`, so that
    a small header does not keep a long receive buffer alive.
    """
    cut = bytearray(packet[:trim_bytes])
    set_dscp(cut, dscp)
    return cut
