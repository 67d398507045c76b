"""The base transport header: InfiniBand's, with MRC's own opcodes and flags.

`mrcfabric.wire.layout` has the opcodes and flag masks.

Sources: IBTA 9.2, MRC 1.0 7.5 (the fifth byte is reserved or variant, therefore masked in the ICRC).
"""

from dataclasses import dataclass
from typing import ClassVar

from mrcfabric.wire.header import Field, Header, reserved
from mrcfabric.wire.options import P_KEY_DEFAULT


@dataclass(slots=True)
class Bth(Header):
    """Base transport header, 12 bytes."""

    NAME: ClassVar[str] = "BTH"
    # MRC 1.0 7.5
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("opcode", 8),
        Field("m", 1),
        Field("se", 1),
        Field("pad_count", 2),
        Field("tver", 4),
        Field("p_key", 16),
        Field("variant", 8),
        Field("dest_qp", 24),
        Field("a", 1),
        Field("r", 1),
        Field("rtx", 1),
        Field("ts", 1),
        reserved(4),
        Field("psn", 24),
    )

    opcode: int
    dest_qp: int
    psn: int
    """The packet's PSN; in a SACK cack_psn, in a NACK nack_psn, in a probe 0, in an endpoint operation a 16-bit request
    id."""
    a: int = 0
    """The sender asks for a SACK."""
    rtx: int = 0
    """A retransmission; in a SACK: it answers a retransmission."""
    ts: int = 0
    """TSETH follows."""
    m: int = 0
    se: int = 0
    pad_count: int = 0
    """Bytes of padding behind the payload, 0..3."""
    tver: int = 0
    p_key: int = P_KEY_DEFAULT
    variant: int = 0
    r: int = 0
