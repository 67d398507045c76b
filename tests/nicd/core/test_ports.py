"""Ports: room, carrier, and the two ways of working out departures."""

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.egress_config import EgressConfig
from mrcfabric.impairment import HEALTHY, Impairment
from nicd.core.ports import Ports

CONFIG = EgressConfig(rate_bps=8_000_000_000, delay_ns=100, overhead_bytes=0)
"""One byte per nanosecond."""


def ports(count: int = 3, queue: int = 100) -> Ports:
    return Ports((CONFIG,) * count, queue, "test")


def data(size: int = 100) -> bytearray:
    return bytearray(size)


def test_a_port_takes_one_packet_on_the_wire_and_one_behind_it() -> None:
    made = ports()
    made.track(0)
    made.offer(0, 1, data(), False)
    assert made.room == 0b101
    assert made.next_ns == 0
    made.depart(0)
    assert made.room == 0b111
    made.offer(0, 1, data(), False)
    assert (made.room, made.next_ns) == (0b101, 100)
    made.depart(100)
    assert made.room == 0b111
    assert [(entry[0], entry[1]) for entry in made.out] == [(1, 200), (1, 300)]


def test_a_port_at_which_much_waits_drops_probes_and_counts_them() -> None:
    made = ports(2)
    seen: list[int] = []
    made.on_offer = lambda now, port, packet, control: seen.append(port)
    made.offer(0, 1, data(262_144), False)
    made.offer_probe(0, 1, data())
    made.offer_probe(0, 1, data())
    made.offer_probe(0, 0, data())
    assert seen == [1, 1, 1, 0]
    egress = made.egress[1]
    assert (egress.data_bytes, egress.drops["data_full"], egress.offered_packets) == (262_244, 1, 3)
    assert egress.offered_bytes == 262_344
    assert not any(made.egress[0].drops.values())


def test_control_packets_do_not_take_the_room_of_data() -> None:
    made = ports()
    made.track(0)
    made.offer(0, 0, data(500), True)
    assert made.room == 0b111


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2), st.integers(1, 90), st.booleans()), max_size=40))
def test_tracked_or_not_the_same_packets_leave(offers: list[tuple[int, int, int, bool]]) -> None:
    tracked, lazy = ports(queue=1 << 20), ports(queue=1 << 20)
    tracked.track(0)
    now = 0
    for step, port, size, control in offers:
        now += step
        while tracked.next_ns < now:
            tracked.depart(tracked.next_ns)
        tracked.offer(now, port, data(size), control)
        lazy.offer(now, port, data(size), control)
    while tracked.next_ns <= now + 10_000:
        tracked.depart(tracked.next_ns)
    lazy.run(now + 10_000)
    assert sorted(tracked.out) == sorted(lazy.out)
    assert lazy.next_departure_ns() == tracked.next_departure_ns()


def test_without_carrier_nothing_leaves_and_there_is_no_room() -> None:
    made = ports()
    assert made.set_carrier(0, 1, False)
    assert not made.set_carrier(0, 1, False)
    made.track(0)
    assert made.room == 0b101
    made.offer(0, 1, data(), True)
    made.depart(0)
    assert made.out == []
    assert made.set_carrier(200, 1, True)
    assert made.room == 0b111
    made.offer(200, 1, data(), True)
    made.depart(200)
    assert len(made.out) == 1


def test_an_impairment_survives_a_loss_of_carrier() -> None:
    made = ports()
    made.set_impairment(0, 1, Impairment(loss_ppm=1_000_000))
    made.set_carrier(0, 1, False)
    made.set_carrier(0, 1, True)
    made.offer(0, 1, data(), False)
    made.run(10)
    assert made.out == []
    assert made.egress[1].drops["loss"] == 1


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2), st.integers(1, 90), st.booleans()), max_size=30))
def test_what_a_fault_holds_back_goes_on_tracked_or_not(offers: list[tuple[int, int, int, bool]]) -> None:
    tracked, lazy = ports(queue=1 << 20), ports(queue=1 << 20)
    fault = Impairment(delay_ns=70, jitter_ns=500, duplication_ppm=200_000, reordering_ppm=200_000, reordering_ns=90)
    tracked.track(0)
    for made in (tracked, lazy):
        made.set_impairment(0, 1, fault)
    now = 0
    for step, port, size, control in offers:
        now += step
        while tracked.next_ns < now:
            tracked.depart(tracked.next_ns)
        lazy.run(now - 1)
        tracked.offer(now, port, data(size), control)
        lazy.offer(now, port, data(size), control)
        assert lazy.next_departure_ns() == tracked.next_departure_ns() == tracked.next_ns
    while tracked.next_ns <= now + 10_000:
        tracked.depart(tracked.next_ns)
    lazy.run(now + 10_000)
    assert sorted(tracked.out) == sorted(lazy.out)
    assert lazy.next_departure_ns() == tracked.next_departure_ns()
    assert [egress.held for egress in tracked.egress] == [0] * 3


FAULTS = (
    HEALTHY, Impairment(rate_bps=1_000_000_000), Impairment(rate_bps=100_000_000), Impairment(delay_ns=700),
    Impairment(rate_bps=500_000_000, jitter_ns=300), Impairment(reordering_ppm=300_000, reordering_ns=900),
)  # fmt: skip
STEPS = st.lists(
    st.tuples(st.integers(1, 900), st.integers(0, 1), st.sampled_from((0, 100, 400)), st.sampled_from(FAULTS))
)


@given(STEPS, st.booleans())
def test_no_packet_is_handed_over_after_its_last_bit_has_left(
    steps: list[tuple[int, int, int, Impairment]], tracking: bool
) -> None:
    """A driver calls at the instants that `next_departure_ns` names, and finds no packet that it should have had."""
    made = ports(2, 1 << 20)
    if tracking:
        made.track(0)
    now = 0

    def wait(until: int) -> None:
        while (due := made.next_departure_ns()) <= until:
            known = len(made.out)
            made.depart(due) if tracking else made.run(due)
            assert all(entry[1] - CONFIG.delay_ns >= due for entry in made.out[known:])

    for step, port, size, fault in steps:
        wait(now + step - 1)
        now += step
        made.set_impairment(now, port, fault)
        if size:
            made.offer(now, port, data(size), False)
    wait(now + 1_000_000_000)
    assert made.next_departure_ns() >= 1 << 60
