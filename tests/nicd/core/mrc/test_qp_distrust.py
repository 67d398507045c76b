"""What a QP must not believe, must not keep, and must not take from a neighbour: a test for each mistake once made."""

import pytest

from mrcfabric.topology import Topology
from mrcfabric.wire.fastpath import read_sack
from mrcfabric.wire.layout import (
    ACKNOWLEDGE,
    ENDPOINT_REQUEST,
    FLAG_RTX,
    M_ALWAYS_SKIP,
    M_SKIP_ONCE,
    OP_EV_PROBE,
    OP_PORT_STATUS,
    PSN_MASK,
    SACK,
    SYNDROME_ACK,
    WRITE_ONLY_IMM,
)
from nicd.core.ev_state import EvState
from nicd.core.events import Completion
from nicd.core.mrc.requestor import HALF_PSN
from tests.nicd.core.bench import PSN_RECEIVE, PSN_SEND, Bench
from tests.nicd.core.fabric import READY_NS, Fabric
from tests.nicd.core.mrc.test_responder import EV, Far


@pytest.mark.spec("MRC 1.0", "3")
def test_a_message_completes_only_when_its_packets_are_acknowledged() -> None:
    bench = Bench()
    bench.post(0, 8_192)
    for now in (0, 1_000):
        bench.pump(now)
    requestor = bench.link.requestor
    assert requestor.inflight_packets == 2
    assert not requestor.on_ack(2_000, PSN_SEND, SYNDROME_ACK, 1)
    assert bench.told(Completion) == []
    assert requestor.on_ack(2_001, (PSN_SEND + 1) & PSN_MASK, SYNDROME_ACK, 1)
    assert [event.status for event in bench.told(Completion)] == ["ok"]
    assert requestor.windows.inflight_bytes == 0


@pytest.mark.slow
def test_qps_that_share_a_window_share_it_fairly() -> None:
    """The later QP is posted to while the earlier one fills the window, and has nothing of its own in flight."""
    pair = Topology(
        name="pair", planes=2, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=8,
        nic={"cwnd_bytes": 65_536},
    )  # fmt: skip
    fabric = Fabric(pair)
    size, late = 4 << 20, 1 << 20
    for name in pair.nic_names():
        fabric.memory(name, size)
    for qpn in (100, 101, 102):
        fabric.connect("h000", "h001", qpn, qpn + 100)
    fabric.write("h000", 100, 0, 0, size, READY_NS)
    posted_ns = 30_000
    for qpn in (101, 102):
        fabric.write("h000", qpn, 1, 0, late, posted_ns)
    assert fabric.finish(20_000_000, 1_000)
    ends = {event.qpn: event.at_ns for event in fabric.found(Completion)}
    # Three of them share from then on; alone, all of it takes about as long as the six mebibytes do.
    share = (ends[100] - READY_NS) * 3 * late // (size + 2 * late)
    for qpn in (101, 102):
        assert 0.7 * share < ends[qpn] - posted_ns < 1.3 * share


@pytest.mark.spec("MRC 1.0", "2.6")
def test_port_updates_are_told_apart_by_their_own_numbers() -> None:
    """However many EV probes lie between two updates, the later one is the newer one to the peer."""
    bench = Bench(port_update_retry_ns=1_000)
    seen = []
    for round_ in range(2):
        start = 1_000_000 * (round_ + 1)
        bench.board.ports.set_carrier(start, 0, bool(round_))
        bench.peer.announce_ports(start)
        peeked = [entry for entry in bench.sent(start) if entry[2] == ENDPOINT_REQUEST]
        seen.append(peeked[-1][5] & 0xFFFF)
        bench.peer.on_response(start, seen[-1], OP_PORT_STATUS)
        for _ in range(40_000):
            bench.peer.ask_ev(start, 1, 1, bytes(16), lambda now, port: None)
        bench.board.ports.out.clear()
    assert 0 < (seen[1] - seen[0]) & 0xFFFF < 0x8000


@pytest.mark.spec("MRC 1.0", "11.2")
def test_a_marked_answer_to_a_probe_skips_a_good_ev() -> None:
    bench = Bench()
    profile = bench.link.profile
    assert bench.link.prober.ask(0, 0)
    sack = (M_SKIP_ONCE, 1, 0, profile.evs[0], (PSN_SEND - 1) & PSN_MASK, 0, 1, 0, 0, 0, 0, 0, 0)
    assert bench.link.on_sack(1, sack)
    assert profile.states[0] == EvState.SKIP
    assert bench.board.stats.ecn_echoed == 1
    # Further SACKs of the same answer are one observation.
    profile.states[0] = EvState.GOOD
    assert bench.link.on_sack(2, sack)
    assert profile.states[0] == EvState.GOOD


@pytest.mark.spec("MRC 1.0", "7.5")
def test_without_dynamic_mpr_the_field_is_zero() -> None:
    far = Far()
    far.receive(0, far.packet(0, a=True))
    (sack,) = [read_sack(packet) for opcode, packet in far.answers(1_000) if opcode == SACK]
    assert sack[5] == 0


@pytest.mark.spec("MRC 1.0", "7.5")
def test_the_sack_for_a_trimmed_duplicate_repeats_its_rtx() -> None:
    far = Far()
    far.receive(0, far.packet(0))
    for rtx in (0, FLAG_RTX):
        far.link.responder.on_trimmed(1, PSN_RECEIVE, EV, False, rtx)
    flags = [packet[96] & FLAG_RTX for opcode, packet in far.answers(1_000) if opcode == SACK]
    assert sorted(flags) == [0, FLAG_RTX]


def test_a_trimmed_packet_outside_the_window_is_counted() -> None:
    far = Far()
    far.link.responder.on_trimmed(0, (PSN_RECEIVE + HALF_PSN) & PSN_MASK, EV, False, 0)
    assert far.board.stats.drops["psn_window"] == 1


@pytest.mark.spec("MRC 1.0", "3")
def test_an_immediate_in_its_turn_takes_no_place() -> None:
    """As many early immediates as may wait, then the one they wait for."""
    far = Far(max_wimm=32)
    for number in range(1, 33):
        far.receive(0, far.packet(number, WRITE_ONLY_IMM, imm=number))
    far.receive(1, far.packet(0, WRITE_ONLY_IMM, imm=0))
    assert [event.imm for event in far.told(Completion)] == list(range(33))
    assert [opcode for opcode, _ in far.answers(1_000_000)].count(ACKNOWLEDGE) == 1


def test_a_failed_qp_probes_no_more() -> None:
    bench = Bench()
    bench.link.fail(0, "flushed", "test")
    for index in range(8):
        sack = (M_ALWAYS_SKIP, 0, 0, bench.link.profile.evs[index], (PSN_SEND - 1) & PSN_MASK, 0, 1, 0, 0, 0, 0, 0, 0)
        bench.link.on_sack(1, sack)
    bench.fire(10_000_000)
    assert bench.board.stats.probes_sent == 0


def test_losses_taken_back_are_forgotten() -> None:
    """A peer that asks for each packet again and at once acknowledges it must not make the NIC remember them all."""
    bench = Bench()
    bench.post(0, 1 << 20)
    requestor = bench.link.requestor
    psn = PSN_SEND
    for turn in range(200):
        now = turn * 1_000
        bench.pump(now)
        while psn < requestor.psn_next:
            sent = requestor._inflight.by_psn[psn]
            requestor.recovery.on_nack(now, psn & PSN_MASK, "nack", None, bench.link.profile.evs[sent.ev])
            requestor.on_sack(now, psn & PSN_MASK, None, 1, 0, False)
            psn += 1
    assert psn > PSN_SEND + 100
    assert len(requestor._inflight._lost_heap) < 10


def test_an_ev_probe_is_answered_whatever_number_it_has() -> None:
    bench = Bench()
    bench.peer.on_request(0, 0xFFFF, OP_EV_PROBE, 0, 9)
    assert len(bench.sent(1_000)) == 1
