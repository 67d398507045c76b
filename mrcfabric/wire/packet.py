"""Whole packets: the complete parser and emitter, for people, tools and tests.

A packet is a list of headers in the order of the wire, a payload and an ICRC. Owns the order of layers, the lengths and
the padding; field tables are in the header modules, sums in `mrcfabric.wire.icrc`. The packet path has its own readers
and builders (`fastpath`, `templates`), which accept and produce the same bytes; tests compare them.

Sources: MRC 1.0 7.5 (layer order in SRv6 mode), RFC 8200, RFC 8754, IBTA annex A17.
"""

from dataclasses import dataclass, field
from typing import TypeVar

from mrcfabric.errors import WireError
from mrcfabric.units import Buffer
from mrcfabric.wire import icrc
from mrcfabric.wire.ack_headers import Aeth, Neth, Seth
from mrcfabric.wire.bth import Bth
from mrcfabric.wire.data_headers import ImmDt, Meth, Reth, Tseth
from mrcfabric.wire.endpoint_headers import Erth, Peth, eeth_class
from mrcfabric.wire.fastpath import (
    BAD_LENGTH,
    BAD_OPCODE,
    BAD_PADDING,
    BAD_TVER,
    FOREIGN_PORT,
    NO_IPV6,
    NO_TUNNEL,
    NO_UDP,
    TRUNCATED,
)
from mrcfabric.wire.header import Header
from mrcfabric.wire.ipv6 import SRH_LENGTH, SRH_ROUTING_TYPE, Ipv6, Srh, Udp
from mrcfabric.wire.layout import (
    ACKNOWLEDGE,
    DATA_OPCODES,
    ENDPOINT_REQUEST,
    ENDPOINT_RESPONSE,
    ICRC_SIZE,
    IMM_OPCODES,
    IPV6_SIZE,
    NACK,
    NEXT_HEADER_IPV6,
    NEXT_HEADER_ROUTING,
    NEXT_HEADER_UDP,
    PROBE,
    SACK,
)
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions

BAD_SRH = "srh"
BAD_ICRC = "icrc"

H = TypeVar("H", bound=Header)

_CONTROL: dict[int, type[Header]] = {ACKNOWLEDGE: Aeth, ENDPOINT_REQUEST: Erth, SACK: Seth, NACK: Neth, PROBE: Peth}


@dataclass(slots=True)
class Packet:
    """One packet, as far as it could be read."""

    headers: list[Header] = field(default_factory=list)
    """From the outer IPv6 header to the last extension header."""
    payload: bytes = b""
    """Without padding. Of a cut packet, the part that arrived."""
    icrc: int | None = None
    """As received; None if it was cut away, and before `emit`."""
    icrc_good: bool | None = None
    missing: int = 0
    """Bytes cut off the end in flight, by the outer header's length."""
    left_out: int = 0
    """Bytes at the end that were there in flight and that the capture did not keep."""
    carried: int = 0
    """Payload bytes in flight: fewer than `sent` if the packet was trimmed, more than `payload` has if the capture left
    some out."""
    sent: int = 0
    """Payload bytes as sent, by the lengths in the headers; 0 where they are unknown."""

    def find(self, kind: type[H]) -> H | None:
        """The first header of this kind, None when the packet has none."""
        for header in self.headers:
            if isinstance(header, kind):
                return header
        return None

    def get(self, kind: type[H]) -> H:
        """The first header of this kind; the caller knows that the packet has one."""
        header = self.find(kind)
        assert header is not None, f"no {kind.__name__}"
        return header

    @property
    def outer(self) -> Ipv6:
        """The IPv6 header whose destination is the container."""
        return self.get(Ipv6)

    @property
    def inner(self) -> Ipv6:
        """The IPv6 header between the NICs."""
        return [header for header in self.headers if isinstance(header, Ipv6)][1]


def extensions(opcode: int, ts: bool, options: WireOptions = DEFAULT_OPTIONS) -> tuple[type[Header], ...]:
    """The headers that follow a BTH with this opcode and `ts` flag.

    WireError `opcode` for a combination MRC does not have.
    """
    if opcode in DATA_OPCODES:
        first: tuple[type[Header], ...] = (Meth, Tseth, Reth) if ts else (Meth, Reth)
        return (*first, ImmDt) if opcode in IMM_OPCODES else first
    if ts:
        raise WireError(BAD_OPCODE)
    if opcode == ENDPOINT_RESPONSE:
        return (eeth_class(options),)
    if opcode not in _CONTROL:
        raise WireError(BAD_OPCODE)
    return (_CONTROL[opcode],)


def parse(buf: Buffer, *, trimmed_ok: bool = False, options: WireOptions = DEFAULT_OPTIONS) -> Packet:
    """The packet in `buf`, from its outer IPv6 header to its end.

    `trimmed_ok`: bytes may be missing behind the headers, and the ICRC is not checked. Otherwise the packet is whole
    and its ICRC good. Raises WireError with a reason that is the name of a counter, and no other error.
    """
    packet, reason = dissect(buf, trimmed_ok=trimmed_ok, options=options)
    if reason is None and not trimmed_ok and not packet.icrc_good:
        reason = BAD_ICRC
    if reason is not None:
        raise WireError(reason)
    return packet


class _LeftOutError(Exception):
    """The capture ends before this header, which the packet had."""


def dissect(
    buf: Buffer, *, trimmed_ok: bool = False, options: WireOptions = DEFAULT_OPTIONS, left_out: int = 0
) -> tuple[Packet, str | None]:
    """The packet as far as it can be read, and the reason why not further. Never raises; the ICRC is only reported.

    `left_out`: how many bytes at the end the capture did not keep; a packet is not malformed because of them.
    """
    packet = Packet(left_out=left_out)
    view = memoryview(buf)
    try:
        start = _network(packet, view, options)
        start = _transport(packet, view, start, options)
        _contents(packet, view, start, trimmed_ok)
    except WireError as error:
        return packet, error.reason
    except _LeftOutError:
        pass
    return packet, None


def _take(packet: Packet, kind: type[H], view: memoryview, start: int) -> H:
    if len(view) < start + kind.SIZE <= len(view) + packet.left_out:
        raise _LeftOutError
    header = kind.parse(view[start:])
    packet.headers.append(header)
    return header


def _network(packet: Packet, view: memoryview, options: WireOptions) -> int:
    """Both IPv6 headers and UDP; returns where the BTH starts."""
    outer = _take(packet, Ipv6, view, 0)
    if outer.version != 6:
        raise WireError(NO_IPV6)
    packet.missing = max(0, IPV6_SIZE + outer.payload_length - len(view) - packet.left_out)
    start, tunnelled = IPV6_SIZE, outer.next_header
    if tunnelled == NEXT_HEADER_ROUTING:
        srh = _take(packet, Srh, view, start)
        if srh.header_length != SRH_LENGTH or srh.routing_type != SRH_ROUTING_TYPE:
            raise WireError(BAD_SRH)
        start, tunnelled = start + Srh.SIZE, srh.next_header
    if tunnelled != NEXT_HEADER_IPV6:
        raise WireError(NO_TUNNEL)
    inner = _take(packet, Ipv6, view, start)
    if inner.version != 6:
        raise WireError(NO_IPV6)
    if inner.next_header != NEXT_HEADER_UDP:
        raise WireError(NO_UDP)
    start += IPV6_SIZE
    udp = _take(packet, Udp, view, start)
    if udp.destination_port not in options.udp_ports_accepted:
        raise WireError(FOREIGN_PORT)
    if inner.payload_length != udp.length or outer.payload_length != start - IPV6_SIZE + udp.length:
        raise WireError(BAD_LENGTH)
    return start + Udp.SIZE


def _transport(packet: Packet, view: memoryview, start: int, options: WireOptions) -> int:
    """Read BTH and the headers that its opcode requires; returns where the payload starts."""
    bth = _take(packet, Bth, view, start)
    start += Bth.SIZE
    kinds = extensions(bth.opcode, bool(bth.ts), options)
    if bth.tver:
        raise WireError(BAD_TVER)
    for kind in kinds:
        _take(packet, kind, view, start)
        start += kind.SIZE
    return start


def _contents(packet: Packet, view: memoryview, start: int, trimmed_ok: bool) -> None:
    """Read payload, padding and ICRC, and check them against the lengths in the headers."""
    end = IPV6_SIZE + packet.outer.payload_length
    arrived = len(view) + packet.left_out
    if arrived > end:
        raise WireError(BAD_LENGTH)
    if packet.missing and not trimmed_ok:
        raise WireError(TRUNCATED)
    bth = packet.get(Bth)
    padding = bth.pad_count
    size = end - start - ICRC_SIZE - padding
    if not packet.missing and not trimmed_ok:
        if size < 0 or (bth.opcode not in DATA_OPCODES and (size or padding)):
            raise WireError(BAD_LENGTH)
        if (size + padding) % 4:
            raise WireError(BAD_PADDING)
    packet.sent = max(0, size)
    packet.carried = min(packet.sent, arrived - start)
    packet.payload = bytes(view[start : start + packet.sent])
    if not packet.missing and not packet.left_out and size >= 0:
        packet.icrc = int.from_bytes(view[-ICRC_SIZE:], "little")
        packet.icrc_good = packet.icrc == _sum(packet, view)


def _inner_start(packet: Packet) -> int:
    return IPV6_SIZE + (Srh.SIZE if packet.find(Srh) else 0)


def _sum(packet: Packet, view: Buffer) -> int:
    """The ICRC. It covers nothing in front of the inner header, so an SRH does not change it."""
    return icrc.icrc(view[_inner_start(packet) - IPV6_SIZE :])


def emit(packet: Packet) -> bytearray:
    """The bytes of a packet.

    Computes lengths, pad count and ICRC from the contents and overwrites those in the headers of `packet`.
    """
    bth, udp = packet.get(Bth), packet.get(Udp)
    bth.pad_count = -len(packet.payload) % 4
    after = packet.headers[packet.headers.index(udp) :]
    udp.length = sum(header.SIZE for header in after) + len(packet.payload) + bth.pad_count + ICRC_SIZE
    packet.inner.payload_length = udp.length
    packet.outer.payload_length = udp.length + _inner_start(packet)
    out = bytearray().join([header.emit() for header in packet.headers])
    out += packet.payload + bytes(bth.pad_count) + bytes(ICRC_SIZE)
    packet.icrc = _sum(packet, out)
    packet.icrc_good, packet.missing, packet.left_out = True, 0, 0
    packet.sent = packet.carried = len(packet.payload)
    out[-ICRC_SIZE:] = packet.icrc.to_bytes(ICRC_SIZE, "little")
    return out
