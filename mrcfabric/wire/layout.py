"""Where things stand in an MRC packet in SRv6 mode, and what each opcode carries: plain integers for the fast paths.

A packet here begins with its outer IPv6 header; offsets count from there. The field tables of the header modules have
the same in full, and a test compares the two.

Sources: MRC 1.0 7.5 (opcodes, extension headers), RFC 8200 3, RFC 768, IBTA 9.2 and annex A17.
"""

from typing import Final

IPV6_SIZE: Final = 40
UDP_SIZE: Final = 8
BTH_SIZE: Final = 12
ICRC_SIZE: Final = 4

OUTER_OFFSET: Final = 0
INNER_OFFSET: Final = 40
UDP_OFFSET: Final = 80
BTH_OFFSET: Final = 88
EXTENSION_OFFSET: Final = 100
INNER_SOURCE: Final = slice(48, 64)
INNER_DESTINATION: Final = slice(64, 80)
OUTER_SOURCE: Final = slice(8, 24)
OUTER_DESTINATION: Final = slice(24, 40)
HOP_LIMIT_OFFSET: Final = 7

# RFC 8200 4, IANA protocol numbers.
NEXT_HEADER_IPV6: Final = 41
NEXT_HEADER_UDP: Final = 17
NEXT_HEADER_ROUTING: Final = 43

# MRC 1.0 7.5, opcodes: transport class 0b110.
WRITE_FIRST: Final = 0xC6
WRITE_MIDDLE: Final = 0xC7
WRITE_LAST: Final = 0xC8
WRITE_LAST_IMM: Final = 0xC9
WRITE_ONLY: Final = 0xCA
WRITE_ONLY_IMM: Final = 0xCB
ACKNOWLEDGE: Final = 0xD1
ENDPOINT_REQUEST: Final = 0xD8
ENDPOINT_RESPONSE: Final = 0xD9
SACK: Final = 0xDC
NACK: Final = 0xDD
PROBE: Final = 0xDE

OPCODE_NAMES: Final = {
    WRITE_FIRST: "WRITE First",
    WRITE_MIDDLE: "WRITE Middle",
    WRITE_LAST: "WRITE Last",
    WRITE_LAST_IMM: "WRITE Last with Immediate",
    WRITE_ONLY: "WRITE Only",
    WRITE_ONLY_IMM: "WRITE Only with Immediate",
    ACKNOWLEDGE: "Acknowledge",
    ENDPOINT_REQUEST: "Endpoint Request",
    ENDPOINT_RESPONSE: "Endpoint Response",
    SACK: "Reliability SACK",
    NACK: "Reliability NACK",
    PROBE: "Reliability Probe Request",
}
DATA_OPCODES: Final = frozenset((WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM))
IMM_OPCODES: Final = frozenset((WRITE_LAST_IMM, WRITE_ONLY_IMM))

# Byte 8 of the BTH: A, R, rtx, ts, then four reserved bits.
FLAG_A: Final = 0x80
FLAG_R: Final = 0x40
FLAG_RTX: Final = 0x20
FLAG_TS: Final = 0x10

# MRC 1.0: QP 2 takes the endpoint operations; 0 and 1 are reserved.
ENDPOINT_QP: Final = 2
QPN_MIN: Final = 3
QPN_MAX: Final = 0xFFFFFF
PSN_MASK: Final = 0xFFFFFF

METH_SIZE: Final = 4
TSETH_SIZE: Final = 4
RETH_SIZE: Final = 16
IMM_SIZE: Final = 4
AETH_SIZE: Final = 4
SETH_SIZE: Final = 36
NETH_SIZE: Final = 20
PETH_SIZE: Final = 16
ERTH_SIZE: Final = 16
EETH_SIZE: Final = 36

CONTROL_EXTENSION: Final = {
    ACKNOWLEDGE: AETH_SIZE,
    ENDPOINT_REQUEST: ERTH_SIZE,
    ENDPOINT_RESPONSE: EETH_SIZE,
    SACK: SETH_SIZE,
    NACK: NETH_SIZE,
    PROBE: PETH_SIZE,
}

# MRC 1.0: one tick of a 16-bit time stamp, with tsr = 0.
TIMESTAMP_TICK_NS: Final = 128
TIMESTAMP_MASK: Final = 0xFFFF
FTYPE: Final = 1

# SACK, field M.
M_NONE: Final = 0
M_SKIP_ONCE: Final = 1
M_ALWAYS_SKIP: Final = 2

# NACK reasons; the numbers are those of UEC's PDS.
NACK_TRIMMED: Final = 0x01
NACK_TRIMMED_LASTHOP: Final = 0x02
NACK_NO_BITMAP: Final = 0x06
NACK_NO_PKT_BUFFER: Final = 0x07
NACK_NO_RESOURCE: Final = 0x0A
NACK_PSN_OOR_WINDOW: Final = 0x0B
NACK_UNEXP_EVENT: Final = 0x19

NACK_REASONS: Final = {
    NACK_TRIMMED: "TRIMMED",
    NACK_TRIMMED_LASTHOP: "TRIMMED_LASTHOP",
    NACK_NO_BITMAP: "NO_BITMAP",
    NACK_NO_PKT_BUFFER: "NO_PKT_BUFFER",
    NACK_NO_RESOURCE: "NO_RESOURCE",
    NACK_PSN_OOR_WINDOW: "PSN_OOR_WINDOW",
    NACK_UNEXP_EVENT: "UNEXP_EVENT",
}

# AETH: credits are not used.
SYNDROME_ACK: Final = 0x1F
SYNDROME_INVALID_REQUEST: Final = 0x61

# Endpoint operations.
OP_PORT_STATUS: Final = 0
OP_EV_PROBE: Final = 1


def headers_end(opcode: int, ts: bool) -> int:
    """Where the payload starts (or the ICRC, in a packet without payload); 0 for an opcode that MRC does not have.

    A control packet has no TSETH: with `ts` set, its opcode counts as unknown.
    """
    if opcode in DATA_OPCODES:
        imm = IMM_SIZE if opcode in IMM_OPCODES else 0
        return EXTENSION_OFFSET + METH_SIZE + (TSETH_SIZE if ts else 0) + RETH_SIZE + imm
    if ts or opcode not in CONTROL_EXTENSION:
        return 0
    return EXTENSION_OFFSET + CONTROL_EXTENSION[opcode]


def timestamp_of(at_ns: int) -> int:
    """The 16-bit time stamp of an instant; wraps every 8.39 ms of fabric time."""
    return at_ns // TIMESTAMP_TICK_NS & TIMESTAMP_MASK
