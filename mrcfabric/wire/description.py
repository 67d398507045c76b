"""The description of a packet: layers of fields with their meanings, as lines of text and as JSON.

Owns the shape; `describe` fills it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from typing import Any

from mrcfabric.wire.header import Value
from mrcfabric.wire.layout import ICRC_SIZE
from mrcfabric.wire.packet import Packet

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
        "dlid",
        "slid",
        "lpcrc",
        "vcrc",
        "attribute",
        "transaction_id",
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
