"""The three acknowledgements: AETH (transport ACK), SETH with CC_STATE (SACK), NETH (NACK).

A transport ACK says that messages are complete, a SACK which packets have arrived, a NACK that one packet must be sent
again.

Sources: MRC 1.0 7.5; AETH as IBTA 9.3.5; SETH and NETH descend from UEC's ACK_CC and NACK.
"""

from dataclasses import dataclass
from typing import ClassVar

from mrcfabric.wire.header import Field, Header, Kind, reserved
from mrcfabric.wire.layout import SYNDROME_ACK


@dataclass(slots=True)
class Aeth(Header):
    """Transport acknowledgement, 4 bytes."""

    NAME: ClassVar[str] = "AETH"
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("syndrome", 8), Field("msn", 24))

    msn: int
    """Number of completed messages."""
    syndrome: int = SYNDROME_ACK


@dataclass(slots=True)
class Seth(Header):
    """Selective acknowledgement and congestion state, 36 bytes."""

    NAME: ClassVar[str] = "SETH"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("type", 4),
        Field("next", 5),
        Field("m", 2),
        reserved(3),
        Field("pr", 1),
        reserved(1),
        Field("ack_psn_offset", 16, Kind.SIGNED),
        Field("entropy", 32),
        Field("spdcid", 16),
        Field("dpdcid", 16),
        reserved(8),
        Field("cack_psn", 24),
        Field("cc_type", 4),
        Field("cc_flags", 4),
        Field("mpr", 8),
        Field("sack_offset", 16, Kind.SIGNED),
        Field("sack_bitmap", 64),
        Field("tx_timestamp", 16),
        reserved(1),
        Field("ooo_count", 15),
        Field("restore_cwnd", 1),
        Field("rcv_cwnd_pen", 7),
        Field("rcvd_bytes", 24),
    )

    entropy: int
    """EV of the packet that caused this SACK."""
    cack_psn: int
    """Highest PSN received in order."""
    m: int = 0
    """0 nothing, 1 SKIP_ONCE (that packet arrived marked), 2 ALWAYS_SKIP."""
    pr: int = 0
    """1: answers a reliability probe."""
    ack_psn_offset: int = 0
    """Acknowledged PSN less cack_psn; with pr = 1 the probe id, its 16 bits taken as signed."""
    sack_offset: int = 0
    """PSN of bit 0 of the bitmap less cack_psn."""
    sack_bitmap: int = 0
    """Bit i set: PSN base + i has arrived. A clear bit says nothing."""
    mpr: int = 0
    """Receive window in units of 128 PSNs; 0: unchanged."""
    tx_timestamp: int = 0
    """Echoed."""
    ooo_count: int = 0
    """Packets held out of order."""
    restore_cwnd: int = 0
    rcv_cwnd_pen: int = 0
    """Penalty on the window, 0..127."""
    rcvd_bytes: int = 0
    """All bytes received, in units of 256, rounded up."""
    spdcid: int = 0
    dpdcid: int = 0
    type: int = 0
    next: int = 0
    cc_type: int = 0
    cc_flags: int = 0


@dataclass(slots=True)
class Neth(Header):
    """Negative acknowledgement, 20 bytes."""

    NAME: ClassVar[str] = "NETH"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("type", 4),
        Field("next", 5),
        reserved(7),
        Field("nack_reason", 8),
        Field("vendor", 8),
        Field("entropy", 32),
        Field("spdcid", 16),
        Field("dpdcid", 16),
        reserved(8),
        Field("nack_psn", 24),
        Field("cc_type", 4),
        Field("cc_flags", 4),
        reserved(8),
        Field("tx_timestamp", 16),
    )

    nack_reason: int
    entropy: int
    nack_psn: int
    tx_timestamp: int = 0
    spdcid: int = 0
    dpdcid: int = 0
    type: int = 0
    next: int = 0
    vendor: int = 0
    cc_type: int = 0
    cc_flags: int = 0
