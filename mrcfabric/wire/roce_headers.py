"""RoCE's own headers: the BTH as InfiniBand has it, and what stands behind the BTH of an acknowledgement or a CNP.

RETH, ImmDt and AETH are those of MRC (`data_headers`, `ack_headers`), which took them over.

Sources: IBTA 9.2 (BTH), annex A17.9.3 (CNP); IRN (SIGCOMM'18) 5.2 (selective acknowledgements).
"""

from dataclasses import dataclass
from typing import ClassVar

from mrcfabric.wire.header import Field, Header, reserved
from mrcfabric.wire.options import P_KEY_DEFAULT


@dataclass(slots=True)
class RcBth(Header):
    """Base transport header, 12 bytes."""

    NAME: ClassVar[str] = "BTH"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("opcode", 8),
        Field("se", 1),
        Field("m", 1),
        Field("pad_count", 2),
        Field("tver", 4),
        Field("p_key", 16),
        Field("fecn", 1),
        Field("becn", 1),
        reserved(6),
        Field("dest_qp", 24),
        Field("a", 1),
        reserved(7),
        Field("psn", 24),
    )

    opcode: int
    dest_qp: int
    psn: int
    a: int = 0
    """The sender asks for an acknowledgement."""
    se: int = 0
    m: int = 0
    pad_count: int = 0
    """Bytes of padding behind the payload, 0..3."""
    tver: int = 0
    p_key: int = P_KEY_DEFAULT
    fecn: int = 0
    becn: int = 0
    """The receiver has seen congestion; set in a CNP."""


@dataclass(slots=True)
class SelectiveAck(Header):
    """Which packet caused an acknowledgement, 4 bytes, between NICs that are selective."""

    NAME: ClassVar[str] = "Selective"
    FIELDS: ClassVar[tuple[Field, ...]] = (reserved(8), Field("cause_psn", 24))

    cause_psn: int


@dataclass(slots=True)
class CnpReserved(Header):
    """The 16 bytes behind the BTH of a congestion notification; nothing is in them."""

    NAME: ClassVar[str] = "CNP"
    FIELDS: ClassVar[tuple[Field, ...]] = (reserved(128),)
