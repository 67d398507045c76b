"""Fields of hardware tables: what a width is, and the records that NICs of every transport have.

Owns the records that the footprints of all transports are made of (`nicd.core.mrc.footprint`,
`nicd.core.rc.footprint`). Widths are ours, the least that a field's range needs; a record is rounded up to whole bytes.
"""

from typing import Final, NamedTuple


class Width(NamedTuple):
    """One field of a record."""

    name: str
    bits: int
    why: str


PSN_BITS: Final = 24
QPN_BITS: Final = 24
# Ticks of 128 ns, as MRC has them on the wire, with eight bits more: 2.1 s, longer than any timeout of MRC before a QP
# gives up.
TIME_BITS: Final = 24
# One of 4,096 unfinished messages.
SLOT_BITS: Final = 12
# Messages of up to 2**32 - 1 bytes at virtual addresses of 64 bits.
LENGTH_BITS: Final = 32
ADDRESS_BITS: Final = 64
KEY_BITS: Final = 32

WORK_REQUEST: Final = (
    Width("local", ADDRESS_BITS + KEY_BITS, "where the bytes are"),
    Width("remote", ADDRESS_BITS + KEY_BITS, "where they go"),
    Width("length", LENGTH_BITS, ""),
    Width("immediate", 33, "and whether there is one"),
    Width("wr_id", 64, "the application's own number"),
    Width("progress", 2 * PSN_BITS, "first and last PSN once sent"),
)
"""Per unfinished message; in the host's memory, where the send queue is."""

MEMORY_KEY: Final = (
    Width("r_key", KEY_BITS, "on the wire"),
    Width("va", ADDRESS_BITS, "where it begins for peers"),
    Width("length", 40, "up to 1 TiB"),
    Width("host", ADDRESS_BITS, "where its page table is"),
    Width("readers", SLOT_BITS, "unfinished messages that are sent from it"),
)
"""Per memory region."""


def record_bytes(record: tuple[Width, ...], more_bits: int = 0) -> int:
    """One record in whole bytes; `more_bits` for a field whose width is a knob."""
    return (sum(field.bits for field in record) + more_bits + 7) // 8
