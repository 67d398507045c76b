"""Where things stand in an MRC packet in SRv6 mode, and what each opcode carries: plain integers for the fast paths.

A packet here begins with its outer IPv6 header; offsets count from there. The field tables of the header modules have
the same in full, and a test compares the two.

Sources: MRC 1.0 7.5 (opcodes, extension headers), RFC 8200 3, RFC 768, IBTA 9.2 and annex A17.
"""

IPV6_SIZE = 40
UDP_SIZE = 8
BTH_SIZE = 12
ICRC_SIZE = 4

OUTER_OFFSET = 0
INNER_OFFSET = 40
UDP_OFFSET = 80
BTH_OFFSET = 88
EXTENSION_OFFSET = 100
INNER_SOURCE = slice(48, 64)
INNER_DESTINATION = slice(64, 80)
OUTER_SOURCE = slice(8, 24)
OUTER_DESTINATION = slice(24, 40)
HOP_LIMIT_OFFSET = 7

# RFC 8200 4, IANA protocol numbers.
NEXT_HEADER_IPV6 = 41
NEXT_HEADER_UDP = 17
NEXT_HEADER_ROUTING = 43

# MRC 1.0 7.5, opcodes: transport class 0b110.
WRITE_FIRST = 0xC6
WRITE_MIDDLE = 0xC7
WRITE_LAST = 0xC8
WRITE_LAST_IMM = 0xC9
WRITE_ONLY = 0xCA
WRITE_ONLY_IMM = 0xCB
ACKNOWLEDGE = 0xD1
ENDPOINT_REQUEST = 0xD8
ENDPOINT_RESPONSE = 0xD9
SACK = 0xDC
NACK = 0xDD
PROBE = 0xDE

OPCODE_NAMES = {
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
DATA_OPCODES = frozenset((WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM))
IMM_OPCODES = frozenset((WRITE_LAST_IMM, WRITE_ONLY_IMM))

# Byte 8 of the BTH: A, R, rtx, ts, then four reserved bits.
FLAG_A = 0x80
FLAG_R = 0x40
FLAG_RTX = 0x20
FLAG_TS = 0x10

# MRC 1.0: QP 2 takes the endpoint operations; 0 and 1 are reserved.
ENDPOINT_QP = 2
QPN_MIN = 3
QPN_MAX = 0xFFFFFF
PSN_MASK = 0xFFFFFF

METH_SIZE = 4
TSETH_SIZE = 4
RETH_SIZE = 16
IMM_SIZE = 4
AETH_SIZE = 4
SETH_SIZE = 36
NETH_SIZE = 20
PETH_SIZE = 16
ERTH_SIZE = 16
EETH_SIZE = 36

CONTROL_EXTENSION = {
    ACKNOWLEDGE: AETH_SIZE,
    ENDPOINT_REQUEST: ERTH_SIZE,
    ENDPOINT_RESPONSE: EETH_SIZE,
    SACK: SETH_SIZE,
    NACK: NETH_SIZE,
    PROBE: PETH_SIZE,
}

# MRC 1.0: one tick of a 16-bit time stamp, with tsr = 0.
TIMESTAMP_TICK_NS = 128
TIMESTAMP_MASK = 0xFFFF
FTYPE = 1

# SACK, field M.
M_NONE = 0
M_SKIP_ONCE = 1
M_ALWAYS_SKIP = 2

# NACK reasons; the numbers are those of UEC's PDS.
NACK_TRIMMED = 0x01
NACK_TRIMMED_LASTHOP = 0x02
NACK_NO_BITMAP = 0x06
NACK_NO_PKT_BUFFER = 0x07
NACK_NO_RESOURCE = 0x0A
NACK_PSN_OOR_WINDOW = 0x0B
NACK_UNEXP_EVENT = 0x19

NACK_REASONS = {
    NACK_TRIMMED: "TRIMMED",
    NACK_TRIMMED_LASTHOP: "TRIMMED_LASTHOP",
    NACK_NO_BITMAP: "NO_BITMAP",
    NACK_NO_PKT_BUFFER: "NO_PKT_BUFFER",
    NACK_NO_RESOURCE: "NO_RESOURCE",
    NACK_PSN_OOR_WINDOW: "PSN_OOR_WINDOW",
    NACK_UNEXP_EVENT: "UNEXP_EVENT",
}

# AETH: credits are not used.
SYNDROME_ACK = 0x1F
SYNDROME_INVALID_REQUEST = 0x61

# Endpoint operations.
OP_PORT_STATUS = 0
OP_EV_PROBE = 1


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
