"""What the parts of a NIC share."""

from nicd.core.events import PortChange
from tests.nicd.core.bench import PLANES, Bench


def test_events_beyond_the_bound_are_counted() -> None:
    bench = Bench(events_max=2)
    lost = bench.board.stats.events_lost
    for port in range(5):
        bench.board.tell(PortChange(0, port % PLANES, True))
    assert len(bench.board.events) == 2
    assert bench.board.stats.events_lost - lost == 3
