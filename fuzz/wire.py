"""Decoders of packets and captures: `packet`, `peek`, `header`, `endpoint`, `srh`, `pcapng`.

Whatever the bytes, a decoder returns or raises the one error of its kind, says why in a word that a counter can have,
and agrees with the other decoder of the same thing.
"""

from functools import cache
from io import BytesIO

from fuzz.script import Script, damaged
from fuzz.stage import QPN_OF, packets_of_each_kind
from mrcfabric.errors import ConfigError, WireError
from mrcfabric.wire import fastpath, pcapng
from mrcfabric.wire.ack_headers import Aeth, Neth, Seth
from mrcfabric.wire.bth import Bth
from mrcfabric.wire.data_headers import ImmDt, Meth, Reth, Tseth
from mrcfabric.wire.describe import describe
from mrcfabric.wire.dscp import Dscp, dscp_of
from mrcfabric.wire.endpoint_headers import Eeth, EethLow, EethTop, Erth, Peth, eeth_class
from mrcfabric.wire.entropy import EvOrder, ev_from_wire
from mrcfabric.wire.header import Header
from mrcfabric.wire.icrc import icrc_in_view_ok, icrc_ok
from mrcfabric.wire.ipv6 import Ipv6, Srh, Udp
from mrcfabric.wire.layout import (
    ACKNOWLEDGE,
    BTH_OFFSET,
    ENDPOINT_REQUEST,
    ENDPOINT_RESPONSE,
    EXTENSION_OFFSET,
    FLAG_TS,
    IMM_OPCODES,
    INNER_OFFSET,
    IPV6_SIZE,
    NACK,
    NEXT_HEADER_IPV6,
    NEXT_HEADER_ROUTING,
    PROBE,
    SACK,
    WRITE_ONLY_IMM,
)
from mrcfabric.wire.options import EETH_OP_HIGH, EETH_OP_LOW, EETH_OP_TOP, WireOptions
from mrcfabric.wire.packet import Packet, dissect, emit, parse
from mrcfabric.wire.srh import follows, strip

_HEADERS: tuple[type[Header], ...] = (
    Ipv6, Srh, Udp, Bth, Meth, Tseth, Reth, ImmDt, Aeth, Seth, Neth, Peth, Erth, Eeth, EethLow, EethTop,
)  # fmt: skip
_DSCP = Dscp()


@cache
def options_of(choice: int) -> WireOptions:
    """One of the four ways in which public descriptions read the same bytes."""
    return WireOptions(
        ev_order=EvOrder.PORT_HIGH if choice & 1 else EvOrder.PORT_LOW,
        eeth_op_shift=(EETH_OP_TOP if choice & 8 else EETH_OP_LOW) if choice & 2 else EETH_OP_HIGH,
    )


def packet(data: bytes) -> None:
    """The first byte chooses options, the rest is a packet: the complete parser and the description."""
    options, trimmed_ok, raw = _packet_of(data)
    try:
        found = parse(raw, trimmed_ok=trimmed_ok, options=options)
    except WireError as error:
        assert error.reason.isidentifier(), "a reason is a counter's name"
    else:
        if not trimmed_ok:
            # What parses is made of what it says, but for reserved bits.
            copy = Packet(found.headers, found.payload)
            assert parse(emit(copy), options=options) == copy
    description = describe(raw, options=options)
    assert description.size == len(raw)
    assert len(description.as_text()) < 20_000
    assert set(description.as_json()) >= {"size", "reason", "layers"}


def peek(data: bytes) -> None:
    """The same bytes through the packet path: it takes what the complete parser takes, and reads the same from it."""
    options, _, raw = _packet_of(data)
    trimmed = len(raw) > 1 and bool(_DSCP.trimmed_table()[dscp_of(raw)])
    full, full_reason = dissect(raw, trimmed_ok=trimmed, options=options)
    reason, _, opcode, flags, qp, psn, ev, start, size, source, state = fastpath.peeker(_DSCP, options=options)(raw)
    if full.find(Srh) is None:
        assert (reason is None) == (full_reason is None), f"fast path says {reason}, complete parser {full_reason}"
    if reason is not None:
        assert reason in fastpath.PEEK_REASONS
        return
    bth = full.get(Bth)
    assert (opcode, qp, psn) == (bth.opcode, bth.dest_qp, bth.psn)
    assert source == full.inner.source
    assert ev == ev_from_wire(full.inner.flow_label, full.get(Udp).source_port, options.ev_order)
    assert -1 <= size <= len(raw)
    assert (size == -1) == trimmed
    if size >= 0:
        assert icrc_ok(raw) == icrc_in_view_ok(memoryview(raw), INNER_OFFSET, state) == full.icrc_good
    read_fields(full, raw, opcode, flags, start, options)


def read_fields(full: Packet, raw: bytes, opcode: int, flags: int, start: int, options: WireOptions) -> None:
    """Every reader of the packet path against the header that the complete parser found."""
    if opcode <= WRITE_ONLY_IMM:
        meth, reth = full.get(Meth), full.get(Reth)
        if flags & FLAG_TS:
            rqmsn, msn, _, _, *place = fastpath.read_data_ts(raw)
        else:
            rqmsn, msn, *place = fastpath.read_data(raw)
        assert (rqmsn, msn) == (meth.rqmsn, meth.msn)
        assert place == [reth.va, reth.r_key, reth.dma_len]
        if opcode in IMM_OPCODES:
            assert fastpath.read_imm(raw, start) == full.get(ImmDt).immediate
    elif opcode == SACK:
        seth = full.get(Seth)
        assert fastpath.read_sack(raw)[:8] == (
            seth.m, seth.pr, seth.ack_psn_offset, seth.entropy, seth.cack_psn, seth.mpr, seth.sack_offset,
            seth.sack_bitmap,
        )  # fmt: skip
    elif opcode == ACKNOWLEDGE:
        assert fastpath.read_aeth(raw) == (full.get(Aeth).syndrome, full.get(Aeth).msn)
    elif opcode == NACK:
        neth = full.get(Neth)
        assert fastpath.read_nack(raw) == (neth.nack_reason, neth.entropy, neth.nack_psn, neth.tx_timestamp)
    elif opcode == PROBE:
        assert fastpath.read_probe(raw) == (full.get(Peth).probe_id, full.get(Peth).tx_timestamp)
    elif opcode == ENDPOINT_REQUEST:
        erth = full.get(Erth)
        assert fastpath.read_endpoint_request(raw) == (erth.op, erth.port_status_mask, erth.tx_timestamp)
    else:
        assert opcode == ENDPOINT_RESPONSE
        eeth = full.get(eeth_class(options))
        assert fastpath.read_endpoint_response(raw, options) == (eeth.op, eeth.tx_timestamp)


def header(data: bytes) -> None:
    """The first byte chooses a header: it is read, or refused as truncated, and written back as it was."""
    kind = _HEADERS[data[0] % len(_HEADERS)] if data else Ipv6
    raw = data[1:]
    try:
        found = kind.parse(raw)
    except WireError as error:
        assert error.reason == "truncated"
        assert len(raw) < kind.SIZE
        return
    again = found.emit()
    assert len(again) == kind.SIZE
    assert kind.parse(again) == found


def endpoint(data: bytes) -> None:
    """An endpoint packet's extension header, through both readers and in both layouts of the response."""
    raw = bytes(EXTENSION_OFFSET) + data[:64].ljust(64, b"\0")
    view = raw[EXTENSION_OFFSET:]
    request = Erth.parse(view)
    assert fastpath.read_endpoint_request(raw) == (request.op, request.port_status_mask, request.tx_timestamp)
    for choice in range(4):
        options = options_of(choice)
        response = eeth_class(options).parse(view)
        assert fastpath.read_endpoint_response(raw, options) == (response.op, response.tx_timestamp)


def srh(data: bytes) -> None:
    """A packet with a segment routing header (the first 24 bytes) between its two IPv6 headers."""
    script = Script(data[24:])
    base = script.one_of(packets_of_each_kind())
    inside = damaged(script, base, packets_of_each_kind(), ())[IPV6_SIZE:]
    outer = bytearray(base[:IPV6_SIZE])
    outer[6] = NEXT_HEADER_ROUTING
    if data[:1] and data[0] & 1:
        outer[4:6] = (len(inside) + Srh.SIZE & 0xFFFF).to_bytes(2, "big")
    raw = bytes(outer) + bytes([NEXT_HEADER_IPV6, *data[1:24]]).ljust(Srh.SIZE, b"\0") + bytes(inside)
    found, reason = dissect(raw, trimmed_ok=bool(data[:1] and data[0] & 2))
    assert reason is None or reason.isidentifier()
    assert found.find(Srh) is not None or reason is not None
    describe(raw)
    fast = fastpath.peeker(_DSCP)(raw)
    assert fast[0] is None or fast[0] in fastpath.PEEK_REASONS
    stripped = strip(raw) if follows(raw) else None
    if stripped is not None:
        assert len(stripped) == len(raw) - Srh.SIZE
        plain, why = dissect(stripped, trimmed_ok=True)
        if reason is None and why is None:
            # All but the outer header, whose length and next header tell of the SRH, is as it was.
            assert plain.headers[1:] == [one for one in found.headers[1:] if not isinstance(one, Srh)]


def captures(data: bytes) -> None:
    """A capture file: packets, or one `ConfigError` that names the place."""
    size = 0
    try:
        for one in pcapng.captured(BytesIO(data), "capture"):
            size += len(one.packet)
            assert one.packet or one.skipped
            assert one.cut_bytes >= 0
            describe(one.packet, left_out=one.cut_bytes)
    except ConfigError as error:
        assert error.where.startswith("capture")
    assert size <= len(data), "no more comes out than went in"


def packet_seeds() -> list[bytes]:
    """The traffic of the stage: one packet of each kind, plain, trimmed and spoilt."""
    found = [b"\0" + one for one in packets_of_each_kind()]
    for number, one in enumerate(packets_of_each_kind()):
        plan = bytes((37 * number + 11 * step) & 0xFF for step in range(24))
        copy = damaged(Script(plan), one, packets_of_each_kind(), tuple(QPN_OF.values()))
        found += [bytes([number & 7]) + bytes(copy), b"\4" + one[:200]]
    return found


def header_seeds() -> list[bytes]:
    """For every header the bytes of a packet from its BTH on."""
    return [bytes([number]) + packets_of_each_kind()[number % len(packets_of_each_kind())][BTH_OFFSET:][:80]
            for number in range(len(_HEADERS))]  # fmt: skip


def endpoint_seeds() -> list[bytes]:
    """The extension headers of every kind of packet."""
    return [one[EXTENSION_OFFSET : EXTENSION_OFFSET + 64] for one in packets_of_each_kind()]


def srh_seeds() -> list[bytes]:
    """A good header before every kind of packet, and one that lies."""
    good = bytes([1, 2, 4, 0, 0, 0, 0, 0]) + bytes(16)
    return [good + bytes([number]) for number in range(len(packets_of_each_kind()))] + [b"\3\xff" * 16]


def capture_seeds() -> list[bytes]:
    """A capture of raw IPv6 with every kind of packet, in both byte orders, and one of Ethernet frames."""
    return [_capture(order, link) for order in ("little", "big") for link in (pcapng.LINK_IPV6, pcapng.LINK_ETHERNET)]


def _capture(order: str, link_type: int) -> bytes:
    def number(value: int, size: int = 4) -> bytes:
        return value.to_bytes(size, "little" if order == "little" else "big")

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = number(len(body) + 12)
        return number(kind) + length + body + length

    section = number(pcapng.BYTE_ORDER_MAGIC) + number(1, 2) + number(0, 2) + b"\xff" * 8
    file = block(pcapng.SECTION_HEADER, section) + block(pcapng.INTERFACE, number(link_type, 2) + bytes(6))
    for one in packets_of_each_kind():
        frame = one if link_type == pcapng.LINK_IPV6 else bytes(12) + b"\x86\xdd" + one
        file += block(pcapng.ENHANCED_PACKET, bytes(12) + number(len(frame)) * 2 + frame)
    return file


def _packet_of(data: bytes) -> tuple[WireOptions, bool, bytes]:
    """Bits 0 and 1 of the first byte choose options, bit 2 allows a cut; the rest is the packet."""
    head = data[0] if data else 0
    return options_of(head & 3), bool(head & 4), data[1:]
