"""Packets for tests: one of each kind, built by the templates between two fixed NICs."""

from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.layout import (
    DATA_OPCODES,
    IMM_OPCODES,
    NACK_TRIMMED,
    OP_EV_PROBE,
    OP_PORT_STATUS,
    SYNDROME_ACK,
    WRITE_ONLY_IMM,
)
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions
from mrcfabric.wire.templates import ControlTemplate, DataTemplate
from tests.vectors import wire as golden

DSCP = Dscp()


def data_template(ts: bool = False, options: WireOptions = DEFAULT_OPTIONS) -> DataTemplate:
    """From the golden source to the golden destination."""
    return DataTemplate(golden.SOURCE, golden.DESTINATION, golden.QP, dscp=DSCP, ts=ts, options=options)


def control_template(options: WireOptions = DEFAULT_OPTIONS) -> ControlTemplate:
    """From the golden source to the golden destination."""
    return ControlTemplate(golden.SOURCE, golden.DESTINATION, golden.QP, golden.SOURCE_QP, dscp=DSCP, options=options)


def data_packet(opcode: int, payload: bytes = b"payload", ts: bool = False, rtx: bool = False) -> bytearray:
    """A WRITE packet with any payload."""
    imm = 0xCAFEF00D if opcode in IMM_OPCODES else None
    return data_template(ts).build(
        opcode, 5, 6, 7, 0x1000, 0xABCD, 1 << 20, golden.EV, golden.CONTAINER, payload, rtx=rtx, imm=imm, timestamp=9
    )


def golden_packets() -> dict[str, bytearray]:
    """What the templates make of the golden packets' numbers."""
    control = control_template()
    way = (golden.EV, golden.CONTAINER)
    return {
        "write": data_template(ts=True).build(
            WRITE_ONLY_IMM, 0x102, 7, 3, 0x10000FFE, 0xDEADBEEF, 5, *way, b"hello", True, False, 0xCAFEF00D, 0x1234
        ),
        "sack": control.sack(
            *way, 0x89ABCDEF, 1, -2, 0x100, 1, 0b1011, 0x1234, 3, 17, 8, True, restore_cwnd=1, rcv_cwnd_pen=5
        ),
        "nack": control.nack(*way, NACK_TRIMMED, 0x89ABCDEF, 0x105, 0x1234),
        "acknowledge": control.acknowledge(*way, 0x100, SYNDROME_ACK, 7),
        "probe": control.probe(*way, 0xBEEF, 0x1234),
        "endpoint_request": control.endpoint_request(*way, 0x777, OP_PORT_STATUS, 0xFB, 0x1234),
        "endpoint_response": control.endpoint_response(*way, 0x777, OP_EV_PROBE, 0x1234),
    }


def one_of_each() -> dict[str, bytearray]:
    """One packet of every opcode, data packets with and without a time stamp, and one with no payload."""
    packets = {f"data_{opcode:#x}": data_packet(opcode) for opcode in sorted(DATA_OPCODES)}
    packets |= {f"data_ts_{opcode:#x}": data_packet(opcode, ts=True, rtx=True) for opcode in sorted(DATA_OPCODES)}
    return packets | {"data_empty": data_packet(WRITE_ONLY_IMM, b"")} | golden_packets()
