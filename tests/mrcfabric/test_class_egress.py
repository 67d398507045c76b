"""One port with eight classes: order, shares, admission, marks, and what leaves when."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.choice import Choice
from mrcfabric.class_egress import ClassEgress
from mrcfabric.class_egress_config import ClassEgressConfig
from mrcfabric.egress_queues import REFUSALS
from mrcfabric.node import Transmit
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER
from mrcfabric.wire.dscp import Dscp, dscp_of
from mrcfabric.wire.link import ControlFrame
from mrcfabric.witness import Witness
from tests.mrcfabric.test_egress import CE, ECT_0, TRIMMABLE, ecn_bits, packet
from tests.mrcfabric.test_egress_witness import packet as followed
from tests.mrcfabric.test_egress_witness import told as statements

# One byte per nanosecond, nothing added: times can be read off sizes.
PLAIN = ClassEgressConfig(rate_bps=8_000_000_000, delay_ns=1_000, overhead_bytes=0, round_bytes=100)
TRIM = replace(PLAIN, data_bytes_max=1_000, trim=True, trim_bytes=128, trim_dscp=12)
RED = replace(PLAIN, ecn=True, ecn_min_bytes=500, ecn_max_bytes=501)
FRAME = ControlFrame(64)
FRAME_NS = 84
"""A control frame on this wire: 64 bytes, preamble and gap."""


class Told(list[tuple[int, Any, int]]):
    """What a port has told of departures."""

    def __call__(self, at_ns: int, origin: Any, size: int) -> None:
        self.append((at_ns, origin, size))


def port(config: ClassEgressConfig = PLAIN, told: Told | None = None) -> ClassEgress:
    return ClassEgress(config, 3, Rng("test"), told)


def numbers(out: list[Transmit]) -> list[int]:
    """The numbers of the packets, -1 for a control frame."""
    return [-1 if isinstance(entry[2], ControlFrame) else entry[2][-1] for entry in out]


def drained(egress: ClassEgress, out: list[Transmit]) -> list[Transmit]:
    assert egress.run(NEVER - 1, out) == egress.next_departure_ns == NEVER
    return out


# Order.


def test_strict_classes_go_first_and_the_highest_before_the_others():
    egress, out = port(), []
    for cls in (0, 6, 3, 7, 6):
        egress.offer(0, packet(100, number=cls), cls, out)
    assert numbers(drained(egress, out)) == [7, 6, 6, 0, 3]


def test_which_classes_are_strict_can_be_said():
    egress, out = port(replace(PLAIN, strict=(0, 2))), []
    for cls in (7, 6, 0, 1, 2):
        egress.offer(0, packet(100, number=cls), cls, out)
    assert numbers(drained(egress, out))[:2] == [2, 0]
    assert (egress.control_packets, egress.data_packets) == (2, 3)


def test_a_class_keeps_its_order_and_the_wire_its_time():
    egress, out = port(replace(PLAIN, rate_bps=100_000_000_000, overhead_bytes=38)), []
    for number in range(3):
        egress.offer(50, packet(4_232, number=number), 3, out)
    assert numbers(drained(egress, out)) == [0, 1, 2]
    assert [entry[1] for entry in out] == [1_050 + 342 * count for count in (1, 2, 3)]


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(1, 9), min_size=8, max_size=8).map(tuple),
    st.sets(st.integers(0, 5), min_size=2),
    st.sampled_from([64, 300, 1_024, 5_000]),
    st.sampled_from([0, 38]),
    st.data(),
)
def test_classes_share_the_wire_by_their_weights(weights, busy, round_bytes, overhead, data):
    """While all of them wait, whatever the sizes of their packets: to within a turn and a packet of each."""
    config = replace(PLAIN, weights=weights, round_bytes=round_bytes, overhead_bytes=overhead, data_bytes_max=1 << 30)
    egress, out = port(config), []
    for cls in busy:
        size = data.draw(st.sampled_from([200, 1_000, 4_000]))
        for _ in range(80_000 // size):
            egress.offer(0, packet(size), cls, out)
    while all(egress.class_bytes[cls] for cls in busy):
        egress.run(egress.busy_until, out)
        sent = {cls: egress.class_sent_bytes[cls] + overhead * egress.class_packets[cls] for cls in busy}
        turns = [sent[cls] / weights[cls] for cls in busy]
        bound = round_bytes + 2 * (4_000 + overhead) / min(weights[cls] for cls in busy)
        assert max(turns) - min(turns) <= bound
    assert len(drained(egress, out)) == sum(egress.class_packets)


def test_a_class_that_was_away_claims_nothing_for_that_time():
    egress, out = port(replace(PLAIN, data_bytes_max=1 << 20)), []
    for _ in range(40):
        egress.offer(0, packet(100, number=1), 1, out)
    egress.run(1_999, out)
    for _ in range(20):
        egress.offer(1_999, packet(100, number=2), 2, out)
    drained(egress, out)
    assert set(numbers(out)[:20]) == {1}
    assert numbers(out)[20:].count(2) == 20
    assert 9 <= numbers(out)[20:40].count(1) <= 11


# Control frames.


def test_a_control_frame_goes_before_all_that_waits_and_after_the_packet_on_the_wire():
    egress, out = port(), []
    egress.offer(0, packet(100, number=1), 7, out)
    egress.offer(0, packet(100, number=2), 7, out)
    egress.send_control(10, FRAME, out)
    egress.send_control(20, FRAME, out)
    assert egress.next_departure_ns == 100
    assert numbers(drained(egress, out)) == [1, -1, -1, 2]
    assert [entry[1] - 1_000 for entry in out] == [100, 100 + FRAME_NS, 100 + 2 * FRAME_NS, 200 + 2 * FRAME_NS]
    assert (egress.control_frames, egress.packets, egress.bytes) == (2, 2, 200)


def test_a_control_frame_of_an_instant_goes_before_a_departure_of_that_instant():
    egress, out = port(), []
    egress.offer(0, packet(100, number=1), 3, out)
    egress.offer(0, packet(100, number=2), 3, out)
    egress.send_control(100, FRAME, out)
    assert numbers(drained(egress, out)) == [1, -1, 2]


@pytest.mark.parametrize(("gbps", "frame_ns"), [(100, 7), (400, 2), (800, 1), (25, 27)])
def test_a_control_frame_pays_84_bytes_whatever_packets_pay(gbps, frame_ns):
    egress, out = port(replace(PLAIN, rate_bps=gbps * 10**9, overhead_bytes=38)), []
    egress.send_control(5, FRAME, out)
    assert [entry[1] for entry in drained(egress, out)] == [1_005 + frame_ns]


# Admission, marks and trims.


def test_each_class_has_a_limit_of_its_own():
    egress, out = port(replace(PLAIN, data_bytes_max=250, control_bytes_max=120)), []
    assert [egress.offer(0, packet(100), 1, out) for _ in range(3)] == [True, True, False]
    assert [egress.offer(0, packet(100), 3, out) for _ in range(3)] == [True, True, False]
    assert [egress.offer(0, packet(100), 6, out) for _ in range(2)] == [True, False]
    assert (egress.drops["data_full"], egress.drops["control_full"]) == (2, 1)
    assert (egress.data_bytes, egress.control_bytes, egress.waiting_packets) == (400, 100, (4, 1))


def test_a_mark_is_by_what_stays_behind_in_the_class():
    egress, out = port(RED), []
    for cls in (1, 3, 3, 6):
        for _ in range(2):
            egress.offer(0, packet(300, number=cls), cls, out)
    drained(egress, out)
    marked = [number for number, bits in zip(numbers(out), ecn_bits(out), strict=True) if bits == CE]
    assert marked == [3, 3]  # 900 and 600 bytes left behind; 300 in class 1, and class 6 is strict
    assert ecn_bits(out).count(ECT_0) == 6


def test_what_finds_its_class_full_is_cut_and_goes_on_in_class_6():
    told = Told()
    egress, out = port(TRIM, told), []
    for origin in range(3):
        egress.offer(0, packet(600, number=origin), 1, out, origin)
    assert (egress.class_bytes[1], egress.class_bytes[6], egress.trim_admitted) == (600, 256, 2)
    assert told == [(0, 1, 472), (0, 2, 472)]
    drained(egress, out)
    assert [dscp_of(entry[2]) for entry in out] == [12, 12, TRIMMABLE]
    assert told[2:] == [(0, 1, 128), (128, 2, 128), (256, 0, 600)]


def test_packets_trimmed_here_leave_the_reserve_of_class_6_free():
    egress, out = port(replace(TRIM, control_bytes_max=400, control_reserve_ppm=500_000)), []
    for _ in range(4):
        egress.offer(0, packet(900), 1, out)
    assert (egress.trim_admitted, egress.drops["trim_full"], egress.class_bytes[6]) == (1, 2, 128)
    assert [egress.offer(0, packet(100), 6, out) for _ in range(3)] == [True, True, False]


# What is told of departures.


def test_a_departure_is_told_when_it_starts_with_what_was_given():
    told = Told()
    egress, out = port(PLAIN, told), []
    egress.offer(5, packet(100), 3, out, ("in", 7))
    egress.offer(5, packet(200), 3, out)
    egress.offer(5, packet(50), 3, out, 0)
    egress.send_control(5, FRAME, out)
    drained(egress, out)
    start = 5 + FRAME_NS
    assert told == [(start, ("in", 7), 100), (start + 300, 0, 50)]


def test_a_frame_sent_while_a_departure_is_told_goes_right_after_that_packet():
    egress, out = port(), []
    egress.departed = lambda now, origin, size: egress.send_control(now, FRAME, out)
    egress.offer(0, packet(100, number=1), 3, out, 0)
    egress.offer(0, packet(100, number=2), 3, out)
    egress.send_control(0, FRAME, out)
    assert numbers(drained(egress, out)) == [-1, 1, -1, 2]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(64, 700), st.integers(0, 7), st.sampled_from([TRIMMABLE, 0])),
        max_size=60,
    ),
    st.sampled_from([300, 900, 1 << 20]),
)
def test_nothing_is_lost_and_the_books_balance(offers, most):
    told = Told()
    config = replace(TRIM, data_bytes_max=most, control_bytes_max=most, strict=(5, 7), ecn=True, ecn_max_bytes=200)
    egress, out, now, taken = port(config, told), [], 0, {}
    for origin, (step, size, cls, dscp) in enumerate(offers):
        now += step
        if egress.offer(now, packet(size, dscp), cls, out, origin):
            taken[origin] = size
        counters = egress.counters()
        assert [row["waiting_bytes"] for row in counters["classes"].values()] == egress.class_bytes
        assert sum(egress.class_bytes) == egress.data_bytes + egress.control_bytes
        assert egress.offered_packets == origin + 1
        assert egress.offered_bytes == sum(entry[1] for entry in offers[: origin + 1])
        assert max(egress.class_bytes) <= most
    drained(egress, out)
    assert len(out) == len(taken) == egress.packets == sum(egress.class_packets)
    assert len(offers) - len(out) == sum(egress.drops[reason] for reason in REFUSALS)
    assert egress.bytes == sum(egress.class_sent_bytes) == sum(len(entry[2]) for entry in out)
    released: dict[int, int] = {}
    for _, origin, size in told:
        released[origin] = released.get(origin, 0) + size
    assert released == taken
    assert (egress.data_bytes, egress.control_bytes, egress.waiting_packets) == (0, 0, (0, 0))


def test_a_witness_changes_nothing_and_says_what_each_packet_finds() -> None:
    witness, told, plain = Witness(Choice(), Dscp()), Told(), Told()
    seen, unseen = [], []
    config = replace(PLAIN, data_bytes_max=900, ecn=True, ecn_min_bytes=300, ecn_max_bytes=301, trim=True)
    for egress, out, happened in ((port(config, told), seen, told), (port(config, plain), unseen, plain)):
        egress.set_witness(witness if happened is told else None)
        for psn in range(6):
            egress.offer(50 * psn, followed(psn), psn % 2 * 3, out, psn)
            egress.send_control(50 * psn, FRAME, out)
        egress.pause(300, 3, 2_000, out)
        drained(egress, out)
    assert (seen, told) == (unseen, plain)
    offers, departs = statements(witness, "offer"), statements(witness, "depart")
    assert [one["packet"]["psn"] for one in offers] == list(range(6))
    assert [one["data_bytes"] for one in offers[:3]] == [0, 400, 800]
    assert sorted(one["of"] for one in departs) == [one["n"] for one in offers]
    # What is cut off is told too, 144 bytes at the offer.
    assert [one["at_ns"] for one in departs] == [at_ns for at_ns, _, size in told if size != 400 - 256]
