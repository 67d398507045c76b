"""What faults of one link direction do to packets."""

from dataclasses import replace
from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.impaired_link import ImpairedLink
from mrcfabric.impairment import HEALTHY, LOSS_REASONS, TOUCHES, Impairment
from mrcfabric.node import Transmit
from mrcfabric.rng import PPM, Rng
from mrcfabric.units import NEVER, Buffer
from mrcfabric.wire.entropy import EvOrder, ev_to_wire
from mrcfabric.wire.layout import WRITE_ONLY
from mrcfabric.wire.usid import build
from tests.support.impairments import faults
from tests.support.packets import data_packet

STEP_NS = 100
BODY = b"packet" * 10
COUNT = 50_000


class Wire:
    """One direction of a link of no length, driven as its sender does it."""

    def __init__(self, impairment: Impairment, order: EvOrder = EvOrder.PORT_LOW) -> None:
        self.link = ImpairedLink(Rng("test"), 0, order)
        self.link.change(impairment)
        self.out: list[Transmit] = []

    def carry(self, arrival_ns: int, packet: Buffer = BODY, data: bool = True) -> str | None:
        self.link.release(arrival_ns - 1, self.out)
        return self.link.carry((3, arrival_ns, packet), data, self.out)

    def arrivals(self) -> list[int]:
        """Of all packets, those held back included."""
        assert self.link.release(NEVER - 1, self.out) == NEVER
        return [entry[1] for entry in self.out]


def carried(impairment: Impairment, count: int, data: bool = True) -> tuple[list[Transmit], list[str | None]]:
    wire = Wire(impairment)
    reasons = [wire.carry(index * STEP_NS, data=data) for index in range(count)]
    wire.arrivals()
    return wire.out, reasons


def arrivals(impairment: Impairment, count: int) -> list[int]:
    return [entry[1] for entry in carried(impairment, count)[0]]


# What loses packets.


def test_a_healthy_link_passes_everything_untouched():
    out, reasons = carried(HEALTHY, 5)
    assert out == [(3, index * STEP_NS, BODY) for index in range(5)]
    assert reasons == [None] * 5


def test_a_link_that_is_down_loses_everything_in_silence():
    assert carried(Impairment(up=False), 3) == ([], ["link_down"] * 3)


def test_certain_loss_loses_everything():
    assert carried(Impairment(loss_ppm=PPM), 3) == ([], ["loss"] * 3)
    assert carried(Impairment(loss_ppm=PPM, loss_burst_packets=9), 3) == ([], ["loss"] * 3)


def test_random_loss_is_near_its_rate_and_repeats():
    first = carried(Impairment(loss_ppm=200_000), 2_000)
    assert first == carried(Impairment(loss_ppm=200_000), 2_000)
    assert 320 <= first[1].count("loss") <= 480


@pytest.mark.parametrize(("share", "burst"), [(50_000, 10), (300_000, 4), (900_000, 2)])
def test_bursts_have_their_length_and_leave_the_share_as_it_is(share, burst):
    lost = [reason == "loss" for reason in carried(Impairment(loss_ppm=share, loss_burst_packets=burst), COUNT)[1]]
    assert sum(lost) == pytest.approx(COUNT * share / PPM, rel=0.2)
    bursts = [len(list(group)) for value, group in groupby(lost) if value]
    # Nine in ten with one packet between bursts at the most: they must be nine long.
    assert sum(bursts) / len(bursts) == pytest.approx(max(burst, share / (PPM - share)), rel=0.15)


def test_a_burst_goes_on_through_a_change_of_something_else():
    lossy = Impairment(loss_ppm=500_000, loss_burst_packets=1_000)
    one, other = Wire(lossy), Wire(lossy)
    one.carry(0)
    other.carry(0)
    other.link.change(replace(lossy, rate_bps=1))
    assert [one.carry(STEP_NS * n) for n in range(1, 100)] == [other.carry(STEP_NS * n) for n in range(1, 100)]


def test_a_gray_link_loses_data_and_passes_control():
    assert carried(Impairment(gray_ppm=PPM), 3) == ([], ["gray"] * 3)
    assert carried(Impairment(gray_ppm=PPM), 3, data=False)[1] == [None] * 3


def test_a_black_hole_swallows_one_usid_wherever_it_stands():
    wire = Wire(Impairment(black_hole_usids=(0x1234,)))
    packet = data_packet(WRITE_ONLY)
    for usids, reason in (((0x1234, 5, 6), "black_hole"), ((5, 6, 0x1234), "black_hole"), ((5, 6), None)):
        packet[24:40] = build(0xFD00_0001, usids)
        assert wire.carry(0, packet) == reason
    # Behind the end marker nothing is a uSID.
    packet[24:40] = build(0xFD00_0001, (5,))[:8] + b"\x12\x34" + bytes(6)
    assert wire.carry(0, packet) is None
    assert wire.carry(0, b"short") is None


@pytest.mark.spec("MRC 1.0", "7.5.5")
@pytest.mark.parametrize("order", list(EvOrder))
def test_a_black_hole_swallows_one_entropy_value(order):
    wire = Wire(Impairment(black_hole_evs=(0xABCD_1234,)), order)
    packet = data_packet(WRITE_ONLY)
    for ev, reason in ((0xABCD_1234, "black_hole"), (0x1234_ABCD, None)):
        flow_label, source_port = ev_to_wire(ev, order)
        packet[41:44] = (0x10 << 16 | flow_label).to_bytes(3, "big")
        packet[80:82] = source_port.to_bytes(2, "big")
        assert wire.carry(0, packet) == reason
    assert wire.carry(0, packet[:81]) is None


# What harms, copies and holds back.


def test_corruption_turns_one_bit_of_a_copy():
    wire = Wire(Impairment(corruption_ppm=PPM))
    body = bytearray(BODY)
    for _ in range(200):
        assert wire.carry(0, body) is None
    assert body == BODY
    wire.arrivals()
    bits = [(int.from_bytes(entry[2], "big") ^ int.from_bytes(BODY, "big")) for entry in wire.out]
    assert all(bit.bit_count() == 1 for bit in bits)
    assert len(set(bits)) > 100
    assert wire.link.touched["corrupted"] == 200


def test_a_duplicate_comes_right_behind_in_memory_of_its_own():
    wire = Wire(Impairment(duplication_ppm=PPM))
    body = bytearray(BODY)
    wire.carry(50, body)
    assert wire.arrivals() == [50, 51]
    body[0] ^= 1
    assert wire.out[1][2] == BODY
    assert wire.link.touched == {**dict.fromkeys(TOUCHES, 0), "duplicated": 1}


def test_a_longer_link_is_longer_for_all():
    assert arrivals(Impairment(delay_ns=2_000), 4) == [2_000, 2_100, 2_200, 2_300]


def test_jitter_keeps_the_order():
    found = arrivals(Impairment(delay_ns=500, jitter_ns=1_000), 500)
    assert all(later > earlier for earlier, later in pairwise(found))
    late = [at_ns - index * STEP_NS for index, at_ns in enumerate(found)]
    assert 500 <= min(late) < 800 < 1_200 < max(late) <= 1_500


def test_those_behind_a_delayed_packet_wait_for_it():
    found = arrivals(Impairment(delay_ns=1_000, delay_ppm=20_000), 500)
    assert all(later > earlier for earlier, later in pairwise(found))
    late = [at_ns - index * STEP_NS for index, at_ns in enumerate(found)]
    assert late.count(0) > 300
    assert late.count(1_000) >= 3


def test_reordering_lets_later_packets_overtake():
    wire = Wire(Impairment(reordering_ppm=100_000, reordering_ns=350))
    for index in range(500):
        wire.carry(index * STEP_NS, index.to_bytes(2, "big"))
    found = wire.arrivals()
    assert found == sorted(found)
    late = [at_ns - int.from_bytes(body, "big") * STEP_NS for _, at_ns, body in wire.out]
    assert set(late) == {0, 350}
    assert late.count(350) == wire.link.touched["reordered"] > 20


def test_two_that_meet_on_the_way_come_one_behind_the_other():
    wire = Wire(Impairment(reordering_ppm=PPM, reordering_ns=STEP_NS))
    wire.carry(0)
    wire.link.change(Impairment(delay_ns=1))
    for _ in range(3):
        wire.carry(STEP_NS - 1)
    wire.carry(STEP_NS + 50)
    assert wire.arrivals() == [100, 101, 102, 103, 151]


def test_what_is_held_back_stays_until_a_link_delay_before_it_arrives():
    link, out = ImpairedLink(Rng("test"), 1_000), []
    link.change(Impairment(delay_ns=300))
    link.carry((3, 1_050, BODY), True, out)
    assert (out, link.held) == ([], 1)
    assert link.release(349, out) == 350
    assert link.release(350, out) == NEVER
    assert [entry[1] for entry in out] == [1_350]
    assert link.held == 0


def test_what_a_healed_link_held_back_is_not_overtaken():
    wire = Wire(Impairment(delay_ns=1_000))
    wire.carry(0)
    wire.link.change(HEALTHY)
    for index in range(1, 13):
        wire.carry(index * STEP_NS)
        assert wire.link.whole == (index > 10)
    assert wire.arrivals() == [*range(1_000, 1_011), 1_100, 1_200]


# Any faults.


@given(faults(), st.lists(st.integers(0, 300), max_size=40))
def test_nothing_comes_early_and_every_packet_is_accounted_for(fault, steps):
    wire, now, lost = Wire(fault), 0, 0
    departed: list[int] = []
    for step in steps:
        now += step
        reason = wire.carry(now, len(departed).to_bytes(2, "big") + BODY, bool(step % 2))
        departed.append(now)
        assert reason is None or reason in LOSS_REASONS
        lost += reason is not None
    found = wire.arrivals()
    assert all(later > earlier for earlier, later in pairwise(found))
    if not fault.corruption_ppm:
        assert all(entry[1] >= departed[int.from_bytes(entry[2][:2], "big")] for entry in wire.out)
    assert len(found) + lost == len(steps) + wire.link.touched["duplicated"]


def test_what_is_hastened_keeps_its_place_behind_what_has_left() -> None:
    link = ImpairedLink(Rng("hasten"), 100)
    out: list = []
    link.change(Impairment(rate_bps=1_000_000, delay_ns=500))
    assert link.carry((0, 1_000, bytearray(b"one")), True, out) is None
    assert link.carry((0, 9_000, bytearray(b"two")), True, out) is None
    link.change(Impairment(delay_ns=500))
    link.hasten(8_900)
    # Its last bit leaves at once, and it comes right after the first.
    assert link.release(NEVER - 1, out) == NEVER
    assert [(at_ns, bytes(data)) for _, at_ns, data in out] == [(1_500, b"one"), (1_501, b"two")]
    assert link.carry((0, 1_400, bytearray(b"six")), True, out) is None
    link.release(NEVER - 1, out)
    assert out[-1][1] == 1_900


def test_a_copy_of_what_is_hastened_comes_with_it() -> None:
    link = ImpairedLink(Rng("copies"), 100)
    out: list = []
    link.change(Impairment(rate_bps=1_000_000, duplication_ppm=1_000_000))
    link.carry((0, 9_000, bytearray(b"one")), True, out)
    link.hasten(5_000)
    link.release(NEVER - 1, out)
    assert [at_ns for _, at_ns, _ in out] == [4_000, 4_001]
