"""A packet in words: layer by layer, field by field, with the meaning of the values that have one.

Owns the wording; `description` has the shape, `mrcfabric.wire.packet` reads an MRC packet. For people and tools;
nothing on the packet path calls this module.

Packets of RoCE, UET and InfiniBand and link control frames have parsers of their own (`roce_packet`, `uet_packet`,
`lrh_headers`, `pfc_headers`).

Sources: MRC 1.0 7.5, RFC 9800 3 (containers), IBTA 9.7.5 (syndromes), IEEE 802.1Q 36 (PFC).
"""

from collections.abc import Callable
from typing import Any

from mrcfabric.units import Buffer
from mrcfabric.wire import (
    flow_control,
    lrh_headers,
    lrh_words,
    notice_headers,
    pfc_headers,
    roce_packet,
    routing_notice,
    uet_packet,
    uet_words,
    usid,
)
from mrcfabric.wire.ack_headers import Aeth, Neth, Seth
from mrcfabric.wire.bth import Bth
from mrcfabric.wire.description import Description, Layer, Row
from mrcfabric.wire.dscp import Dscp, dscp_of
from mrcfabric.wire.endpoint_headers import Eeth, Erth
from mrcfabric.wire.entropy import ev_from_wire
from mrcfabric.wire.header import Header, Kind, Value
from mrcfabric.wire.ipv6 import Ipv6, Srh, Udp
from mrcfabric.wire.layout import ENDPOINT_QP, NACK_REASONS, OPCODE_NAMES, TIMESTAMP_TICK_NS
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh import BAD_VCRC, vcrc_ok
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions
from mrcfabric.wire.packet import Packet, dissect
from mrcfabric.wire.pfc_headers import PfcHeader
from mrcfabric.wire.roce_headers import RcBth
from mrcfabric.wire.roce_layout import KIND_NAK, KIND_RNR, RC_OPCODE_NAMES, SYNDROME_KIND_SHIFT
from mrcfabric.wire.vcrc import VCRC_SIZE

_ECN = ("not ECN-capable", "ECT(1)", "ECT(0)", "CE")
_NEXT_HEADER = {17: "UDP", 41: "IPv6", 43: "routing"}
_M = ("none", "SKIP_ONCE", "ALWAYS_SKIP", "reserved")
_OP = ("Port Status Update", "EV Probe", "reserved", "reserved")
_NAK = ("PSN sequence error", "invalid request", "remote access error", "remote operational error")


def describe(
    buf: Buffer,
    *,
    dscp: Dscp | None = None,
    options: WireOptions = DEFAULT_OPTIONS,
    left_out: int = 0,
    selective: bool = False,
    infiniband: bool = False,
) -> Description:
    """Describe the packet in `buf` (from its first IPv6 header or LRH on), as far as it can be read. Never raises.

    `left_out`: bytes at its end that the capture did not keep. `selective`: RoCE packets are those of selective NICs.
    `infiniband`: it is of an InfiniBand link; otherwise that is told from whole packets by their lengths.
    """
    dscp = dscp or Dscp()
    of_link = infiniband and isinstance(buf, ControlFrame)
    if routing_notice.fault(buf) is None or (of_link and routing_notice.is_notice(buf)):
        packet, reason = notice_headers.dissect(buf)
        return Description(len(buf), _layers(packet, buf, dscp), notice_headers.summary(buf), reason, [], packet)
    if flow_control.fault(buf) is None or of_link:
        return _describe_flow_control(buf, dscp)
    if infiniband or lrh_headers.is_lrh(buf):
        return _describe_lrh(buf, dscp, left_out)
    if isinstance(buf, ControlFrame) or pfc_headers.is_mac_control(buf):
        return _describe_control(buf, dscp, left_out)
    if uet_packet.is_uet(buf):
        return _describe_uet(buf, dscp, left_out)
    roce = roce_packet.is_roce(buf)
    trimmed = not roce and len(buf) > 1 and bool(dscp.trimmed_table()[dscp_of(buf)])
    if roce:
        packet, reason = roce_packet.dissect(buf, selective=selective, left_out=left_out)
    else:
        packet, reason = dissect(buf, trimmed_ok=trimmed, options=options, left_out=left_out)
    # Where the capture has left something out, the sum cannot be checked.
    if reason is None and not trimmed and not left_out and not packet.icrc_good:
        reason = "icrc"
    notes = []
    if trimmed:
        notes.append(f"Trimmed: {packet.missing} bytes were cut off; the ICRC does not count.")
    elif packet.missing:
        notes.append(f"{packet.missing} bytes are missing at the end.")
    if left_out:
        notes.append(_left_out(left_out))
    summary = _rc_summary(packet) if roce else _summary(packet, trimmed, options)
    return Description(len(buf) + left_out, _layers(packet, buf, dscp), summary, reason, notes, packet)


def _describe_uet(buf: Buffer, dscp: Dscp, left_out: int) -> Description:
    """Describe a packet of UET, whichever sum it ends in.

    One that ends in none is known by its lengths alone; where no header tells the payload's, its sum is called wrong.
    """
    trimmed = bool(dscp.trimmed_table()[dscp_of(buf)])
    packet, reason = uet_packet.dissect(buf, dscp=dscp, left_out=left_out)
    whole = not trimmed and not left_out
    if whole and (reason is not None or not packet.icrc_good):
        other, fault = uet_packet.dissect(buf, dscp=dscp, crc="crc32c" if reason is None else "none")
        if fault is None and other.icrc_good is not False:
            packet, reason = other, None
        else:
            reason = reason or "icrc"
    notes = []
    if trimmed:
        notes.append(f"Trimmed: {packet.missing} bytes were cut off.")
    elif packet.missing:
        notes.append(f"{packet.missing} bytes are missing at the end.")
    if left_out:
        notes.append(_left_out(left_out))
    summary = uet_words.summary(packet, trimmed)
    return Description(len(buf) + left_out, _layers(packet, buf, dscp), summary, reason, notes, packet)


def _describe_lrh(buf: Buffer, dscp: Dscp, left_out: int) -> Description:
    """Describe a packet of InfiniBand, with its second sum behind everything else."""
    packet, reason = lrh_headers.dissect_lrh(buf, left_out)
    layers = _layers(packet, buf, dscp)
    notes = [_left_out(left_out)] if left_out else []
    if packet.missing:
        notes.insert(0, f"{packet.missing} bytes are missing at the end.")
    if packet.icrc is not None:
        good = vcrc_ok(buf)
        start = len(buf) - VCRC_SIZE
        vcrc = Row("vcrc", 8 * VCRC_SIZE, int.from_bytes(buf[start:], "big"), "good" if good else "wrong")
        layers.append(Layer(lrh_headers.Vcrc.NAME, start, VCRC_SIZE, [vcrc]))
        if reason is None:
            reason = ("" if good else BAD_VCRC) or (None if packet.icrc_good else "icrc")
    return Description(len(buf) + left_out, layers, lrh_words.summary(packet), reason, notes, packet)


def _describe_flow_control(buf: Buffer, dscp: Dscp) -> Description:
    """Describe a flow control packet of an InfiniBand link."""
    packet, reason = lrh_headers.dissect_link(buf)
    header = packet.find(lrh_headers.FlowControlHeader)
    summary = "link packet" if header is None or reason is not None else lrh_words.link_summary(header)
    return Description(len(buf), _layers(packet, buf, dscp), summary, reason, [], packet)


def _describe_control(buf: Buffer, dscp: Dscp, left_out: int) -> Description:
    """Describe a link control frame, from its MAC header on."""
    packet, reason = pfc_headers.dissect(buf, left_out)
    notes = [_left_out(left_out)] if left_out else []
    header = packet.find(PfcHeader)
    summary = "link control frame" if header is None or reason is not None else _pause_summary(header)
    return Description(len(buf) + left_out, _layers(packet, buf, dscp), summary, reason, notes, packet)


def _left_out(left_out: int) -> str:
    return f"The capture left out the last {left_out} bytes."


def _layers(packet: Packet, buf: Buffer, dscp: Dscp) -> list[Layer]:
    layers: list[Layer] = []
    tunnelled = sum(isinstance(header, Ipv6) for header in packet.headers) > 1 or packet.find(Udp) is None
    offset = 0
    for header in packet.headers:
        layers.append(_layer(header, buf, offset, dscp, outer=offset == 0 and tunnelled))
        offset += header.SIZE
    return layers


def _layer(header: Header, buf: Buffer, offset: int, dscp: Dscp, outer: bool) -> Layer:
    rows = []
    for item, bit, value in header.read(memoryview(buf)[offset:]):
        if item.kind is not Kind.RESERVED:
            rows.append(Row(item.name, item.bits, value, _meaning(header, item.name, value, dscp, outer)))
        elif value:
            # Reserved bits get a line only when somebody set them.
            rows.append(Row(f"reserved_at_bit_{bit}", item.bits, value, "should be zero"))
    name = header.NAME
    if isinstance(header, Ipv6):
        name = "Outer IPv6" if outer else "Inner IPv6" if offset else "IPv6"
    return Layer(name, offset, header.SIZE, rows)


def _container(container: bytes) -> str:
    names = " ".join(f"{one:04x}" for one in usid.usids(container)) or "none left"
    return f"uSID container, block {usid.block(container):08x}, uSIDs {names}"


def _sack_offset(header: Seth, value: int) -> str:
    if header.pr:
        return f"probe id {value & 0xFFFF}"
    return f"acknowledges PSN {header.cack_psn + value & 0xFFFFFF}"


def _bitmap(header: Seth, value: int) -> str:
    base = header.cack_psn + header.sack_offset & 0xFFFFFF
    return f"{value.bit_count()} received, bit 0 is PSN {base}"


def _syndrome(_: Header, value: int) -> str:
    # IBTA 9.7.5.2.1
    kind, code = value >> SYNDROME_KIND_SHIFT, value & 31
    if kind == KIND_NAK:
        return f"NAK, {_NAK[code]}" if code < len(_NAK) else "NAK, unknown"
    return "RNR NAK" if kind == KIND_RNR else "unknown" if kind else "ACK"


def _classes(vector: int) -> str:
    return ", ".join(str(one) for one in range(8) if vector >> one & 1) or "none"


def _quanta(one: int) -> Callable[[Any, int], str]:
    def meaning(header: PfcHeader, value: int) -> str:
        if not header.classes >> one & 1:
            return "not enabled"
        return f"pause class {one} for {value} x 512 bit times" if value else f"class {one} may go on"

    return meaning


# (header class, field) -> the meaning of a value. A function also gets the header, since some fields depend on others.
_MEANINGS: dict[tuple[type[Header], str], Callable[[Any, int], str]] = {
    (Ipv6, "next_header"): lambda _, value: _NEXT_HEADER.get(value, "unknown"),
    (Srh, "next_header"): lambda _, value: _NEXT_HEADER.get(value, "unknown"),
    (Bth, "opcode"): lambda _, value: OPCODE_NAMES.get(value, "no MRC opcode"),
    (Bth, "dest_qp"): lambda _, value: "endpoint operations" if value == ENDPOINT_QP else str(value),
    (Seth, "m"): lambda _, value: _M[value],
    (Seth, "ack_psn_offset"): _sack_offset,
    (Seth, "sack_bitmap"): _bitmap,
    (Seth, "mpr"): lambda _, value: f"{value * 128} PSNs" if value else "not dynamic",
    (Seth, "rcvd_bytes"): lambda _, value: f"{value * 256} bytes",
    (Neth, "nack_reason"): lambda _, value: NACK_REASONS.get(value, "unknown"),
    (Erth, "op"): lambda _, value: _OP[value],
    (Eeth, "op"): lambda _, value: _OP[value],
    (Aeth, "syndrome"): _syndrome,
    (RcBth, "opcode"): lambda _, value: RC_OPCODE_NAMES.get(value, "no RC opcode"),
    (RcBth, "dest_qp"): lambda _, value: str(value),
    (PfcHeader, "classes"): lambda _, value: _classes(value),
    **{(PfcHeader, f"quanta_{one}"): _quanta(one) for one in range(8)},
}


def _meaning(header: Header, name: str, value: Value, dscp: Dscp, outer: bool) -> str:
    if isinstance(value, bytes):
        return _container(value) if outer and name == "destination" and isinstance(header, Ipv6) else ""
    if name == "traffic_class":
        return f"DSCP {value >> 2} {dscp.role(value >> 2)}, {_ECN[value & 3]}"
    if uet_words.is_uet_header(header):
        return uet_words.meaning(header, name, value)
    if isinstance(header, notice_headers.NoticeHeader):
        return notice_headers.meaning(name, value)
    if lrh_words.is_lrh_header(header):
        return lrh_words.meaning(header, name, value)
    if name == "tx_timestamp" and not getattr(header, "tsr", 0):
        return f"{value * TIMESTAMP_TICK_NS} ns, modulo 2^23"
    for kind in type(header).__mro__:
        meaning = _MEANINGS.get((kind, name))
        if meaning is not None:
            return meaning(header, value)
    return ""


def _summary(packet: Packet, trimmed: bool, options: WireOptions) -> str:
    bth, udp = packet.find(Bth), packet.find(Udp)
    if bth is None or udp is None:
        return "no MRC packet"
    ev = ev_from_wire(packet.inner.flow_label, udp.source_port, options.ev_order)
    what = OPCODE_NAMES.get(bth.opcode, f"opcode {bth.opcode:#x}")
    flags = "".join(f" {name}" for name in ("a", "rtx", "ts") if getattr(bth, name))
    return f"{'trimmed ' if trimmed else ''}{what} to QP {bth.dest_qp:#x}, PSN {bth.psn}, EV {ev:#010x}{flags}"


def _rc_summary(packet: Packet) -> str:
    bth, udp = packet.find(RcBth), packet.find(Udp)
    if bth is None or udp is None:
        return "no RoCE packet"
    what = RC_OPCODE_NAMES.get(bth.opcode, f"opcode {bth.opcode:#x}")
    aeth = packet.find(Aeth)
    if aeth is not None and aeth.syndrome >> SYNDROME_KIND_SHIFT:
        what += f" ({_syndrome(aeth, aeth.syndrome)})"
    flag = " a" if bth.a else ""
    return f"{what} to QP {bth.dest_qp:#x}, PSN {bth.psn}, source port {udp.source_port:#x}{flag}"


def _pause_summary(header: PfcHeader) -> str:
    told = [one for one in range(8) if header.classes >> one & 1]
    said = [f"class {one} " + ("pauses" if getattr(header, f"quanta_{one}") else "goes on") for one in told]
    return f"PFC from {header.source.hex(':')}: {', '.join(said) or 'about no class'}"
