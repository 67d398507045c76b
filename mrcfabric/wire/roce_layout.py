"""What RoCEv2's RC transport sends: opcodes, flags, syndromes, and the size of the headers behind each BTH.

Plain integers for the fast paths; `mrcfabric.wire.roce` builds and reads packets with them.

Sources: IBTA 9.2 to 9.7 (BTH, AETH), annex A17 (RoCEv2, CNP); IRN (SIGCOMM'18) 5.2 (selective).
"""

from typing import Final

from mrcfabric.wire.layout import AETH_SIZE, IMM_SIZE, RETH_SIZE

# IBTA 9.2.1: transport class 0b000 (reliable connection); annex A17.9.3: the CNP.
RC_WRITE_FIRST: Final = 0x06
RC_WRITE_MIDDLE: Final = 0x07
RC_WRITE_LAST: Final = 0x08
RC_WRITE_LAST_IMM: Final = 0x09
RC_WRITE_ONLY: Final = 0x0A
RC_WRITE_ONLY_IMM: Final = 0x0B
RC_ACK: Final = 0x11
"""An acknowledgement; its syndrome may make it a NAK."""
CNP: Final = 0x81

RC_OPCODE_NAMES: Final = {
    RC_WRITE_FIRST: "RC WRITE First",
    RC_WRITE_MIDDLE: "RC WRITE Middle",
    RC_WRITE_LAST: "RC WRITE Last",
    RC_WRITE_LAST_IMM: "RC WRITE Last with Immediate",
    RC_WRITE_ONLY: "RC WRITE Only",
    RC_WRITE_ONLY_IMM: "RC WRITE Only with Immediate",
    RC_ACK: "RC Acknowledge",
    CNP: "Congestion Notification",
}
RC_DATA_OPCODES: Final = frozenset(range(RC_WRITE_FIRST, RC_WRITE_ONLY_IMM + 1))
RC_STARTS: Final = frozenset((RC_WRITE_FIRST, RC_WRITE_ONLY, RC_WRITE_ONLY_IMM))
"""Opcodes that begin a message: the only ones with a RETH, unless both ends are selective."""
RC_ENDS: Final = frozenset((RC_WRITE_LAST, RC_WRITE_LAST_IMM, RC_WRITE_ONLY, RC_WRITE_ONLY_IMM))
"""Opcodes that end a message."""
RC_IMM_OPCODES: Final = frozenset((RC_WRITE_LAST_IMM, RC_WRITE_ONLY_IMM))

# Byte 8 of the BTH.
FLAG_ACK_REQUEST: Final = 0x80
# Byte 4 of the BTH: FECN and BECN.
BTH_FECN: Final = 0x80
BTH_BECN: Final = 0x40

# IBTA 9.7.5.2.1: the AETH's syndrome. Credits are not used.
SYNDROME_KIND_SHIFT: Final = 5
KIND_ACK: Final = 0
KIND_RNR: Final = 1
KIND_NAK: Final = 3
RC_ACK_SYNDROME: Final = 0x1F
RC_RNR_NAK: Final = 0x20
"""The low five bits are the code of the time to wait."""
NAK_SEQUENCE: Final = 0x60
NAK_INVALID_REQUEST: Final = 0x61
NAK_REMOTE_ACCESS: Final = 0x62
NAK_REMOTE_OPERATIONAL: Final = 0x63

# IBTA A17: the source port is the entropy of a flow, and keeps out of the registered ports.
SPORT_MIN: Final = 0xC000
SPORT_MAX: Final = 0xFFFF
CNP_RESERVED_SIZE: Final = 16
SELECTIVE_SIZE: Final = 4
"""Behind the AETH of a selective acknowledgement: 8 reserved bits, then the PSN that caused it."""


def extension_size(opcode: int, selective: bool = False) -> int:
    """Bytes of the headers behind the BTH; -1 for an opcode that is none of RC's here."""
    if opcode in RC_DATA_OPCODES:
        reth = RETH_SIZE if selective or opcode in RC_STARTS else 0
        return reth + (IMM_SIZE if opcode in RC_IMM_OPCODES else 0)
    if opcode == RC_ACK:
        return AETH_SIZE + (SELECTIVE_SIZE if selective else 0)
    return CNP_RESERVED_SIZE if opcode == CNP else -1
