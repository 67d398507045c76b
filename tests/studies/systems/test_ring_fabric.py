"""Switches wired in a ring, and in a line."""

from typing import Any

import pytest

from mrcfabric.units import NEVER
from studies.systems.bench_fabric import CONTROL_DSCP
from studies.systems.pauses import _NO_CONTROL, _PFC
from studies.systems.ring_fabric import RingFabric, Table


def made(switches: int, **changes: Any) -> RingFabric:
    return RingFabric(switches, nic=_NO_CONTROL, switch=_PFC, dscp=CONTROL_DSCP, **changes)


@pytest.mark.parametrize("line", [False, True])
@pytest.mark.parametrize("switches", [3, 5])
def test_every_receiver_gets_a_message(switches: int, line: bool) -> None:
    ring = made(switches, line=line)
    ring.start(1, 10_000, 1_000_000)
    assert ring.run(10_000) == (10_000, 0, 0, 0)
    end = ring.run(10_000_000)
    assert end.placed == switches << 20
    assert (end.held, end.dropped, ring.paused(), ring.storms()) == (0, 0, 0, 0)


def test_senders_that_end_send_no_more() -> None:
    ring = made(3, line=True)
    ring.start(64, 10_000, 0)
    ring.stop(200_000)
    assert 0 < ring.run(300_000).placed == ring.run(1_000_000).placed < 3 * 64 << 20


def test_a_table_has_no_way_to_others() -> None:
    table = Table({bytes(16): 3})
    packet = bytearray(40)
    assert table.route(0, 1, packet) == (3, packet)
    packet[39] = 1
    assert table.route(0, 1, packet) == "no_route"
    table.carrier(0, 3, False)
    assert (table.counters(), table.follow(1), table.chosen(packet), table.next_change_ns) == ({}, [], None, NEVER)
