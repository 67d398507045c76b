"""One packet of every RoCE opcode, for tests."""

from mrcfabric.naming import nic_address
from mrcfabric.wire.roce import CnpTemplate, RcDataTemplate
from mrcfabric.wire.roce_layout import RC_DATA_OPCODES, RC_IMM_OPCODES

RC_PAYLOAD = bytes(range(61))


def one_of_each_rc(outer: bytes | None = None, selective: bool = False) -> list[bytes]:
    """Data of every opcode, an ACK, a NAK, an RNR NAK and a CNP; `outer`: the container of a pinned path."""
    near, far = nic_address(3), nic_address(70_000)
    there = RcDataTemplate(near, far, 0x123, 0xC0DE, dscp=26, outer=outer, selective=selective)
    back = CnpTemplate(far, near, 0x124, 0xFFFF, dscp=48, outer=outer, selective=selective)
    packets = [
        there.make(opcode, 70 + opcode, RC_PAYLOAD[: 50 + opcode], 1 << 40, 5, 9_000, opcode == 8, 9 if imm else None)
        for opcode in sorted(RC_DATA_OPCODES)
        for imm in (opcode in RC_IMM_OPCODES,)
    ]
    packets += [back.ack(5, 6), back.ack(5, 6, 0x60, 7), back.ack(5, 6, 0x25), back.cnp()]
    return [bytes(packet) for packet in packets]
