"""RoCE packets and link control frames: `roce`, `pfc`.

Whatever the bytes, a reader returns, says why in a word that a counter can have, and agrees with the other reader of
the same thing.
"""

from functools import cache

from fuzz.script import Script, damaged
from fuzz.stage import QPN_OF, packets_of_each_kind
from mrcfabric.naming import nic_address
from mrcfabric.wire import pfc, pfc_headers, roce_packet
from mrcfabric.wire.ack_headers import Aeth
from mrcfabric.wire.data_headers import ImmDt, Reth
from mrcfabric.wire.describe import describe
from mrcfabric.wire.ipv6 import Ipv6, Udp
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.roce import (
    RC_PEEK_REASONS,
    CnpTemplate,
    RcDataTemplate,
    RcPeek,
    rc_icrc_ok,
    rc_peeker,
    read_rc_aeth,
    read_rc_imm,
    read_reth,
    read_selective_aeth,
)
from mrcfabric.wire.roce_headers import RcBth, SelectiveAck
from mrcfabric.wire.roce_layout import (
    RC_ACK,
    RC_DATA_OPCODES,
    RC_IMM_OPCODES,
    RC_STARTS,
)
from mrcfabric.wire.usid import build

_CONTAINER = build(0xFCBBBB00, (0x4001, 0x8002, 0x4003, 0xC004))


@cache
def _peeker(selective: bool) -> RcPeek:
    return rc_peeker(selective=selective)


def roce(data: bytes) -> None:
    """Bit 0 of the first byte: both ends are selective; the rest is a packet, through both readers and the words."""
    selective, raw = bool(data[:1] and data[0] & 1), data[1:]
    full, full_reason = roce_packet.dissect(raw, selective=selective)
    reason, traffic_class, opcode, qp, psn, flags, start, size, source, sport = _peeker(selective)(raw)
    assert (reason is None) == (full_reason is None), f"packet path says {reason}, complete parser {full_reason}"
    assert full_reason is None or full_reason.isidentifier()
    words = describe(raw, selective=selective)
    assert len(words.as_text()) < 20_000
    assert set(words.as_json()) >= {"size", "reason", "layers"}
    if reason is not None:
        assert reason in RC_PEEK_REASONS
        return
    bth = full.get(RcBth)
    assert (opcode, qp, psn, flags >> 7) == (bth.opcode, bth.dest_qp, bth.psn, bth.a)
    addresses = [header.source for header in full.headers if isinstance(header, Ipv6)]
    assert (traffic_class, source, sport) == (full.outer.traffic_class, addresses[-1], full.get(Udp).source_port)
    assert raw[start : start + size] == full.payload
    assert rc_icrc_ok(raw) == full.icrc_good
    if opcode in RC_STARTS or (selective and opcode in RC_DATA_OPCODES):
        reth = full.get(Reth)
        assert read_reth(raw, opcode, start) == (reth.va, reth.r_key, reth.dma_len)
    if opcode in RC_IMM_OPCODES:
        assert read_rc_imm(raw, start) == full.get(ImmDt).immediate
    if opcode == RC_ACK:
        aeth = full.get(Aeth)
        if selective:
            assert read_selective_aeth(raw, start) == (aeth.syndrome, aeth.msn, full.get(SelectiveAck).cause_psn)
        else:
            assert read_rc_aeth(raw, start) == (aeth.syndrome, aeth.msn)


def link_control(data: bytes) -> None:
    """A link control frame: as it is, and with a good check sequence in place of its last four bytes."""
    for frame in (data, pfc.with_fcs(data[: -pfc.FCS_BYTES])):
        why, found = pfc.fault(frame), pfc.parse(frame)
        assert (found is None) == (why is not None)
        assert why is None or why in pfc.PFC_REASONS
        _, reason = pfc_headers.dissect(frame)
        assert reason == why or len(frame) == pfc.PFC_FRAME_BYTES - pfc.FCS_BYTES
        assert describe(ControlFrame(frame)).as_text()
        assert _peeker(False)(ControlFrame(frame))[0] is not None or len(frame) >= 64
        if found is None:
            continue
        quanta = {one: found.quanta[one] for one in range(pfc.CLASSES) if found.enabled >> one & 1}
        again = pfc.parse(pfc.encode(found.source, quanta))
        assert again is not None
        assert (again.enabled, again.source) == (found.enabled, found.source)
        for one, time in quanta.items():
            assert again.quanta[one] == time
            assert pfc.pause_ns(time, 100 * 10**9) >= 0


def roce_seeds() -> list[bytes]:
    """One packet of each opcode, plain and pinned, of both kinds of ends, and spoilt copies."""
    found = []
    for selective in (False, True):
        packets = [packet for outer in (None, _CONTAINER) for packet in _of_each_opcode(outer, selective)]
        found += [bytes([selective]) + packet for packet in packets]
        for number, packet in enumerate(packets):
            plan = bytes((41 * number + 13 * step) & 0xFF for step in range(24))
            copy = damaged(Script(plan), packet, packets_of_each_kind(), tuple(QPN_OF.values()))
            found.append(bytes([selective]) + bytes(copy))
    return found


def _of_each_opcode(outer: bytes | None, selective: bool) -> list[bytes]:
    near, far = nic_address(0), nic_address(1)
    there = RcDataTemplate(near, far, 0x11, 0xC001, dscp=26, outer=outer, selective=selective)
    back = CnpTemplate(far, near, 0x12, 0xC002, dscp=48, outer=outer, selective=selective)
    packets = [
        there.make(opcode, opcode, bytes(opcode * 5), 1 << 40, 7, 9_000, True, 3 if opcode in RC_IMM_OPCODES else None)
        for opcode in sorted(RC_DATA_OPCODES)
    ]
    return [bytes(packet) for packet in (*packets, back.ack(5, 6), back.ack(5, 6, 0x60, 7), back.cnp())]


def link_control_seeds() -> list[bytes]:
    """Pauses of no class, of one and of all, one cut short, and a packet."""
    pauses = [pfc.encode(bytes(6), quanta) for quanta in ({}, {3: 0xFFFF}, dict.fromkeys(range(8), 7), {0: 0})]
    return [*map(bytes, pauses), bytes(pauses[1][:60]), packets_of_each_kind()[0][:64]]
