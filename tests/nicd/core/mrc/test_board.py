"""What the parts of an MRC NIC share."""

import pytest

from nicd.core.mrc.board import PACKET_OVERHEAD
from tests.nicd.core.bench import PLANES, Bench


@pytest.mark.parametrize(("timestamps", "more"), [(True, 4), (False, 0)])
def test_a_full_packet_is_as_long_as_the_board_reckons(timestamps: bool, more: int) -> None:
    bench = Bench(timestamps=timestamps)
    bench.post(0, 8192)
    bench.board.scheduler.pump(0)
    packets = bench.packets(10_000)
    assert [len(packet) for packet in packets] == [4096 + PACKET_OVERHEAD + more] * 2


def test_evs_are_tallied_by_plane() -> None:
    bench = Bench()
    assert len(bench.board.ev_tally) == PLANES
    assert sum(map(sum, bench.board.ev_tally)) == len(bench.link.profile.evs)
