"""What UET sends: packet types, flags, codes, and the sizes of the headers of its two sublayers.

UET is a UDP payload: a packet delivery header (PDS), for most types a semantic header (SES), the payload, a CRC. Plain
integers for the fast paths; `mrcfabric.wire.uet` builds and reads packets with them.

Sources: three public layouts that agree (the reference provider's packet headers, a parser's, a dissector's); the text
of UEC 1.0 was not at hand. UEC PDS (packet types, codes), UEC SES (requests, responses).
"""

from typing import Final

from mrcfabric.wire.layout import IPV6_SIZE, UDP_SIZE

UDP_PORT_UET: Final = 4793
PDS_OFFSET: Final = IPV6_SIZE + UDP_SIZE
CRC_SIZE: Final = 4

# UEC PDS: the type, upper five bits of the prologue's sixteen.
RUD_REQUEST: Final = 2
ROD_REQUEST: Final = 3
ACK: Final = 7
ACK_CC: Final = 8
NACK: Final = 10
CONTROL: Final = 11
RUD_CC_REQUEST: Final = 13
ROD_CC_REQUEST: Final = 14
TYPE_NAMES: Final = {
    RUD_REQUEST: "RUD Request",
    ROD_REQUEST: "ROD Request",
    ACK: "ACK",
    ACK_CC: "ACK with CC",
    NACK: "NACK",
    CONTROL: "Control",
    RUD_CC_REQUEST: "RUD Request with CC",
    ROD_CC_REQUEST: "ROD Request with CC",
}
REQUESTS: Final = frozenset((RUD_REQUEST, ROD_REQUEST, RUD_CC_REQUEST, ROD_CC_REQUEST))
CC_REQUESTS: Final = frozenset((RUD_CC_REQUEST, ROD_CC_REQUEST))
ROD_REQUESTS: Final = frozenset((ROD_REQUEST, ROD_CC_REQUEST))
TYPE_SHIFT: Final = 11
NEXT_SHIFT: Final = 7
NEXT_MASK: Final = 0x0F
FLAGS_MASK: Final = 0x7F

# UEC PDS: what follows the header, the prologue's next four bits.
NEXT_NONE: Final = 0
NEXT_SMALL: Final = 1
NEXT_MEDIUM: Final = 2
NEXT_STANDARD: Final = 3
NEXT_RESPONSE: Final = 4

# UEC PDS: flags, the prologue's lower seven bits. Of requests and control packets:
FLAG_RETX: Final = 0x10
"""A retransmission; in an answer: it answers one."""
FLAG_AR: Final = 0x08
"""The sender asks for an acknowledgement."""
FLAG_SYN: Final = 0x04
"""The sender does not know the other end's PDCID: the packet opens the context if there is none."""
FLAG_ROD: Final = 0x20
"""Of control packets: they belong to an ordered context."""
# Of acknowledgements (and the first of NACKs):
FLAG_MARKED: Final = 0x20
FLAG_PROBE: Final = 0x08
"""It answers a probe."""
FLAG_CLOSE: Final = 0x04
"""The target asks the initiator to close the context."""
FLAG_CLEAR: Final = 0x02
"""It asks to be told up to which PSN there are no more questions."""

# UEC PDS: kinds of control packets, in the place of the next header.
CONTROL_NOOP: Final = 0
CONTROL_ACK_REQUEST: Final = 1
CONTROL_CLEAR: Final = 2
CONTROL_CLEAR_REQUEST: Final = 3
CONTROL_CLOSE: Final = 4
CONTROL_CLOSE_REQUEST: Final = 5
CONTROL_PROBE: Final = 6
CONTROL_CREDIT: Final = 7
CONTROL_CREDIT_REQUEST: Final = 8
CONTROL_NEGOTIATION: Final = 9
CONTROL_NAMES: Final = (
    "no-op", "ACK request", "clear", "clear request", "close", "close request", "probe", "credit", "credit request",
    "negotiation",
)  # fmt: skip

# UEC PDS: why a packet is not acknowledged.
NACK_TRIMMED: Final = 0x01
NACK_TRIMMED_LAST_HOP: Final = 0x02
NACK_NO_PDC: Final = 0x04
NACK_NO_BITMAP: Final = 0x06
NACK_NO_BUFFER: Final = 0x07
NACK_NO_RESPONSE: Final = 0x08
NACK_NO_RESOURCE: Final = 0x0A
NACK_OUT_OF_WINDOW: Final = 0x0B
NACK_OUT_OF_ORDER: Final = 0x0D
NACK_UNKNOWN_PDC: Final = 0x0E
NACK_CLOSING: Final = 0x10
NACK_INVALID_SYN: Final = 0x15
NACK_MODE: Final = 0x16
NACK_NAMES: Final = {
    NACK_TRIMMED: "trimmed",
    NACK_TRIMMED_LAST_HOP: "trimmed at the last hop",
    0x03: "acknowledgement trimmed",
    NACK_NO_PDC: "no context available",
    0x05: "no congestion context available",
    NACK_NO_BITMAP: "no bitmap",
    NACK_NO_BUFFER: "no packet buffer",
    NACK_NO_RESPONSE: "no room for a guaranteed response",
    0x09: "no message state available",
    NACK_NO_RESOURCE: "no resource",
    NACK_OUT_OF_WINDOW: "PSN outside the window",
    NACK_OUT_OF_ORDER: "out of order",
    NACK_UNKNOWN_PDC: "unknown context",
    0x0F: "header does not fit the context",
    NACK_CLOSING: "closing",
    0x11: "closing in error",
    0x12: "packet not received",
    0x13: "guaranteed response not available",
    0x14: "acknowledge with data",
    NACK_INVALID_SYN: "invalid SYN",
    NACK_MODE: "other delivery mode",
    0x17: "new start PSN",
    0x18: "received, semantics under way",
    0x19: "unexpected event",
    0x1A: "loss inferred by the receiver",
}

# UEC PDS: what an acknowledgement says for congestion control.
CC_NSCC: Final = 0
CC_CREDIT: Final = 1
CREDIT_UNIT: Final = 256
"""Bytes; credits and targets count up in 24 bits of them, and so do received bytes."""
COUNT_MASK: Final = 0xFFFFFF
PSN_MASK_UET: Final = 0xFFFFFFFF
SYN_OFFSET_MAX: Final = 0xFFF
"""A packet that opens a context is at most so many PSNs behind the first one."""
MPR_UNIT_UET: Final = 128
BITMAP_PSNS: Final = 64
SERVICE_TICK_NS: Final = 128
"""Unit of the service time, as of time stamps."""

# UEC SES: opcodes, flags and return codes.
SES_WRITE: Final = 1
SES_DC: Final = 0x20
"""The initiator asks that the answer wait until the bytes can be seen."""
SES_HD: Final = 0x04
"""Header data are present: the immediate."""
SES_EOM: Final = 0x02
SES_SOM: Final = 0x01
SES_OPCODE_MASK: Final = 0x3F
SES_VERSION_SHIFT: Final = 6
SES_LENGTH_MASK: Final = 0x3FFF
RESPONSE_DEFAULT: Final = 0
RESPONSE: Final = 1
RESPONSE_NONE: Final = 3
RC_NULL: Final = 0x00
RC_OK: Final = 0x01
RC_NO_MATCH: Final = 0x05
RC_UNSUPPORTED_OP: Final = 0x06
RC_UNSUPPORTED_SIZE: Final = 0x07
RC_OUT_OF_RANGE: Final = 0x0C
RC_BAD_INDEX: Final = 0x19
RC_BAD_PID: Final = 0x1A
RC_BAD_JOB: Final = 0x1B
RC_BAD_KEY: Final = 0x1C
RETURN_NAMES: Final = {
    RC_NULL: "null",
    RC_OK: "OK",
    RC_NO_MATCH: "no match",
    RC_UNSUPPORTED_OP: "unsupported operation",
    RC_UNSUPPORTED_SIZE: "unsupported size",
    RC_OUT_OF_RANGE: "out of range",
    RC_BAD_INDEX: "bad index",
    RC_BAD_PID: "bad PID",
    RC_BAD_JOB: "bad job",
    RC_BAD_KEY: "bad memory key",
}
PID_SHIFT: Final = 12
"""A QP number of ours is PIDonFEP (12 bits) and resource index (12 bits)."""
INDEX_MASK: Final = 0xFFF

PDS_SIZES: Final = {
    RUD_REQUEST: 12, ROD_REQUEST: 12, RUD_CC_REQUEST: 16, ROD_CC_REQUEST: 16,
    ACK: 12, ACK_CC: 32, NACK: 16, CONTROL: 16,
}  # fmt: skip
"""Bytes of the packet delivery header, prologue included."""
STANDARD_SIZE: Final = 44
SES_SIZES: Final = {NEXT_NONE: 0, NEXT_SMALL: 20, NEXT_MEDIUM: 32, NEXT_STANDARD: STANDARD_SIZE, NEXT_RESPONSE: 12}
"""Bytes of the semantic header."""
_REQUEST_NEXT: Final = (NEXT_SMALL, NEXT_MEDIUM, NEXT_STANDARD)
_ACK_NEXT: Final = (NEXT_NONE, NEXT_RESPONSE)


def semantic_size(kind: int, following: int) -> int:
    """Bytes of the semantic header behind a PDS header of this type with this next header; -1: there is no such."""
    if kind in REQUESTS:
        return SES_SIZES[following] if following in _REQUEST_NEXT else -1
    if kind in (ACK, ACK_CC):
        return SES_SIZES[following] if following in _ACK_NEXT else -1
    if kind == CONTROL:
        return 0 if following < len(CONTROL_NAMES) else -1
    return 0 if kind == NACK and following == NEXT_NONE else -1
