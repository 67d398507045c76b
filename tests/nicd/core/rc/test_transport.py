"""The RC transport as a whole: what it drops, that nothing a peer sends raises, its counters, and whole fabrics."""

from typing import Any

import pytest

from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from mrcfabric.wire.icrc import icrc_from
from mrcfabric.wire.roce import CnpTemplate, RcDataTemplate
from mrcfabric.wire.roce_layout import RC_WRITE_FIRST, RC_WRITE_ONLY
from nicd.core.events import Completion, QpChange
from nicd.core.rc.rc_stats import RC_DROP_REASONS
from nicd.core.stats import DROP_REASONS, OUTCOMES
from nicd.core.transports import TRANSPORTS
from tests.nicd.core.fabric import READY_NS, Fabric
from tests.nicd.core.rc.lone import PSN_RECEIVE, PSN_SEND, QPN, LoneNic
from tests.nicd.core.rc.pipe import PSN_AB, QPN_A, Fate, Pipe, Seen


def test_it_is_known_by_its_name() -> None:
    assert TRANSPORTS["rc"].name == "rc"


@pytest.mark.spec("IBTA", "9.6")
def test_what_is_not_for_a_qp_is_dropped_by_reason() -> None:
    lone = LoneNic()
    good = lone.packet(RC_WRITE_ONLY, 0, 4)
    spoiled = bytearray(good)
    spoiled[-6] ^= 1
    lone.arrive(spoiled)
    lone.arrive(good[:50])
    config = lone.nic.config
    peer = config.paths.towards(1).address
    stranger = RcDataTemplate(config.address, config.address, QPN, 0xC000, dscp=26)
    lone.arrive(stranger.make(RC_WRITE_ONLY, PSN_RECEIVE, b"1234"))
    unknown = RcDataTemplate(peer, config.address, 99, 0xC000, dscp=26)
    lone.arrive(unknown.make(RC_WRITE_ONLY, PSN_RECEIVE, b"1234"))
    foreign = RcDataTemplate(peer, peer, QPN, 0xC000, dscp=26)
    lone.arrive(foreign.make(RC_WRITE_ONLY, PSN_RECEIVE, b"1234"))
    reasons = {"icrc": 1, "truncated": 1, "inner_source": 1, "unknown_qp": 1, "inner_destination": 1}
    assert lone.drops() == reasons
    assert lone.state() == "rts"


def test_a_notification_for_a_qp_that_is_not_slowed_by_any_is_counted() -> None:
    for cc, cuts in (("none", 0), ("dcqcn", 1)):
        lone = LoneNic(cc=cc)
        config = lone.nic.config
        peer = config.paths.towards(1).address
        lone.arrive(CnpTemplate(peer, config.address, QPN, 0xC000, dscp=48).cnp())
        rc = lone.nic.counters()["rc"]
        assert (rc["cnps_received"], rc["rate_cuts"], rc["cnps_ignored"]) == (1, cuts, 1 - cuts)
        assert rc["rate_bps_min"] == config.ports[0].rate_bps // (1 + cuts)
        assert rc["qps_slowed"] == cuts


@pytest.mark.parametrize("number", [0, 3, 9])
def test_a_receiver_that_is_not_ready_ends_a_qp_that_has_sent_that(number: int) -> None:
    lone = LoneNic()
    lone.post(4 * 256)
    lone.wait(10_000)
    lone.arrive(lone.control.ack((PSN_SEND + number) & 0xFFFFFF, 0, 0x25))
    assert lone.state() == ("error" if number < 4 else "rts")
    assert lone.nic.counters()["rc"]["rnr_naks_received"] == (number < 4)


@pytest.mark.parametrize("syndrome", [0x40, 0x5F, 0x80, 0xFF])
def test_a_reserved_syndrome_is_dropped(syndrome: int) -> None:
    lone = LoneNic()
    lone.post(4 * 256)
    lone.wait(10_000)
    lone.arrive(lone.control.ack(PSN_SEND, 0, syndrome))
    assert lone.drops() == {"rc_syndrome": 1}
    assert lone.state() == "rts"


def hostile(seed: int, rounds: int, **nic: Any) -> None:
    """Packets of a peer with some bytes changed and their ICRC made good: whatever they say, nothing raises."""
    rng = Rng("hostile", seed)
    lone = LoneNic(**nic)
    lone.post(30_000)
    known = {*OUTCOMES, *DROP_REASONS, *RC_DROP_REASONS}
    receive = lone.nic._transport.receive
    for _ in range(rounds):
        kind = rng.below(4)
        if kind == 0:
            packet = bytearray(rng.below(256) for _ in range(rng.below(200)))
        else:
            psn = (PSN_RECEIVE, PSN_SEND)[kind & 1] + rng.below(20)
            if kind == 1:
                packet = lone.control.ack(psn & 0xFFFFFF, rng.below(8), rng.below(256), rng.below(1 << 24))
            else:
                opcode = RC_WRITE_FIRST + rng.below(6)
                imm = 5 if opcode in (9, 11) else None
                length = 1 + rng.below(600)
                packet = lone.data.make(
                    opcode, psn & 0xFFFFFF, bytes(rng.below(300)), 0x1000, 7, length, bool(rng.below(2)), imm
                )
            if rng.chance(300_000):
                packet[40 + rng.below(len(packet) - 44)] = rng.below(256)
                packet[-4:] = _icrc(packet)
        assert receive(lone.now, 0, packet) in known
        lone.wait(rng.below(50_000))
        if lone.state() == "error":
            lone = LoneNic(**nic)
            lone.post(30_000)
            receive = lone.nic._transport.receive


def _icrc(packet: bytearray) -> bytes:
    return icrc_from(packet, 0).to_bytes(4, "little")


@pytest.mark.parametrize("recovery", ["go_back_n", "go_back_0", "selective"])
def test_nothing_that_a_peer_sends_raises(recovery: str) -> None:
    hostile(1, 400, rc_recovery=recovery, rc_timeout=5)


@pytest.mark.long
@pytest.mark.parametrize("recovery", ["go_back_n", "go_back_0", "selective"])
@pytest.mark.parametrize("seed", range(2, 7))
def test_nothing_that_a_peer_sends_raises_over_seeds(recovery: str, seed: int) -> None:
    hostile(seed, 5_000, rc_recovery=recovery, rc_timeout=5)


def test_qps_share_a_port_packet_by_packet() -> None:
    pipe = Pipe(size=1 << 20)
    for number in range(1, 4):
        pipe.connect(QPN_A + number, 200 + number)
    for number in range(4):
        pipe.write(1 << 18, number, qpn=QPN_A + number, offset=number << 18)
    pipe.run(1 << 33)
    assert pipe.target() == bytes(pipe.source)
    ends = [done.at_ns for done in pipe.completions()]
    assert len(ends) == 4
    # The first to be posted is two rounds ahead: one packet on the wire, one in the queue.
    assert max(ends) - min(ends) <= 9 * pipe.packet_ns()


def losing_once(numbers: set[int]) -> Fate:
    """A pipe that loses the data packets of NIC 0 with these numbers the first time."""

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        number = seen.psn - PSN_AB & 0xFF
        if side or not seen.is_data or number not in numbers:
            return True
        numbers.remove(number)
        return False

    return fate


@pytest.mark.parametrize("recovery", ["go_back_n", "go_back_0", "selective"])
def test_the_result_does_not_depend_on_how_time_is_cut(recovery: str) -> None:
    runs = []
    for step_ns in (1_000, 333, 41):
        lost = {30, 31, 60, 90, 91, 92, 127}
        pipe = Pipe(losing_once(lost), size=1 << 17, mtu=1024, rc_recovery=recovery, rc_timeout=4)
        pipe.keep = True
        pipe.step_ns = step_ns
        pipe.write(1 << 17)
        pipe.write(1 << 16, side=1, imm=3)
        pipe.run(1_000_000)
        assert len(pipe.completions()) == 1
        assert not lost
        runs.append(sorted((at_ns, side, bytes(seen.packet)) for at_ns, side, seen in pipe.log))
        runs.append([event.record() for events in pipe.events for event in events])
    assert runs[0::2] == [runs[0]] * 3
    assert runs[1::2] == [runs[1]] * 3


@pytest.mark.parametrize("planes", [1, 2, 4])
@pytest.mark.parametrize("recovery", ["go_back_n", "selective"])
def test_alone_as_many_qps_as_ports_use_the_whole_line(planes: int, recovery: str) -> None:
    size = 1 << 19
    pipe = Pipe(size=size * planes, planes=planes, rc_recovery=recovery)
    for number in range(planes):
        if number:
            pipe.connect(QPN_A + number, 200 + number)
        pipe.write(size, number, qpn=QPN_A + number, offset=size * number)
    pipe.run(1 << 33)
    assert pipe.target() == bytes(pipe.source)
    took = max(done.at_ns for done in pipe.completions()) - 10 - 2 * pipe.delay_ns
    # Payload over payload, headers and gap is 0.976, with a RETH in each packet 0.972.
    assert size * 8 * 1_000_000_000 / pipe.rate_bps / took > 0.95


def test_contexts_that_do_not_fit_on_the_chip_wait_and_everything_arrives() -> None:
    pipe = Pipe(size=1 << 18, sram_bytes=2 * 512)
    for number in range(1, 4):
        pipe.connect(QPN_A + number, 200 + number)
    for number in range(4):
        pipe.write(1 << 16, number, qpn=QPN_A + number, offset=number << 16)
    pipe.run(1 << 33)
    assert pipe.target() == bytes(pipe.source)
    assert pipe.counter(0, "contexts")["capacity"] == 2
    assert pipe.counter(0, "contexts")["misses"] > 10


def test_gauges_of_windows_follow_what_is_in_flight() -> None:
    lone = LoneNic(rc_window_bytes=4096)
    assert lone.nic.counters()["windows"] == {
        "count": 1, "cwnd_bytes": 4096, "cwnd_bytes_min": 4096, "inflight_bytes": 0
    }  # fmt: skip
    lone.post(30_000)
    lone.wait(10_000)
    counters = lone.nic.counters()
    assert counters["windows"]["inflight_bytes"] == 4096
    assert counters["mpr"]["used_packets"] == 16
    assert lone.nic.state_report()["qps"] is not None


def pinned(recovery: str, **nic: Any) -> Topology:
    return Topology(
        name="rc", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=8,
        nic={"transport": "rc", "rc_path": "pinned", "rc_recovery": recovery, **nic},
    )  # fmt: skip


@pytest.mark.spec("IBTA", "9.7")
@pytest.mark.parametrize("recovery", ["go_back_n", "go_back_0", "selective"])
def test_a_whole_fabric_carries_every_byte_over_pinned_paths(recovery: str) -> None:
    fabric = Fabric(pinned(recovery))
    size = 200_000
    fabric.permutation(2, size)
    fabric.write_all(size, 5)
    assert fabric.finish(READY_NS + 10_000_000)
    fabric.verify(size)
    assert not fabric.errors()
    # Each QP keeps to one port.
    for name in fabric.topology.nic_names():
        for row in fabric.core(name).qp_table():
            assert int(row["planes"]).bit_count() == 1


def test_a_port_that_goes_down_ends_its_qps_and_no_others() -> None:
    fabric = Fabric(pinned("go_back_n", rc_timeout=5, rc_retry_cnt=2))
    size = 400_000
    fabric.permutation(2, size)
    fabric.write_all(size, 4)
    fabric.carrier("h000", 0, False, READY_NS + 5_000)
    fabric.finish(READY_NS + 20_000_000)
    failed = fabric.found(QpChange, lambda event: event.target == "error")
    assert failed
    assert {event.reason for event in failed} <= {"retry_exceeded"}
    for name in fabric.topology.nic_names():
        for row in fabric.core(name).qp_table():
            assert row["state"] == "rts" or row["reason"] == "retry_exceeded"
    assert {done.status for done in fabric.found(Completion)} == {"ok", "retry_exceeded", "flushed"}
