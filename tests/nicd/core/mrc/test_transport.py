"""What the transport says of its QPs, and whose context a packet needs."""

from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.fastpath import Peeker
from tests.nicd.core.bench import PEER_QPN, QPN, Bench


def test_the_context_of_a_packet_is_its_qps() -> None:
    bench = Bench()
    bench.post(0, 100)
    bench.board.scheduler.pump(0)
    (packet,) = bench.packets(10_000)
    there = Bench().transport
    there._peeker = Peeker(Dscp())  # of a packet that is for another NIC
    assert there.qpn_of(packet) == PEER_QPN
    assert there.qpn_of(packet[:90]) is None


def test_bytes_placed_of_qps_that_are_there_and_are_not() -> None:
    bench = Bench()
    assert (bench.transport.bytes_placed(QPN), bench.transport.bytes_placed(QPN + 1)) == (0, 0)
    bench.link.responder.bytes_placed = 12
    assert bench.transport.bytes_placed(QPN) == 12


def test_a_stripped_packet_comes_in_by_the_nics_door() -> None:
    bench = Bench()
    assert bench.transport.arrive == bench.transport.receive
    assert bench.transport.receive(0, 0, b"") == "truncated"


def test_counters_of_evs_follow_the_tally() -> None:
    bench = Bench()
    rows = bench.transport.ev_rows()
    assert sum(map(sum, rows)) == len(bench.link.profile.evs)
    states = bench.transport.counters()["ev_states"]
    assert [list(states[str(plane)].values()) for plane in range(len(rows))] == rows
