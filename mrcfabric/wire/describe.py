"""A packet in words: layer by layer, field by field, with the meaning of the values that have one.

Owns the wording and the shape of the JSON; `mrcfabric.wire.packet` reads an MRC packet. For people and tools; nothing
on the packet path calls this module.

Packets of RoCE and UET and link control frames have parsers of their own (`roce_packet`, `uet_packet`, `pfc_headers`).

Sources: MRC 1.0 7.5, RFC 9800 3 (containers), IBTA 9.7.5 (syndromes), IEEE 802.1Q 36 (PFC).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from typing import Any

from mrcfabric.units import Buffer
from mrcfabric.wire import pfc_headers, roce_packet, uet_packet, uet_words, usid
from mrcfabric.wire.ack_headers import Aeth, Neth, Seth
from mrcfabric.wire.bth import Bth
from mrcfabric.wire.dscp import Dscp, dscp_of
from mrcfabric.wire.endpoint_headers import Eeth, Erth
from mrcfabric.wire.entropy import ev_from_wire
from mrcfabric.wire.header import Header, Kind, Value
from mrcfabric.wire.ipv6 import Ipv6, Srh, Udp
from mrcfabric.wire.layout import ENDPOINT_QP, ICRC_SIZE, NACK_REASONS, OPCODE_NAMES, TIMESTAMP_TICK_NS
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions
from mrcfabric.wire.packet import Packet, dissect
from mrcfabric.wire.pfc_headers import PfcHeader
from mrcfabric.wire.roce_headers import RcBth
from mrcfabric.wire.roce_layout import KIND_NAK, KIND_RNR, RC_OPCODE_NAMES, SYNDROME_KIND_SHIFT

_ECN = ("not ECN-capable", "ECT(1)", "ECT(0)", "CE")
_NEXT_HEADER = {17: "UDP", 41: "IPv6", 43: "routing"}
_M = ("none", "SKIP_ONCE", "ALWAYS_SKIP", "reserved")
_OP = ("Port Status Update", "EV Probe", "reserved", "reserved")
_NAK = ("PSN sequence error", "invalid request", "remote access error", "remote operational error")
_PREVIEW_BYTES = 16

# Numbers that people compare digit by digit, shown in hexadecimal.
_HEXADECIMAL = frozenset(
    (
        "traffic_class",
        "flow_label",
        "opcode",
        "p_key",
        "dest_qp",
        "entropy",
        "va",
        "r_key",
        "immediate",
        "sack_bitmap",
        "port_status_mask",
        "syndrome",
        "ethertype",
        "classes",
        "fcs",
    )
)


@dataclass(frozen=True, slots=True)
class Row:
    """One field: its value, and the meaning of that value where it is not plain."""

    name: str
    bits: int
    value: Value
    meaning: str = ""

    @property
    def text(self) -> str:
        """The value in the usual notation."""
        if isinstance(self.value, bytes):
            return str(IPv6Address(self.value)) if len(self.value) == 16 else self.value.hex(":")
        return f"{self.value:#x}" if self.name in _HEXADECIMAL else str(self.value)


@dataclass(frozen=True, slots=True)
class Layer:
    """One header, at `offset` bytes from the start of the packet."""

    name: str
    offset: int
    size: int
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Description:
    """The description of one packet."""

    size: int
    """Bytes of the packet as it arrived, including those that the capture left out."""
    layers: list[Layer]
    summary: str
    reason: str | None
    """Why it is malformed; None for a good packet, and for a trimmed one."""
    notes: list[str] = field(default_factory=list)
    packet: Packet = field(default_factory=Packet)

    @property
    def icrc(self) -> int | None:
        """The four bytes of the ICRC in wire order, as one number, as Wireshark shows it."""
        value = self.packet.icrc
        return None if value is None else int.from_bytes(value.to_bytes(ICRC_SIZE, "little"), "big")

    def as_json(self) -> dict[str, Any]:
        """A dictionary for `json.dumps`; addresses as text, every other value as a number."""
        packet = self.packet
        return {
            "size": self.size,
            "summary": self.summary,
            "reason": self.reason,
            "notes": self.notes,
            "layers": [
                {
                    "name": layer.name,
                    "offset": layer.offset,
                    "size": layer.size,
                    "fields": {row.name: row.text if isinstance(row.value, bytes) else row.value for row in layer.rows},
                    "meanings": {row.name: row.meaning for row in layer.rows if row.meaning},
                }
                for layer in self.layers
            ],
            "payload_bytes": packet.carried,
            "payload_bytes_sent": packet.sent,
            "missing_bytes": packet.missing,
            "cut_by_capture": packet.left_out,
            "icrc": self.icrc,
            "icrc_good": packet.icrc_good,
        }

    def as_text(self) -> str:
        """Lines for a terminal."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.size} bytes: {self.summary}"
        for layer in self.layers:
            yield f"{layer.name}  at {layer.offset}, {layer.size} bytes"
            width = max((len(row.name) for row in layer.rows), default=0)
            for row in layer.rows:
                meaning = f"  ({row.meaning})" if row.meaning else ""
                yield f"    {row.name:<{width}}  {row.text}{meaning}"
        packet, payload = self.packet, self.packet.payload
        if packet.carried:
            dots = " ..." if packet.carried > _PREVIEW_BYTES else ""
            of = f" of {packet.sent}" if packet.sent > packet.carried else ""
            yield f"Payload  {packet.carried} bytes{of}: {payload[:_PREVIEW_BYTES].hex(' ', -2)}{dots}"
        if self.icrc is not None:
            yield f"ICRC  {self.icrc:#010x}  ({'good' if packet.icrc_good else 'wrong'})"
        yield from self.notes
        if self.reason is not None:
            yield f"Malformed: {self.reason}"


def describe(
    buf: Buffer,
    *,
    dscp: Dscp | None = None,
    options: WireOptions = DEFAULT_OPTIONS,
    left_out: int = 0,
    selective: bool = False,
) -> Description:
    """Describe the packet in `buf` (from its first IPv6 header on), as far as it can be read. Never raises.

    `left_out`: bytes at its end that the capture did not keep. `selective`: RoCE packets are those of selective NICs.
    """
    dscp = dscp or Dscp()
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
