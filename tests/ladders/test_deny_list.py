"""A controller bars paths under way: nothing more goes there, and what it frees is used again."""

import pytest

from mrcfabric.units import Instant
from nicd.core.commands_paths import AllowPaths, DenyPaths
from tests.support.ladder import Ladder
from tests.support.wire import AB, BA, Seen


def after(ladder: Ladder, direction: str, at_ns: Instant, plane: int) -> list[Seen]:
    """What left on a plane later than an instant, and the port's queue."""
    return [seen for seen in ladder.sent(direction, plane=plane) if seen.at_ns > at_ns + 2 * ladder.base_rtt_ns]


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_a_plane_denied_under_way_is_left_by_data_and_by_acknowledgements() -> None:
    ladder = Ladder()
    ladder.write(600)
    ladder.run_for(3)
    at_ns = ladder.simulator.now_ns + 1
    ladder.a.command(DenyPaths(0, 1), at_ns)
    ladder.b.command(DenyPaths(0, 0), at_ns)
    assert ladder.run()
    ladder.verify()
    assert after(ladder, AB, at_ns, 0)
    assert after(ladder, BA, at_ns, 1)
    assert (after(ladder, AB, at_ns, 1), after(ladder, BA, at_ns, 0)) == ([], [])
    assert ladder.a.retransmits == {}


def test_where_everything_is_denied_work_waits_and_goes_on_when_it_is_allowed() -> None:
    ladder = Ladder()
    for plane in range(2):
        ladder.a.command(DenyPaths(0, plane), 500)
    ladder.write(20)
    ladder.run_for(20)
    assert ladder.data() == []
    for plane in range(2):
        ladder.a.command(AllowPaths(0, plane))
    assert ladder.run()
    ladder.verify()
    assert ladder.a.errors == []


def test_where_everything_stays_denied_the_qp_fails_and_says_so() -> None:
    ladder = Ladder(retry_linear=1, retry_exponential=1)
    for plane in range(2):
        ladder.a.command(DenyPaths(0, plane), 500)
    ladder.write(20)
    assert ladder.run(4_000)
    assert ladder.a.errors == ["retry_counter_exceeded"]
