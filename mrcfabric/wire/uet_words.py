"""A UET packet in words: one line, and the meaning of the values that have one.

Owns the wording; `mrcfabric.wire.uet_packet` reads the packet and `describe` has the layers. Nothing on the packet path
calls this module. UEC PDS, UEC SES.
"""

from typing import Final

from mrcfabric.wire.header import Header, Value
from mrcfabric.wire.packet import Packet
from mrcfabric.wire.uet_headers import (
    PdsAck,
    PdsAckNscc,
    PdsControl,
    PdsNack,
    PdsRequest,
    PdsSyn,
    SesFirst,
    SesMedium,
    SesResponse,
    SesSmall,
    SesStandard,
)
from mrcfabric.wire.uet_layout import (
    CONTROL_NAMES,
    CREDIT_UNIT,
    FLAG_AR,
    FLAG_CLOSE,
    FLAG_MARKED,
    FLAG_PROBE,
    FLAG_RETX,
    FLAG_ROD,
    FLAG_SYN,
    MPR_UNIT_UET,
    NACK_NAMES,
    RETURN_NAMES,
    SERVICE_TICK_NS,
    SES_DC,
    SES_EOM,
    SES_HD,
    SES_SOM,
    TYPE_NAMES,
)

_REQUEST_FLAGS: Final = {FLAG_RETX: "retransmission", FLAG_AR: "asks for an ACK", FLAG_SYN: "SYN"}
_CONTROL_FLAGS: Final = {FLAG_ROD: "ordered", **_REQUEST_FLAGS}
_ACK_FLAGS: Final = {
    FLAG_MARKED: "marked", FLAG_RETX: "of a retransmission", FLAG_PROBE: "of a probe", FLAG_CLOSE: "asks to close",
}  # fmt: skip
_SES_FLAGS: Final = {SES_DC: "DC", SES_HD: "HD", SES_EOM: "EOM", SES_SOM: "SOM"}
_NEXT: Final = ("nothing", "small request", "medium request", "standard request", "response")
_PSN_MASK: Final = 0xFFFFFFFF


def summary(packet: Packet, trimmed: bool) -> str:
    """One line about a packet, as far as it could be read."""
    kinds = PdsRequest | PdsSyn | PdsAck | PdsNack | PdsControl
    head = next((one for one in packet.headers if isinstance(one, kinds)), None)
    if head is None:
        return "UET"
    words = [f"UET {TYPE_NAMES[head.type]}"]
    if isinstance(head, PdsRequest | PdsSyn):
        words.append(_request(packet, head, trimmed))
    elif isinstance(head, PdsAck):
        words.append(_ack(packet, head))
    elif isinstance(head, PdsNack):
        words.append(f"{NACK_NAMES.get(head.nack_code, f'code {head.nack_code:#x}')}, PSN {head.nack_psn}")
    else:
        words[0] += f", {CONTROL_NAMES[head.next]}"
        words.append(f"PSN {head.psn}")
    words.append(f"context {head.spdcid}" if isinstance(head, PdsSyn) else f"context {head.spdcid} to {head.dpdcid}")
    return ", ".join(words)


def _request(packet: Packet, head: PdsRequest | PdsSyn, trimmed: bool) -> str:
    words = [name for flag, name in _REQUEST_FLAGS.items() if head.flags & flag]
    ses = packet.headers[-1]
    if isinstance(ses, SesFirst | SesStandard):
        begin = ses.message_offset if isinstance(ses, SesStandard) else 0
        words.append(f"WRITE of message {ses.message_id}, bytes from {begin} of {ses.request_length}")
    elif isinstance(ses, SesSmall | SesMedium):
        words.append(f"WRITE of {ses.request_length} bytes")
    if trimmed:
        words.insert(0, "trimmed")
    return ", ".join([*words, f"PSN {head.psn}"])


def _ack(packet: Packet, head: PdsAck) -> str:
    words = [name for flag, name in _ACK_FLAGS.items() if head.flags & flag]
    words.append(f"all up to PSN {head.cack_psn}")
    response = packet.find(SesResponse)
    if response is not None and response.opcode:
        words.append(f"message {response.message_id}: {RETURN_NAMES.get(response.return_code, response.return_code)}")
    return ", ".join(words)


def meaning(header: Header, name: str, value: Value) -> str:
    """What a value of a UET header means; empty where it is plain."""
    assert isinstance(value, int)
    if name == "type":
        return TYPE_NAMES.get(value, "")
    if name == "next":
        names = CONTROL_NAMES if isinstance(header, PdsControl) else _NEXT
        return names[value] if value < len(names) else ""
    if name == "flags":
        return ", ".join(text for flag, text in _flags_of(header).items() if value & flag)
    if name == "nack_code":
        return NACK_NAMES.get(value, "")
    if name == "return_code":
        return RETURN_NAMES.get(value, "")
    if isinstance(header, PdsAck) and name == "ack_psn_offset":
        if header.flags & FLAG_PROBE:
            return f"probe {value & 0xFFFF}"
        return f"PSN {header.cack_psn + value & _PSN_MASK}"
    if isinstance(header, PdsRequest | PdsSyn) and name == "clear_psn_offset":
        return f"PSN {header.psn + value & _PSN_MASK}"
    units = {"mpr": (MPR_UNIT_UET, "PSNs"), "credit": (CREDIT_UNIT, "bytes"), "credit_target": (CREDIT_UNIT, "bytes")}
    if isinstance(header, PdsAckNscc):
        units |= {"service_time": (SERVICE_TICK_NS, "ns"), "rcvd_bytes": (CREDIT_UNIT, "bytes")}
    unit = units.get(name)
    return "" if unit is None else f"{value * unit[0]:,} {unit[1]}"


def _flags_of(header: Header) -> dict[int, str]:
    if isinstance(header, PdsAck | PdsNack):
        return _ACK_FLAGS
    if isinstance(header, PdsRequest | PdsSyn):
        return _REQUEST_FLAGS
    return _CONTROL_FLAGS if isinstance(header, PdsControl) else _SES_FLAGS


def is_uet_header(header: Header) -> bool:
    """Whether a header is one of UET's."""
    return type(header).__module__ == PdsRequest.__module__
