"""One packet of every RC opcode behind an LRH, and link packets, for tests."""

from mrcfabric.wire.flow_control import INIT, NORMAL, encode
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh_rc import LrhControlTemplate, LrhDataTemplate
from mrcfabric.wire.roce_layout import RC_DATA_OPCODES, RC_IMM_OPCODES

LRH_PAYLOAD = bytes(range(61))
SLID, DLID, QPN = 0x17, 0xBFFF, 0x123
# The local packet that IBTA 7.8.3 prints, with both sums: an RC packet of opcode 0x0A, VL 7, SL 1.
IBTA_SAMPLE = bytes.fromhex(
    "7012375c000e17d20a2024870087b1b3000dec2a01710a1c015d400238f27a05"
    "0000000ebb884d85fd5cfba4728bc0690ed400009625b75a45fa"
)


def one_of_each_lrh(sl: int = 0, vl: int = 0) -> list[bytes]:
    """Data of every opcode, an ACK and a NAK."""
    there = LrhDataTemplate(SLID, DLID, QPN, sl=sl, vl=vl)
    back = LrhControlTemplate(DLID, SLID, QPN + 1, sl=sl, vl=vl)
    packets = [
        there.make(opcode, 70 + opcode, LRH_PAYLOAD[: 50 + opcode], 1 << 40, 5, 9_000, opcode == 8, 9 if imm else None)
        for opcode in sorted(RC_DATA_OPCODES)
        for imm in (opcode in RC_IMM_OPCODES,)
    ]
    packets += [back.ack(5, 6), back.ack(5, 6, 0x60)]
    return [bytes(packet) for packet in packets]


def link_packets() -> list[ControlFrame]:
    """Flow control packets of both operands."""
    return [encode(INIT, 3, 0, 2_048), encode(NORMAL, 14, 4_095, 17)]
