"""The way into the table: one prefix after the other, the last value once, and ports that leave at one stroke."""

import pytest

from mrcfabric.prefix import Prefix
from mrcfabric.units import NEVER
from switchd.core.events_routing import FibRepaired, FibWritten, RoutingEvent
from switchd.core.routing.timetable import Timetable
from switchd.core.routing.writer import FibWriter
from switchd.core.settings_bgp import BgpKnobs
from tests.support.speakers import Table

P = [Prefix(number << 64, 64) for number in range(4)]


def writer(write_ns: int = 50, *, repair: bool = True) -> tuple[FibWriter, Table, Timetable, list[RoutingEvent]]:
    table, timetable, events = Table(), Timetable(), list[RoutingEvent]()
    knobs = BgpKnobs(fib_write_ns=write_ns, fib_local_repair=repair)
    return FibWriter(table, knobs, timetable, events), table, timetable, events


@pytest.mark.parametrize("write_ns", [0, 1, 50])
def test_each_prefix_takes_its_time(write_ns: int) -> None:
    own, table, timetable, events = writer(write_ns)
    for prefix in P:
        own.settle(100, prefix, (1, 2))
    while (due := timetable.take(NEVER)) is not None:
        own.expire(due[0])
    assert [event.at_ns for event in events] == [100 + write_ns * number for number in range(1, 5)]
    assert table.table == dict.fromkeys(P, (1, 2))


def test_a_prefix_that_changes_while_it_waits_is_written_once() -> None:
    own, table, timetable, events = writer()
    own.settle(100, P[0], (1,))
    own.settle(100, P[1], (1,))
    own.settle(120, P[1], (2,))
    own.settle(130, P[0], ())
    assert own.waiting == {P[0]: (), P[1]: (2,)}
    for at_ns in (150, 200):
        assert timetable.take(at_ns) is not None
        own.expire(at_ns)
    # The first one never was in the table, so that taking it out is no change.
    assert events == [FibWritten(200, str(P[1]), (), (2,), 0, 0)]
    assert table.table == {P[1]: (2,)}
    own.settle(300, P[1], (2,))
    assert timetable.next_ns == NEVER


def test_a_port_leaves_all_groups_at_once_where_that_is_asked_for() -> None:
    own, table, _, events = writer()
    for at_ns, out in ((5, True), (6, True), (7, False), (8, False)):
        own.mask(at_ns, 3, out)
    assert events == [FibRepaired(5, 3, False, 0, 0), FibRepaired(7, 3, True, 0, 0)]
    own, table, _, events = writer(repair=False)
    own.mask(5, 3, True)
    assert not events
    assert not table.masked
