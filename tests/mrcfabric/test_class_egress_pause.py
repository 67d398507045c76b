"""Pauses of a port with eight classes: exact to the nanosecond, and the same however time is cut."""

from collections import deque
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.class_egress import ClassEgress
from mrcfabric.impairment import HEALTHY, Impairment
from mrcfabric.node import Transmit
from mrcfabric.units import NEVER
from mrcfabric.wire.link import ControlFrame
from tests.mrcfabric.test_class_egress import FRAME, FRAME_NS, PLAIN, Told, drained, numbers, port
from tests.mrcfabric.test_egress import packet


def starts(out: list[Transmit], size: int = 100) -> list[int]:
    return [entry[1] - 1_000 - size for entry in out]


def test_a_pause_stops_what_has_not_started_and_ends_to_the_nanosecond():
    egress, out = port(), []
    for _ in range(3):
        egress.offer(0, packet(100), 3, out)
    egress.pause(50, 3, 777, out)
    assert egress.next_departure_ns == egress.run(776, out) == 777
    assert len(out) == 1
    assert egress.run(777, out) == 877
    assert starts(drained(egress, out)) == [0, 777, 877]


@pytest.mark.parametrize(("at_ns", "started"), [(99, 1), (100, 1), (101, 2)])
def test_a_pause_that_comes_at_an_instant_stops_the_departure_of_that_instant(at_ns, started):
    egress, out = port(), []
    for _ in range(2):
        egress.offer(0, packet(100), 3, out)
    egress.pause(at_ns, 3, 5_000, out)
    egress.run(4_999, out)
    assert len(out) == started


def test_a_later_pause_replaces_the_one_in_force_longer_or_shorter():
    egress, out = port(), []
    egress.offer(0, packet(100), 3, out)
    egress.pause(0, 3, 1_000, out)
    egress.pause(400, 3, 2_000, out)
    assert egress.next_departure_ns == 2_000
    egress.pause(500, 3, 600, out)
    assert egress.next_departure_ns == 600
    egress.pause(600, 3, 700, out)
    assert starts(drained(egress, out)) == [700]
    assert (egress.pauses[3], egress.pause_ns(3, NEVER)) == (4, 700)


@pytest.mark.parametrize("until_ns", [0, 300])
def test_going_on_is_at_once_and_never_in_the_past(until_ns):
    egress, out = port(), []
    egress.offer(0, packet(100), 3, out)
    egress.pause(0, 3, 5_000, out)
    egress.pause(300, 3, until_ns, out)
    assert egress.next_departure_ns == 300
    assert starts(drained(egress, out)) == [300]
    assert (egress.pauses[3], egress.pause_ns(3, 1_000)) == (1, 300)


def test_a_paused_class_stops_no_other_and_no_control_frame():
    egress, out = port(), []
    for cls in (3, 7, 0):
        egress.offer(0, packet(100, number=cls), cls, out)
    for cls in (3, 7):
        egress.pause(0, cls, 10_000, out)
    egress.send_control(0, FRAME, out)
    assert egress.run(5_000, out) == 10_000
    assert numbers(out) == [-1, 0]
    egress.offer(6_000, packet(100, number=1), 1, out)
    egress.pause(6_500, 7, 0, out)
    assert numbers(drained(egress, out)) == [-1, 0, 1, 7, 3]
    assert starts(out[2:]) == [6_000, 6_500, 10_000]


def test_classes_whose_pauses_end_together_keep_their_order():
    egress, out = port(), []
    for cls in (1, 6, 3, 7):
        egress.offer(0, packet(100, number=cls), cls, out)
        egress.pause(0, cls, 900, out)
    assert numbers(drained(egress, out)) == [7, 6, 1, 3]


def test_a_class_that_is_paused_in_its_turn_loses_what_was_left_of_it():
    egress, out = port(replace(PLAIN, round_bytes=1_000, data_bytes_max=1 << 20)), []
    for cls in (0, 1, 3):
        for _ in range(40):
            egress.offer(0, packet(100, number=cls), cls, out)
    egress.run(2_000, out)
    assert numbers(out) == [0] * 10 + [1] * 10 + [3]
    egress.pause(2_050, 3, 4_050, out)
    drained(egress, out)
    assert numbers(out)[21:62] == [0] * 10 + [1] * 10 + [3] * 10 + [0] * 10 + [1]


def test_a_pause_that_ends_while_the_wire_is_busy_ends_unseen():
    egress, out = port(), []
    egress.offer(0, packet(500, number=1), 0, out)
    egress.offer(0, packet(100, number=2), 3, out)
    egress.pause(0, 3, 300, out)
    drained(egress, out)
    assert [entry[1] - 1_000 for entry in out] == [500, 600]
    assert egress.pause_ns(3, 200) == 200
    assert egress.pause_ns(3, 10_000) == 300


def test_a_pause_counts_up_to_the_instant_that_is_asked_for():
    egress, out = port(), []
    egress.pause(100, 3, 1_000, out)
    egress.run(400, out)
    assert egress.counters()["classes"][3]["pause_ns"] == 300
    assert egress.counters(700)["classes"][3]["pause_ns"] == 600
    assert egress.counters(9_000)["classes"][3] == {
        "bytes": 0, "packets": 0, "waiting_bytes": 0, "peak": 0, "pauses": 1, "pause_ns": 900
    }  # fmt: skip


def test_a_standstill_and_a_pause_end_each_by_itself():
    egress, out = port(), []
    egress.offer(0, packet(100, number=3), 3, out)
    egress.offer(0, packet(100, number=0), 0, out)
    egress.pause(0, 3, 1_000, out)
    egress.set_standstill(0, True, out)
    egress.pause(100, 3, 2_000, out)
    egress.send_control(200, FRAME, out)
    assert egress.run(5_000, out) == egress.next_departure_ns == NEVER
    egress.set_standstill(600, False, out)
    assert numbers(drained(egress, out)) == [-1, 0, 3]
    assert [entry[1] - 1_000 for entry in out] == [600 + FRAME_NS, 700 + FRAME_NS, 2_100]


# Faults of the link and control frames.


def test_faults_of_packets_do_not_touch_control_frames():
    egress, out = port(), []
    fault = Impairment(loss_ppm=1_000_000, corruption_ppm=1_000_000, duplication_ppm=1_000_000, gray_ppm=1_000_000)
    egress.set_impairment(0, replace(fault, reordering_ppm=1_000_000, reordering_ns=500), out)
    for _ in range(5):
        egress.send_control(0, FRAME, out)
        egress.offer(0, packet(100), 3, out)
    drained(egress, out)
    assert [entry[2] for entry in out] == [FRAME] * 5
    assert starts(out, FRAME_NS) == [FRAME_NS * count for count in range(5)]
    assert egress.drops["loss"] == 5


@pytest.mark.parametrize(
    ("fault", "reason"), [(Impairment(up=False), "link_down"), (Impairment(control_loss_ppm=1_000_000), "loss")]
)
def test_a_dead_link_loses_control_frames_and_so_does_a_fault_that_says_so(fault, reason):
    egress, out = port(), []
    egress.set_impairment(0, fault, out)
    egress.send_control(0, FRAME, out)
    egress.run(500, out)
    assert (out, egress.drops[reason], egress.control_frames, egress.met) == ([], 1, 1, 1)
    egress.set_impairment(600, HEALTHY, out)
    egress.send_control(600, FRAME, out)
    assert starts(drained(egress, out), FRAME_NS) == [600]


def test_a_delay_holds_control_frames_back_too_and_keeps_the_order():
    egress, out = port(), []
    egress.set_impairment(0, Impairment(delay_ns=400), out)
    egress.offer(0, packet(100), 3, out)
    egress.send_control(50, FRAME, out)
    assert egress.run(200, out) == 500
    egress.set_impairment(200, HEALTHY, out)
    egress.send_control(200, FRAME, out)
    drained(egress, out)
    assert [entry[1] for entry in out] == [1_500, 1_500 + FRAME_NS, 1_501 + FRAME_NS]
    assert egress.touched["delayed"] == 3


# Against a clock that ticks every nanosecond.

SMALL = replace(PLAIN, weights=(1, 2, 1, 3, 1, 1, 1, 1), round_bytes=70, data_bytes_max=500, control_bytes_max=300)
TIMES = st.integers(0, 20).map(lambda step: step * 50)
OFFER = st.tuples(TIMES, st.just("offer"), st.sampled_from([0, 1, 3, 6, 7]), st.sampled_from([100, 150, 200]))
PAUSE = st.tuples(TIMES, st.just("pause"), st.sampled_from([0, 3, 6, 7]), st.sampled_from([0, 1, 100, 333, 400, 900]))
CONTROL = st.tuples(TIMES, st.just("control"), st.just(0), st.just(0))
EVENTS = st.tuples(
    st.lists(PAUSE, min_size=4, max_size=12), st.lists(OFFER, min_size=12, max_size=30), st.lists(CONTROL, max_size=2)
).map(lambda lists: sorted((event for events in lists for event in events), key=lambda event: event[0]))
Event = tuple[int, str, int, int]


class EveryNanosecond:
    """The plainest possible port under `SMALL`."""

    def __init__(self) -> None:
        self.queues: list[deque[bytearray]] = [deque() for _ in range(8)]
        self.frames = 0
        self.until = [0] * 8
        self.deficit = [0] * 8
        self.turn = 0
        self.given = False
        self.out: list[Transmit] = []
        self.told: list[tuple[int, int, int]] = []

    def take(self, now: int, number: int, kind: str, cls: int, figure: int) -> None:
        if kind == "offer":
            if sum(map(len, self.queues[cls])) + figure <= (500 if cls < 6 else 300):
                self.queues[cls].append(packet(figure, number=number))
        elif kind == "pause":
            self.until[cls] = now + figure
        else:
            self.frames += 1

    def choose(self, now: int) -> int | None:
        ready = [cls for cls in range(8) if self.queues[cls] and self.until[cls] <= now]
        if not ready or ready[-1] >= 6 or len(ready) == 1:
            return ready[-1] if ready else None
        while True:
            if self.turn not in ready:
                self.deficit[self.turn] = 0
            else:
                self.deficit[self.turn] += 0 if self.given else 70 * SMALL.weights[self.turn]
                self.given = True
                cost = len(self.queues[self.turn][0])
                if cost <= self.deficit[self.turn]:
                    self.deficit[self.turn] -= cost
                    return self.turn
            self.turn, self.given = (self.turn + 1) % 6, False

    def run(self, events: list[Event], end: int) -> None:
        free_ns = position = 0
        for now in range(end):
            while position < len(events) and events[position][0] == now:
                self.take(now, position, *events[position][1:])
                position += 1
            if now < free_ns:
                continue
            if self.frames:
                self.frames -= 1
                free_ns = now + FRAME_NS
                self.out.append((3, free_ns + 1_000, FRAME))
            elif (cls := self.choose(now)) is not None:
                body = self.queues[cls].popleft()
                if not self.queues[cls]:
                    self.deficit[cls] = 0
                free_ns = now + len(body)
                self.out.append((3, free_ns + 1_000, body))
                self.told.append((now, body[-1], len(body)))


def paused_for(events: list[Event], cls: int) -> int:
    """For how many nanoseconds these events pause a class."""
    paused: set[int] = set()
    for now, kind, which, figure in events:
        if kind == "pause" and which == cls:
            paused = {at_ns for at_ns in paused if at_ns < now} | set(range(now, now + figure))
    return len(paused)


def at_work(egress: ClassEgress, events: list[Event], cuts: list[int], end: int, out: list[Transmit]) -> None:
    """Carry these events out, with time cut at these instants."""
    todo: deque[tuple[int, Event]] = deque(enumerate(events))
    for until in [*sorted(cuts), end]:
        while todo and todo[0][1][0] <= until:
            number, (now, kind, cls, figure) = todo.popleft()
            if kind == "offer":
                egress.offer(now, packet(figure, number=number), cls, out, number)
            elif kind == "pause":
                egress.pause(now, cls, now + figure if figure else 0, out)
            else:
                egress.send_control(now, FRAME, out)
        soonest = egress.run(until, out)
        assert soonest == egress.next_departure_ns > until


@settings(deadline=None, max_examples=100)
@given(EVENTS, st.lists(st.integers(0, 3_000), max_size=10))
def test_lazy_is_exact_and_cuts_do_not_matter(events: list[Event], cuts: list[int]) -> None:
    plain, told, out = EveryNanosecond(), Told(), []
    plain.run(events, 9_000)
    egress = port(SMALL, told)
    at_work(egress, events, cuts, 9_000, out)
    assert (out, told) == (plain.out, plain.told)
    assert [egress.pause_ns(cls, 12_000) for cls in range(8)] == [paused_for(events, cls) for cls in range(8)]
    assert egress.control_frames == sum(isinstance(entry[2], ControlFrame) for entry in out)
    assert len(out) - egress.control_frames + sum(egress.drops.values()) == sum(e[1] == "offer" for e in events)


@settings(deadline=None, max_examples=60)
@given(
    EVENTS,
    st.lists(st.integers(0, 3_000), max_size=10),
    st.builds(
        Impairment,
        loss_ppm=st.sampled_from([0, 300_000]),
        control_loss_ppm=st.sampled_from([0, 300_000]),
        duplication_ppm=st.sampled_from([0, 300_000]),
        reordering_ppm=st.sampled_from([0, 300_000]),
        reordering_ns=st.just(170),
        jitter_ns=st.sampled_from([0, 400]),
        rate_bps=st.sampled_from([0, 3_000_000_000]),
    ),
)
def test_with_faults_cuts_do_not_matter_either(events: list[Event], cuts: list[int], fault: Impairment) -> None:
    def happened(cuts: list[int]) -> tuple[Any, ...]:
        told, out = Told(), []
        egress = port(SMALL, told)
        egress.set_impairment(0, fault, out)
        at_work(egress, events, cuts, 20_000, out)
        return out, told, egress.counters()

    assert happened(cuts) == happened([])
