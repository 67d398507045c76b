"""InfiniBand: packets behind an LRH and link packets through every reader (`lrh`), and through two cores (`credited`).

Whatever the bytes, nothing raises, both readers of a packet agree, what is dropped has a name, and no buffer holds more
than it has room for.
"""

from dataclasses import replace
from functools import cache
from typing import Any

from fuzz.script import Script
from mrcfabric.node import Input, Rank
from mrcfabric.packet_filter import KINDS, PacketFilter
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from mrcfabric.wire import lrh_headers, routing_notice, smp
from mrcfabric.wire.describe import describe
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.fastpath import FOREIGN_PARTITION
from mrcfabric.wire.flow_control import INIT, NORMAL, encode, parse
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh import LEAST, lrh_icrc, with_vcrc
from mrcfabric.wire.lrh_rc import LRH_PEEK_REASONS, LrhControlTemplate, LrhDataTemplate, LrhPeeker
from mrcfabric.wire.options import WireOptions
from mrcfabric.wire.roce_headers import RcBth
from mrcfabric.wire.roce_layout import NAK_SEQUENCE, RC_DATA_OPCODES
from nicd.compose import nic_config
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp, RegisterMemory, StartManager
from nicd.core.nic import Nic
from switchd.compose import switch_config
from switchd.core.build import build_switch

_QPN = 100
_TOPOLOGY = Topology(
    name="fuzz", planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=8, reserve_evs_per_qp=0,
    nic={"transport": "rc", "rc_path": "lid", "cc": "none", "apm": True, "lid_lmc": 1},
    switch={"forwarding": "lft", "lossless": "credits", "vl_blocks": 130, "adaptive": "flowlet", "shield": True,
            "flfn": True, "arn": True, "arn_bytes": 2_000},
)  # fmt: skip
_WAY = (4, 2)
"""LIDs of NIC 1 and NIC 0."""


@cache
def _packets() -> tuple[bytes, ...]:
    """One of each kind, to NIC 0."""
    there, back = LrhDataTemplate(*_WAY, _QPN), LrhControlTemplate(*_WAY, _QPN)
    made = [there.make(opcode, 5, bytes(61), 1 << 20, 1, 61, True, 7) for opcode in sorted(RC_DATA_OPCODES)]
    made += [back.ack(5, 6), back.ack(5, 6, NAK_SEQUENCE)]
    asked = [smp.request(method, attribute, (1, 1), 9) for method in (smp.GET, smp.SET)
             for attribute in (smp.NODE_INFO, smp.PORT_INFO, smp.SWITCH_INFO, smp.LFT, smp.SM_INFO)]  # fmt: skip
    made += [smp.encode(one) for one in (*asked, smp.answer(asked[0]), replace(asked[1], hop_pointer=1))]
    made.append(smp.encode(smp.trap(b"x"), *_WAY))
    return tuple(bytes(one) for one in made)


def lrh_seeds() -> list[bytes]:
    """Packets and link packets as they are sent."""
    notices = [bytes(routing_notice.encode(kind, ((3, 2), (9, 1)), 640)) for kind in range(len(routing_notice.KINDS))]
    return [*_packets(), bytes(encode(INIT, 1, 0, 9)), bytes(encode(NORMAL, 0, 7, 300)), *notices]


def lrh(data: bytes) -> None:
    """A packet through the packet path's reader, the complete one, the words, and a filter."""
    full, full_reason = lrh_headers.dissect_lrh(data)
    reason, _, opcode, qpn, psn, _, start, size, _, _ = LrhPeeker()(data)
    managed = full.find(smp.Smp) is not None
    if reason is None:
        assert full_reason is None, full_reason
        bth = full.get(RcBth)
        assert (opcode, qpn, psn) == (bth.opcode, bth.dest_qp, bth.psn)
        assert data[start : start + size] == full.payload
    else:
        assert reason in LRH_PEEK_REASONS
        assert full_reason is not None or managed or reason == FOREIGN_PARTITION
    for infiniband in (False, True):
        words = describe(data, infiniband=infiniband)
        assert len(words.as_text()) < 20_000
        assert set(words.as_json()) >= {"size", "reason", "layers"}
    PacketFilter(kinds=KINDS, peers=(0,)).matcher(Dscp(), WireOptions(lid_lmc=1))(data)
    assert (parse(data) is None) == (lrh_headers.dissect_link(data)[1] is not None)
    smp.parse(data)
    notice = routing_notice.parse(data)
    assert (notice is None) == (routing_notice.fault(data) is not None)
    assert notice is None or parse(data) is None, "no frame is both"


def core_seeds() -> list[bytes]:
    """Scripts: for each step a port, a kind, and what to change."""
    return [bytes((seed * step) % 256 for step in range(1, 90)) for seed in (1, 3, 7, 11, 29, 53, 91)]


def credited(data: bytes) -> None:
    """A NIC and a T0, each fed with what the script makes of packets; no step may raise or overfill a buffer."""
    script = Script(data)
    nic = Nic(nic_config(_TOPOLOGY, "h000"))
    switch = build_switch(switch_config(_TOPOLOGY, "p0-t0-0"))
    orders = [
        RegisterMemory(1, 1 << 20, 1 << 16, 1, 1), CreateQp(2, _QPN), ConnectQp(3, _QPN, 1, _QPN, 0, 0),
        ModifyQp(4, _QPN, "rts"), StartManager(5, 0),
    ]  # fmt: skip
    nic.advance([Input(10, Rank.COMMAND, -1, number, order) for number, order in enumerate(orders)], 20)
    now: Instant = 1_000
    number = 0
    while script.left and number < 40:
        number += 1
        now += 1 + script.below(2_000)
        for core, ports in ((nic, 1), (switch, 4)):
            core.advance([Input(now, Rank.FRAME, script.below(ports), number, _frame(script))], now)
            core.drain_events()
            _inside(core)
    for core in (nic, switch):
        core.advance([], now + 1_000_000)
        _inside(core)


def _frame(script: Script) -> bytearray | ControlFrame:
    kind = script.below(9)
    if kind == 8:
        ranges = tuple((1 + script.below(9), 1 + script.below(9)) for _ in range(1 + script.below(3)))
        notice = routing_notice.encode(script.below(3), ranges, script.number(2))
        return notice if script.below(4) else ControlFrame(bytes(notice[:-1]) + script.take(1))
    if kind == 0:
        return ControlFrame(script.take(6))
    if kind == 1:
        return encode(script.below(2), script.below(16), script.number(2), script.number(2))
    packet = bytearray(script.one_of(_packets()))
    for _ in range(script.below(4)):
        packet[script.below(len(packet))] = script.number()
    if kind == 2:
        del packet[script.below(len(packet)) :]
    elif kind > 4 and len(packet) >= LEAST:
        # Whoever checks sums must not be what keeps all else from being tried.
        packet[-6:-2] = lrh_icrc(packet).to_bytes(4, "little")
        del packet[-2:]
        with_vcrc(packet)
    return packet


def _inside(core: Any) -> None:
    ports: Any = core._board.ports.egress if isinstance(core, Nic) else core.egress
    for port in ports:
        for vl, blocks in enumerate(port.credits.blocks):
            held = port.credits.held[vl]
            assert 0 <= held <= blocks, f"port {port.port} VL {vl}: {held} of {blocks}"
    drops = core.counters()["drops"]
    assert all(name and count >= 0 for name, count in drops.items())
