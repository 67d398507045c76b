"""A packet of InfiniBand in words: one line, and the meaning of the values that have one.

Owns the wording; `mrcfabric.wire.lrh_headers` reads the packet and `describe` has the layers. Nothing on the packet
path calls this module. IBTA 7.7 (LRH), 7.9.4 (flow control), 13.4 and 14.2 (management).
"""

from typing import Final

from mrcfabric.wire import smp
from mrcfabric.wire.ack_headers import Aeth
from mrcfabric.wire.flow_control import INIT
from mrcfabric.wire.header import Header, Value
from mrcfabric.wire.lrh import BLOCK_BYTES, LID_MAX, MANAGEMENT_VL, PERMISSIVE_LID
from mrcfabric.wire.lrh_headers import FlowControlHeader, Lrh
from mrcfabric.wire.packet import Packet
from mrcfabric.wire.roce_headers import RcBth
from mrcfabric.wire.roce_layout import KIND_NAK, RC_OPCODE_NAMES, SYNDROME_KIND_SHIFT
from mrcfabric.wire.smp import Smp

_LNH: Final = ("raw", "raw IPv6", "BTH", "GRH")
_METHODS: Final = {
    smp.GET: "Get", smp.SET: "Set", smp.TRAP: "Trap", smp.TRAP_REPRESS: "TrapRepress", smp.ANSWER: "answer",
}  # fmt: skip
_ATTRIBUTES: Final = {
    smp.NODE_DESCRIPTION: "NodeDescription", smp.NODE_INFO: "NodeInfo", smp.SWITCH_INFO: "SwitchInfo",
    smp.PORT_INFO: "PortInfo", smp.LFT: "LinearForwardingTable", smp.SM_INFO: "SMInfo", smp.NOTICE: "Notice",
}  # fmt: skip
_CLASSES: Final = {smp.DIRECTED: "directed route", smp.BY_LID: "by LID"}
_STATUS: Final = {smp.OK: "good", smp.UNSUPPORTED: "not supported", smp.BAD_VALUE: "a value will not do"}


def summary(packet: Packet) -> str:
    """One line about a packet, as far as it could be read."""
    lrh, bth = packet.find(Lrh), packet.find(RcBth)
    if lrh is None or bth is None:
        return "no packet of InfiniBand"
    way = f"LID {lrh.slid:#x} to {lrh.dlid:#x}, VL {lrh.vl}"
    told = packet.find(Smp)
    if told is not None:
        return f"SMP {_METHODS.get(told.method, told.method)} {_attribute(told.attribute)}, {_path(told)}"
    what = RC_OPCODE_NAMES.get(bth.opcode, f"opcode {bth.opcode:#x}")
    aeth = packet.find(Aeth)
    if aeth is not None and aeth.syndrome >> SYNDROME_KIND_SHIFT == KIND_NAK:
        what += " (NAK)"
    flag = " a" if bth.a else ""
    return f"{what} to QP {bth.dest_qp:#x}, PSN {bth.psn}, {way}{flag}"


def link_summary(header: FlowControlHeader) -> str:
    """One line about a flow control packet."""
    begun = "begins the link, " if header.operand == INIT else ""
    return f"flow control of VL {header.vl}: {begun}{header.fctbs} blocks sent, up to {header.fccl} granted"


def is_lrh_header(header: Header) -> bool:
    """Whether `meaning` knows the fields of a header."""
    return isinstance(header, Lrh | FlowControlHeader | Smp)


def meaning(header: Header, name: str, value: Value) -> str:
    """The meaning of a field's value; empty where it is plain."""
    assert isinstance(value, int | bytes)
    if isinstance(value, bytes):
        return ""
    if isinstance(header, Lrh):
        return _of_lrh(name, value)
    if isinstance(header, FlowControlHeader):
        return _of_link(name, value)
    if name == "method":
        return _METHODS.get(value, "")
    if name == "attribute":
        return _attribute(value)
    if name == "mgmt_class":
        return _CLASSES.get(value, "")
    return _STATUS.get(value, "") if name == "status" else ""


def _of_lrh(name: str, value: int) -> str:
    if name == "vl":
        return "management" if value == MANAGEMENT_VL else ""
    if name == "lnh":
        return _LNH[value]
    if name == "packet_length":
        return f"{4 * value} bytes and the VCRC"
    if name in ("dlid", "slid"):
        return "permissive" if value == PERMISSIVE_LID else "" if value <= LID_MAX else "multicast"
    return ""


def _of_link(name: str, value: int) -> str:
    if name == "operand":
        return "init" if value == INIT else "" if value else "normal"
    return f"{value * BLOCK_BYTES} bytes, modulo 2^18" if name in ("fctbs", "fccl") else ""


def _attribute(number: int) -> str:
    return _ATTRIBUTES.get(number, f"attribute {number:#x}")


def _path(told: Smp) -> str:
    if told.mgmt_class != smp.DIRECTED:
        return "by LID"
    hops = ",".join(str(port) for port in told.initial_path[1 : min(told.hop_count, smp.HOPS_MAX) + 1])
    return f"{'back ' if told.d else ''}along {hops or 'no hop'}, {told.hop_pointer} of {told.hop_count}"
