"""UET's headers as tables of bits: packet delivery (PDS) and semantics (SES).

One class per layout; where a flag changes what a field means there are two. `mrcfabric.wire.uet_layout` has types,
flags and codes.

Sources: UEC PDS and UEC SES as the public layouts have them; see `uet_layout`.
"""

from dataclasses import dataclass
from typing import ClassVar

from mrcfabric.wire.header import Field, Header, Kind, reserved
from mrcfabric.wire.uet_layout import RC_OK, RESPONSE, SES_WRITE

_PROLOGUE = (Field("type", 5), Field("next", 4), Field("flags", 7))


@dataclass(slots=True)
class PdsRequest(Header):
    """A request on a context whose other end is known, 12 bytes."""

    NAME: ClassVar[str] = "PDS request"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        *_PROLOGUE,
        Field("clear_psn_offset", 16, Kind.SIGNED),
        Field("psn", 32),
        Field("spdcid", 16),
        Field("dpdcid", 16),
    )

    type: int
    next: int
    flags: int
    clear_psn_offset: int
    """What the initiator has no questions about any more, up to this PSN, counted from `psn`."""
    psn: int
    spdcid: int
    dpdcid: int


@dataclass(slots=True)
class PdsSyn(Header):
    """A request that opens a context if there is none, 12 bytes."""

    NAME: ClassVar[str] = "PDS request, SYN"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        *_PROLOGUE,
        Field("clear_psn_offset", 16, Kind.SIGNED),
        Field("psn", 32),
        Field("spdcid", 16),
        Field("pdc_info", 4),
        Field("psn_offset", 12),
    )

    type: int
    next: int
    flags: int
    clear_psn_offset: int
    psn: int
    spdcid: int
    pdc_info: int = 0
    psn_offset: int = 0
    """How far `psn` is behind the first of the context."""


@dataclass(slots=True)
class PdsRequestCc(Header):
    """What a request with CC has behind it, 4 bytes."""

    NAME: ClassVar[str] = "PDS request CC"
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("ccc_id", 8), Field("credit_target", 24))

    ccc_id: int
    credit_target: int
    """Up to where the initiator wants credit, in units of 256 bytes."""


@dataclass(slots=True)
class PdsAck(Header):
    """An acknowledgement, 12 bytes; the answer to a probe has what the probe sent in `ack_psn_offset`."""

    NAME: ClassVar[str] = "PDS ACK"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        *_PROLOGUE,
        Field("ack_psn_offset", 16, Kind.SIGNED),
        Field("cack_psn", 32),
        Field("spdcid", 16),
        Field("dpdcid", 16),
    )

    type: int
    next: int
    flags: int
    ack_psn_offset: int
    """The packet that caused it, counted from `cack_psn`."""
    cack_psn: int
    """Everything up to here has arrived."""
    spdcid: int
    dpdcid: int


_SACK = (Field("mpr", 8), Field("sack_psn_offset", 16, Kind.SIGNED), Field("sack_bitmap", 64))


@dataclass(slots=True)
class PdsAckNscc(Header):
    """What an ACK with CC has behind it for NSCC, 20 bytes."""

    NAME: ClassVar[str] = "PDS ACK CC, NSCC"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cc_type", 4),
        Field("cc_flags", 4),
        *_SACK,
        Field("service_time", 16),
        Field("restore_cwnd", 1),
        Field("rcv_cwnd_pen", 7),
        Field("rcvd_bytes", 24),
        Field("ooo_count", 16),
    )

    cc_type: int = 0
    cc_flags: int = 0
    mpr: int = 0
    """PSNs that the target keeps track of, in units of 128."""
    sack_psn_offset: int = 0
    """Bit 0 of the bitmap, counted from the cumulative PSN."""
    sack_bitmap: int = 0
    service_time: int = 0
    """How long the packet waited for this acknowledgement, in units of 128 ns."""
    restore_cwnd: int = 0
    rcv_cwnd_pen: int = 0
    rcvd_bytes: int = 0
    """In units of 256."""
    ooo_count: int = 0


@dataclass(slots=True)
class PdsAckCredit(Header):
    """What an ACK with CC has behind it for credits, 20 bytes."""

    NAME: ClassVar[str] = "PDS ACK CC, credit"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cc_type", 4),
        Field("cc_flags", 4),
        *_SACK,
        Field("credit", 24),
        reserved(24),
        Field("ooo_count", 16),
    )

    cc_type: int = 1
    cc_flags: int = 0
    mpr: int = 0
    sack_psn_offset: int = 0
    sack_bitmap: int = 0
    credit: int = 0
    """All that was ever granted, in units of 256 bytes."""
    ooo_count: int = 0


@dataclass(slots=True)
class PdsNack(Header):
    """Why a packet is not acknowledged, 16 bytes."""

    NAME: ClassVar[str] = "PDS NACK"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        *_PROLOGUE,
        Field("nack_code", 8),
        Field("vendor_code", 8),
        Field("nack_psn", 32),
        Field("spdcid", 16),
        Field("dpdcid", 16),
        Field("payload", 32),
    )

    type: int
    next: int
    flags: int
    nack_code: int
    nack_psn: int
    spdcid: int
    dpdcid: int
    vendor_code: int = 0
    payload: int = 0
    """By code; with "out of order" the PSN that is expected."""


@dataclass(slots=True)
class PdsControl(Header):
    """A control packet, 16 bytes; `next` is its kind."""

    NAME: ClassVar[str] = "PDS control"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        *_PROLOGUE,
        Field("probe_opaque", 16),
        Field("psn", 32),
        Field("spdcid", 16),
        Field("dpdcid", 16),
        Field("payload", 32),
    )

    type: int
    next: int
    flags: int
    psn: int
    spdcid: int
    dpdcid: int
    probe_opaque: int = 0
    payload: int = 0
    """By kind: a credit, a credit target, the PSN from which a probe wants to see the bitmap."""


_COMMON = (Field("ri_generation", 8), Field("job_id", 24), reserved(4), Field("pid_on_fep", 12), reserved(4))
_TARGET = (*_COMMON, Field("resource_index", 12), Field("buffer_offset", 64))
_FIRST = (reserved(2), Field("opcode", 6), Field("version", 2), Field("flags", 6))


@dataclass(slots=True)
class SesFirst(Header):
    """A standard request that begins a message, 44 bytes."""

    NAME: ClassVar[str] = "SES request, SOM"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        *_FIRST,
        Field("message_id", 16),
        *_TARGET,
        Field("initiator", 32),
        Field("memory_key", 64),
        Field("header_data", 64),
        Field("request_length", 32),
    )

    message_id: int
    pid_on_fep: int
    resource_index: int
    buffer_offset: int
    """Where the message goes in the memory of the key."""
    initiator: int
    memory_key: int
    request_length: int
    """Bytes of the whole message."""
    header_data: int = 0
    """With the flag HD: what the initiator hands to the target on completion."""
    flags: int = 0
    opcode: int = SES_WRITE
    version: int = 0
    ri_generation: int = 0
    job_id: int = 0


@dataclass(slots=True)
class SesStandard(Header):
    """A standard request that goes on with a message, 44 bytes."""

    NAME: ClassVar[str] = "SES request"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        *_FIRST,
        Field("message_id", 16),
        *_TARGET,
        Field("initiator", 32),
        Field("memory_key", 64),
        reserved(18),
        Field("payload_length", 14),
        Field("message_offset", 32),
        Field("request_length", 32),
    )

    message_id: int
    pid_on_fep: int
    resource_index: int
    buffer_offset: int
    initiator: int
    memory_key: int
    payload_length: int
    message_offset: int
    """Where this packet's payload belongs in its message."""
    request_length: int
    flags: int = 0
    opcode: int = SES_WRITE
    version: int = 0
    ri_generation: int = 0
    job_id: int = 0


@dataclass(slots=True)
class SesSmall(Header):
    """A small request: one packet, no key, 20 bytes."""

    NAME: ClassVar[str] = "SES request, small"
    FIELDS: ClassVar[tuple[Field, ...]] = (*_FIRST, reserved(2), Field("request_length", 14), *_TARGET)

    request_length: int
    pid_on_fep: int
    resource_index: int
    buffer_offset: int
    flags: int = 0
    opcode: int = SES_WRITE
    version: int = 0
    ri_generation: int = 0
    job_id: int = 0


@dataclass(slots=True)
class SesMedium(Header):
    """A medium request: one packet, 32 bytes; with the flag HD header data stand in place of the offset."""

    NAME: ClassVar[str] = "SES request, medium"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        *_FIRST,
        reserved(2),
        Field("request_length", 14),
        *_TARGET,
        Field("initiator", 32),
        Field("memory_key", 64),
    )

    request_length: int
    pid_on_fep: int
    resource_index: int
    buffer_offset: int
    initiator: int
    memory_key: int
    flags: int = 0
    opcode: int = SES_WRITE
    version: int = 0
    ri_generation: int = 0
    job_id: int = 0


@dataclass(slots=True)
class SesResponse(Header):
    """A response without data, 12 bytes."""

    NAME: ClassVar[str] = "SES response"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("list", 2),
        Field("opcode", 6),
        Field("version", 2),
        Field("return_code", 6),
        Field("message_id", 16),
        Field("ri_generation", 8),
        Field("job_id", 24),
        Field("modified_length", 32),
    )

    message_id: int
    return_code: int = RC_OK
    opcode: int = RESPONSE
    list: int = 0
    version: int = 0
    ri_generation: int = 0
    job_id: int = 0
    modified_length: int = 0
    """Bytes of the message that were carried out."""
