"""The model of on-chip memory: what is resident, what a miss costs, and who waits for whom."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.topology import Topology
from nicd.core.commands import DestroyQp
from nicd.core.events import Completion
from nicd.core.onchip import ContextStore
from nicd.core.timers import Timers
from tests.nicd.core.fabric import READY_NS, Fabric

MISS_NS = 1_000
SIZE = 1 << 16
CHIP = Topology(
    name="chip", planes=2, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=8
)


class Store:
    """A store of its own with a note of what was loaded when."""

    def __init__(self, capacity: int, fetches: int = 1) -> None:
        self.timers = Timers()
        self.store = ContextStore(self.timers, capacity, MISS_NS, fetches)
        self.store.known = range(100)
        self.loaded: list[tuple[int, int]] = []
        self.store.listen(lambda now, qpn: self.loaded.append((now, qpn)))

    def run(self, until: int) -> None:
        while (at_ns := self.timers.next_ns()) <= until:
            self.timers.fire(at_ns)

    def want(self, now: int, *qpns: int) -> None:
        for qpn in qpns:
            if not self.store.touch(qpn):
                self.store.fetch(now, qpn)


def test_the_first_packet_of_a_qp_misses_and_the_next_ones_hit() -> None:
    chip = Store(4)
    chip.want(0, 1)
    chip.run(MISS_NS - 1)
    assert chip.loaded == []
    chip.run(MISS_NS)
    assert chip.loaded == [(MISS_NS, 1)]
    chip.want(2_000, 1, 1)
    assert chip.store.counters(1) == {
        "capacity": 4, "resident": 1, "spilled": 0, "hits": 2, "misses": 1, "waits": 0, "evictions": 0,
    }  # fmt: skip


def test_the_one_longest_unused_goes_first() -> None:
    chip = Store(2)
    chip.want(0, 1, 2)
    chip.run(5_000)
    chip.want(5_000, 1, 3)
    chip.run(9_000)
    assert [qpn for qpn in (1, 2, 3) if qpn in chip.store.resident] == [1, 3]
    assert chip.store.evictions == 1
    assert chip.store.counters(3)["spilled"] == 1


def test_fetches_beyond_the_bound_wait_their_turn() -> None:
    chip = Store(9, fetches=2)
    chip.want(0, 1, 2, 3, 4, 5, 5)
    assert (chip.store.misses, chip.store.waits) == (5, 1)
    chip.run(9_000)
    assert chip.loaded == [(1_000, 1), (1_000, 2), (2_000, 3), (2_000, 4), (3_000, 5)]


def test_a_qp_that_is_gone_leaves_nothing() -> None:
    chip = Store(2)
    chip.want(0, 1, 200)
    chip.store.forget(1)
    chip.run(9_000)
    assert [qpn for _, qpn in chip.loaded] == [1, 200]
    assert 200 not in chip.store.resident
    chip.store.forget(1)
    assert 1 not in chip.store.resident


# Whole fabrics: two NICs, and room for so many of their QPs.


class Spilling(Fabric):
    """`qps` QPs from h000 to h001, each with `writes` messages of one packet."""

    def __init__(self, qps: int, capacity: int, writes: int = 1, size: int = SIZE, **nic: Any) -> None:
        settings = {"sram_bytes": capacity * 1_000, "sram_qp_bytes": 1_000, "sram_miss_ns": MISS_NS, **nic}
        super().__init__(Topology.from_dict({**CHIP.to_dict(), "nic": settings}), keep=0)
        for name in self.topology.nic_names():
            self.memory(name, size)
        piece = size // qps // writes
        for number in range(qps):
            self.connect("h000", "h001", 100 + number, 200 + number)
            for count in range(writes):
                place = (number * writes + count) * piece
                self.write("h000", 100 + number, count, place, piece, READY_NS)
        self.done_by = self.finish(10_000_000)

    def ends(self) -> list[int]:
        return [event.at_ns for event in self.events["h000"] if isinstance(event, Completion)]


def test_a_miss_delays_the_packet_by_its_cost_at_both_ends() -> None:
    """One QP, one packet: once for sending it, once for receiving it; the sender's context is there afterwards."""
    (free,), (paid,) = Spilling(1, 0, size=4_096).ends(), Spilling(1, 4, size=4_096).ends()
    assert paid == free + 2 * MISS_NS


def test_contexts_that_fit_cost_once() -> None:
    fabric = Spilling(8, 8, writes=8)
    fabric.verify(SIZE)
    for name in ("h000", "h001"):
        contexts = fabric.core(name).counters()["contexts"]
        assert (contexts["misses"], contexts["evictions"], contexts["resident"]) == (8, 0, 8)


@pytest.mark.parametrize("capacity", [1, 3, 7])
def test_whatever_spills_every_byte_arrives_in_order(capacity: int) -> None:
    fabric = Spilling(8, capacity, writes=8)
    assert fabric.done_by
    fabric.verify(SIZE)
    assert fabric.errors() == []
    assert fabric.total("packets_lost") == 0
    contexts = fabric.core("h000").counters()["contexts"]
    assert contexts["resident"] == capacity
    assert contexts["spilled"] == 8 - capacity
    assert contexts["evictions"] >= 8 - capacity


def test_packets_without_room_to_wait_are_dropped_by_name_and_sent_again() -> None:
    fabric = Spilling(8, 1, writes=8, sram_waiting_max=2, sram_miss_ns=5_000)
    assert fabric.done_by
    fabric.verify(SIZE)
    assert fabric.core("h001").counters()["drops"]["context_queue"] > 0


def test_the_same_run_gives_the_same_trace() -> None:
    one, two = (Spilling(6, 2, writes=4) for _ in range(2))
    for name in one.topology.node_names():
        digests = [[trace.digest() for trace in fabric.simulator.traces(name)] for fabric in (one, two)]
        assert digests[0] == digests[1]


def test_a_qp_that_goes_while_it_waits_harms_nobody() -> None:
    fabric = Spilling(4, 1, writes=4, sram_miss_ns=4_000)
    core = fabric.core("h000")
    assert core.counters()["contexts"]["resident"] == 1
    now = fabric.simulator.now_ns
    fabric.write("h000", 100, 77, 0, 64, now + 10)
    fabric.write("h000", 101, 78, 0, 64, now + 10)
    fabric.simulator.command("h000", now + 100, DestroyQp(0, 100))
    assert fabric.finish(now + 1_000_000)
    ends = {event.wr_id: event.status for event in fabric.found(Completion)}
    assert (ends[77], ends[78]) == ("flushed", "ok")


@settings(deadline=None, max_examples=60)
@given(
    capacity=st.integers(1, 5),
    fetches=st.integers(1, 4),
    wanted=st.lists(st.tuples(st.integers(0, 900), st.integers(1, 8)), max_size=60),
)
def test_whoever_is_wanted_comes_once_per_fetch_and_no_more_are_kept_than_fit(
    capacity: int, fetches: int, wanted: list[tuple[int, int]]
) -> None:
    chip, now = Store(capacity, fetches), 0
    for step, qpn in wanted:
        now += step
        chip.run(now)
        chip.want(now, qpn)
        assert chip.store.counters(8)["resident"] <= capacity
    chip.run(now + MISS_NS * (len(wanted) + 1))
    counters = chip.store.counters(8)
    assert len(chip.loaded) == counters["misses"]
    assert counters["hits"] + counters["misses"] + counters["waits"] == len(wanted)
    assert [at_ns for at_ns, _ in chip.loaded] == sorted(at_ns for at_ns, _ in chip.loaded)
    assert counters["misses"] - counters["evictions"] == counters["resident"] <= capacity
