"""Headers without a PSN of their own: PETH (reliability probe), ERTH and EETH (endpoint request and response).

The peer's QP answers a probe by a SACK with pr = 1. Endpoint operations go to QP 2; their request id is in the low 16
bits of the PSN.

Source: MRC 1.0 7.5. Public descriptions place the response's `op` differently: `WireOptions.eeth_op_shift` chooses.
"""

from dataclasses import dataclass
from typing import ClassVar

from mrcfabric.wire.header import Field, Header, reserved
from mrcfabric.wire.layout import FTYPE
from mrcfabric.wire.options import EETH_OP_HIGH, EETH_OP_LOW, EETH_OP_TOP, WireOptions


@dataclass(slots=True)
class Peth(Header):
    """Reliability probe request, 16 bytes."""

    NAME: ClassVar[str] = "PETH"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("type", 4),
        Field("next", 5),
        reserved(7),
        reserved(8),
        Field("vendor", 8),
        Field("probe_id", 16),
        reserved(16),
        Field("spdcid", 16),
        Field("dpdcid", 16),
        Field("tx_timestamp", 16),
        Field("tsr", 1),
        reserved(11),
        Field("ftype", 4),
    )

    probe_id: int
    tx_timestamp: int = 0
    spdcid: int = 0
    dpdcid: int = 0
    type: int = 0
    next: int = 0
    vendor: int = 0
    tsr: int = 0
    ftype: int = FTYPE


@dataclass(slots=True)
class Erth(Header):
    """Endpoint request, 16 bytes."""

    NAME: ClassVar[str] = "ERTH"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("type", 4),
        Field("next", 5),
        reserved(5),
        Field("op", 2),
        reserved(8),
        Field("vendor", 8),
        Field("port_status_mask", 32),
        reserved(32),
        Field("tx_timestamp", 16),
        Field("tsr", 1),
        reserved(11),
        Field("ftype", 4),
    )

    op: int
    """0 Port Status Update, 1 EV Probe."""
    port_status_mask: int = 0
    """Bit 0 is the first port; 1 means reachable."""
    tx_timestamp: int = 0
    type: int = 0
    next: int = 0
    vendor: int = 0
    tsr: int = 0
    ftype: int = FTYPE


_EETH_REST = (reserved(208), Field("tx_timestamp", 16), reserved(48))


@dataclass(slots=True)
class Eeth(Header):
    """Endpoint response, 36 bytes."""

    NAME: ClassVar[str] = "EETH"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("type", 4),
        Field("next", 5),
        reserved(3),
        Field("op", 2),
        reserved(2),
        *_EETH_REST,
    )

    op: int
    tx_timestamp: int = 0
    """Copied from the request."""
    type: int = 0
    next: int = 0


class EethLow(Eeth):
    """The endpoint response with `op` where the request has it."""

    __slots__ = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (Field("type", 4), Field("next", 5), reserved(5), Field("op", 2), *_EETH_REST)


class EethTop(Eeth):
    """The endpoint response with `op` two bits further to the left than usual."""

    __slots__ = ()

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("type", 4),
        Field("next", 5),
        reserved(1),
        Field("op", 2),
        reserved(4),
        *_EETH_REST,
    )


_EETH_CLASSES = {EETH_OP_HIGH: Eeth, EETH_OP_LOW: EethLow, EETH_OP_TOP: EethTop}


def eeth_class(options: WireOptions) -> type[Eeth]:
    """The layout of the endpoint response that the options ask for."""
    return _EETH_CLASSES[options.eeth_op_shift]
