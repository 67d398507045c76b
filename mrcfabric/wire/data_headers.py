"""The extension headers of data packets: METH, TSETH, RETH, ImmDt, in this order behind the BTH.

Every data packet names its own place in memory, so that a receiver can write it before earlier packets have arrived.

Sources: MRC 1.0 7.5, IBTA 9.3 (RETH, ImmDt).
"""

from dataclasses import dataclass
from typing import ClassVar

from mrcfabric.wire.header import Field, Header, reserved
from mrcfabric.wire.layout import FTYPE


@dataclass(slots=True)
class Meth(Header):
    """Message numbers, 4 bytes, in every data packet."""

    NAME: ClassVar[str] = "METH"
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("rqmsn", 16), Field("msn", 16))

    rqmsn: int
    """Index among the messages with an immediate; has a meaning in those only."""
    msn: int
    """Index of the message on its QP, from 0."""


@dataclass(slots=True)
class Tseth(Header):
    """Time stamp, 4 bytes, exactly when BTH.ts is set."""

    NAME: ClassVar[str] = "TSETH"
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("tx_timestamp", 16), Field("tsr", 1), reserved(11), Field("ftype", 4))

    tx_timestamp: int
    tsr: int = 0
    """0: ticks of 128 ns. 1: the implementation's own."""
    ftype: int = FTYPE


@dataclass(slots=True)
class Reth(Header):
    """Where the payload goes, 16 bytes, in every data packet."""

    NAME: ClassVar[str] = "RETH"
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("va", 64), Field("r_key", 32), Field("dma_len", 32))

    va: int
    """Address of this packet's first byte: grows by one PMTU from packet to packet."""
    r_key: int
    dma_len: int
    """Bytes of the whole message, the same in all its packets."""


@dataclass(slots=True)
class ImmDt(Header):
    """The immediate, 4 bytes, with the two opcodes that carry one."""

    NAME: ClassVar[str] = "ImmDt"
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("immediate", 32),)

    immediate: int
