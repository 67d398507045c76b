"""Which planes count as having a queue of answers."""

from mrcfabric.units import NEVER
from nicd.core.mrc.backlog import Backlog
from tests.nicd.core.bench import Bench


def _fill(bench: Bench, port: int, count: int) -> None:
    for _ in range(count):
        bench.board.ports.offer(1, port, bytearray(140), True)


def test_a_plane_has_one_when_more_waits_at_its_port_than_leaves_soon() -> None:
    bench = Bench()
    backlog = Backlog(bench.board, bench.peer.ports)
    most = bench.board.bdp_bytes // 2 // 4
    _fill(bench, 0, most // 140)
    assert backlog.planes() == 0
    _fill(bench, 0, 3)
    assert backlog.planes() == 0b01
    _fill(bench, 1, most // 140 + 3)
    assert backlog.planes() == 0b11


def test_silence_counts_anew_where_probes_have_not_left() -> None:
    bench = Bench()
    backlog = Backlog(bench.board, bench.peer.ports)
    asked_ns = [5, 7]
    assert backlog.wait(100, asked_ns) == 0
    assert asked_ns == [5, 7]
    _fill(bench, 1, 1_000)
    assert backlog.wait(100, asked_ns) == 0b10
    assert asked_ns == [5, 100]
    asked_ns = [5, NEVER]
    backlog.wait(200, asked_ns)
    assert asked_ns == [5, NEVER]
