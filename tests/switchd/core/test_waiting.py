"""Which sending ports hold a buffer full."""

from mrcfabric.class_egress_config import CLASSES
from mrcfabric.topology import Topology
from switchd.core.lossless import LosslessSwitch
from switchd.core.waiting import Waiting
from tests.support.roce_hosts import HostFabric


def test_the_port_that_holds_most_is_the_reason() -> None:
    waiting = Waiting(2)
    waiting.enter(1, 5, 100)
    waiting.enter(1, 4, 300)
    waiting.asked(1)
    waiting.leave(1, 4, 250)
    waiting.asked(1)
    waiting.asked(1)
    assert waiting.rows(1) == [(4, 1, 50), (5, 2, 100)]
    assert waiting.rows(0) == []


def test_of_equals_the_first_port_is_the_reason_and_nothing_is_no_reason() -> None:
    waiting = Waiting(1)
    waiting.asked(0)
    waiting.enter(0, 7, 10)
    waiting.enter(0, 2, 10)
    waiting.asked(0)
    assert waiting.rows(0) == [(2, 1, 10), (7, 0, 10)]


def test_what_has_left_is_forgotten() -> None:
    waiting = Waiting(1)
    waiting.enter(0, 3, 10)
    waiting.leave(0, 3, 4)
    waiting.leave(0, 3, 6)
    assert (waiting.rows(0), waiting.held) == ([], [{}])


def test_what_waits_anywhere_is_what_the_buffer_holds() -> None:
    topology = Topology(
        planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=4, evs_per_qp=8, reserve_evs_per_qp=0,
        switch={"forwarding": "ecmp", "lossless": "pfc", "ecn": False},
    )  # fmt: skip
    fabric = HostFabric(topology)
    for number in (0, 1, 2):
        fabric.flow(number, 3, dscp=26 if number else 8)
    switch = fabric.switches["p0-t0-0"]
    assert isinstance(switch, LosslessSwitch)
    for until_ns in (5_000, 40_000, 300_000):
        fabric.run(until_ns)
        held = [sum(ports.values()) for ports in switch._waiting.held]
        assert held == [switch.buffer.stock[pair] + switch.buffer.headroom[pair] for pair in range(5 * CLASSES)]
        assert sum(held) == switch.buffer.total
