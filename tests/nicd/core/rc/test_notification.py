"""DCQCN's notification point: at most one notification per interval, the first at once."""

from itertools import pairwise

import pytest

from mrcfabric.wire.dscp import CE, dscp_of, ecn_of, mark_ce
from mrcfabric.wire.roce_layout import CNP
from nicd.core.rc.notification import NotificationPoint
from tests.nicd.core.rc.pipe import Pipe, Seen


@pytest.mark.parametrize("interval", [1, 4_000, 50_000])
def test_one_per_interval_and_the_first_at_once(interval: int) -> None:
    point = NotificationPoint(interval)
    assert [point.marked(at) for at in (0, interval - 1, interval, interval)] == [True, False, True, False]
    assert point.marked(10 * interval)


@pytest.mark.spec("IBTA", "A17.9")
@pytest.mark.parametrize("interval", [4_000, 50_000])
def test_marked_data_make_notifications_and_notifications_slow_the_sender(interval: int) -> None:
    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        if side == 0 and seen.is_data:
            mark_ce(seen.packet)
        return True

    pipe = Pipe(fate, np_min_time_between_cnps_ns=interval, rp_min_rate_mbps=5_000)
    pipe.keep = True
    pipe.write(1 << 19)
    pipe.run(10_000_000)
    data = [at for at, side, seen in pipe.log if side == 0]
    sent = [(at, seen) for at, side, seen in pipe.log if seen.opcode == CNP]
    assert pipe.counter(1, "ecn_marks") == len(data) == 128
    assert pipe.counter(1, "rc", "cnps_sent") == pipe.counter(0, "rc", "cnps_received") == len(sent)
    assert all(ecn_of(seen.packet) != CE and dscp_of(seen.packet) == 48 for _, seen in sent)
    # One as soon as the first packet is there, then one whenever the interval is over and a marked packet comes.
    assert sent[0][0] < data[0] + 1_100
    distances = [second[0] - first[0] for first, second in pairwise(sent)]
    assert all(interval <= distance for distance in distances)
    assert pipe.counter(0, "rc", "rate_cuts") == len(sent) >= 2
    assert pipe.completions()[0].at_ns > 2 * 128 * pipe.packet_ns()


def test_without_control_a_mark_is_only_counted() -> None:
    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        mark_ce(seen.packet)
        return True

    pipe = Pipe(fate, cc="none")
    pipe.write(1 << 19)
    pipe.run(10_000_000)
    assert pipe.counter(1, "ecn_marks") == 128
    assert pipe.counter(1, "rc", "cnps_sent") == 0
