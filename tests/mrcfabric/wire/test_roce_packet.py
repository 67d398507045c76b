"""The complete parser of RoCE packets, and the packet path beside it: they take the same bytes and read the same."""

import random

import pytest

from mrcfabric.naming import nic_address
from mrcfabric.wire.ack_headers import Aeth
from mrcfabric.wire.data_headers import ImmDt, Reth
from mrcfabric.wire.ipv6 import Ipv6, Udp
from mrcfabric.wire.roce import (
    CnpTemplate,
    RcDataTemplate,
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
    RC_OPCODE_NAMES,
    RC_STARTS,
    extension_size,
)
from mrcfabric.wire.roce_packet import dissect, is_roce, rc_extensions
from mrcfabric.wire.usid import build
from tests.support.packets import one_of_each
from tests.support.roce_packets import one_of_each_rc

CONTAINER = build(0xFCBBBB00, (0x4001, 0xC004))
OUTERS = pytest.mark.parametrize("outer", [None, CONTAINER], ids=["plain", "pinned"])
SELECTIVE = pytest.mark.parametrize("selective", [False, True], ids=["rc", "selective"])


@SELECTIVE
def test_the_two_know_the_same_sizes(selective: bool) -> None:
    for opcode in RC_OPCODE_NAMES:
        assert sum(kind.SIZE for kind in rc_extensions(opcode, selective)) == extension_size(opcode, selective)


@SELECTIVE
@OUTERS
def test_both_readers_read_the_same(outer: bytes | None, selective: bool) -> None:
    peek = rc_peeker(selective=selective)
    for raw in one_of_each_rc(outer, selective):
        packet, reason = dissect(raw, selective=selective)
        found, traffic, opcode, qp, psn, flags, start, size, source, sport = peek(raw)
        assert reason is found is None
        assert packet.icrc_good
        assert rc_icrc_ok(raw)
        bth = packet.get(RcBth)
        assert (opcode, qp, psn, flags >> 7) == (bth.opcode, bth.dest_qp, bth.psn, bth.a)
        assert (traffic, source) == (packet.outer.traffic_class, packet.get(Ipv6).source)
        assert sport == packet.get(Udp).source_port
        assert raw[start : start + size] == packet.payload
        if opcode in RC_STARTS or (selective and opcode in RC_DATA_OPCODES):
            reth = packet.get(Reth)
            assert read_reth(raw, opcode, start) == (reth.va, reth.r_key, reth.dma_len)
        if opcode in RC_IMM_OPCODES:
            assert read_rc_imm(raw, start) == packet.get(ImmDt).immediate
        if opcode == RC_ACK and selective:
            aeth = packet.get(Aeth)
            assert read_selective_aeth(raw, start) == (aeth.syndrome, aeth.msn, packet.get(SelectiveAck).cause_psn)
        elif opcode == RC_ACK:
            assert read_rc_aeth(raw, start) == (packet.get(Aeth).syndrome, packet.get(Aeth).msn)


@SELECTIVE
@OUTERS
def test_both_readers_refuse_the_same_of_spoilt_packets(outer: bytes | None, selective: bool) -> None:
    draw = random.Random(11)
    peek = rc_peeker(selective=selective)
    originals = one_of_each_rc(outer, selective)
    good = 0
    for _ in range(6_000):
        raw = bytearray(draw.choice(originals))
        for _ in range(draw.randrange(3)):
            raw[draw.choice((draw.randrange(len(raw)), draw.randrange(100))) % len(raw)] = draw.randrange(256)
        if draw.random() < 0.2:
            raw = raw[: draw.randrange(len(raw) + 1)]
        _, reason = dissect(raw, selective=selective)
        found = peek(raw)[0]
        assert (reason is None) == (found is None), (reason, found, raw.hex())
        good += found is None
    assert good > 1_000


@OUTERS
def test_every_length_is_read_as_far_as_it_goes(outer: bytes | None) -> None:
    for raw in one_of_each_rc(outer):
        for size in range(len(raw)):
            assert dissect(raw[:size])[1] == "truncated"
            assert dissect(raw[:size], left_out=len(raw) - size)[1] is None
        assert dissect(raw + b"\0\0\0\0")[1] == "length"


def test_packets_of_mrc_are_none_of_roce() -> None:
    assert not any(is_roce(raw) for raw in one_of_each().values())
    assert all(is_roce(raw) for outer in (None, CONTAINER) for raw in one_of_each_rc(outer))
    assert not is_roce(b"")
    assert all(dissect(raw)[1] for raw in one_of_each().values())


def test_acknowledgements_carry_nothing() -> None:
    raw = bytearray(CnpTemplate(nic_address(0), nic_address(1), 5, 0xC000, dscp=48).ack(1, 2))
    for place in (5, 45):
        raw[place] += 4
    assert dissect(bytes(raw) + bytes(4))[1] == rc_peeker()(bytes(raw) + bytes(4))[0] == "length"


def test_a_foreign_port_is_no_roce() -> None:
    raw = RcDataTemplate(nic_address(0), nic_address(1), 5, 0xC000, dscp=26).make(7, 1, b"abcd")
    raw[42] = 0
    assert dissect(raw)[1] == "udp_port"
