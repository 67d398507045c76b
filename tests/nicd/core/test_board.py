"""What the parts of a NIC share."""

import pytest

from nicd.core.board import PACKET_OVERHEAD
from nicd.core.events import PortChange
from tests.nicd.core.bench import PLANES, Bench


@pytest.mark.parametrize(("timestamps", "more"), [(True, 4), (False, 0)])
def test_a_full_packet_is_as_long_as_the_board_reckons(timestamps: bool, more: int) -> None:
    bench = Bench(timestamps=timestamps)
    bench.post(0, 8192)
    bench.board.scheduler.pump(0)
    packets = bench.packets(10_000)
    assert [len(packet) for packet in packets] == [4096 + PACKET_OVERHEAD + more] * 2


def test_events_beyond_the_bound_are_counted() -> None:
    bench = Bench(events_max=2)
    lost = bench.board.stats.events_lost
    for port in range(5):
        bench.board.tell(PortChange(0, port % PLANES, True))
    assert len(bench.board.events) == 2
    assert bench.board.stats.events_lost - lost == 3
