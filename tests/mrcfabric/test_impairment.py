"""Faults of one link direction: settings, how several become one, and what they do to packets."""

from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from mrcfabric.impairment import HEALTHY, LOSS_REASONS, TOUCHES, ImpairedLink, Impairment
from mrcfabric.node import Transmit
from mrcfabric.rng import PPM, Rng
from mrcfabric.wire.entropy import EvOrder, ev_to_wire
from mrcfabric.wire.layout import WRITE_ONLY
from mrcfabric.wire.usid import build
from tests.support.packets import data_packet

STEP_NS = 100
BODY = b"packet" * 10
COUNT = 50_000


def link(impairment: Impairment, seed: str = "test") -> ImpairedLink:
    return ImpairedLink(impairment, Rng(seed))


def carried(impairment: Impairment, count: int, data: bool = True) -> tuple[list[Transmit], list[str | None]]:
    made = link(impairment)
    out: list[Transmit] = []
    reasons = [made.carry(3, index * STEP_NS, BODY, data, out) for index in range(count)]
    return out, reasons


def arrivals(impairment: Impairment, count: int) -> list[int]:
    return [entry.arrival_ns for entry in carried(impairment, count)[0]]


# What loses packets.


def test_a_healthy_link_passes_everything_untouched():
    out, reasons = carried(HEALTHY, 5)
    assert out == [Transmit(3, index * STEP_NS, BODY) for index in range(5)]
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
    one, other = link(lossy), link(lossy)
    for made in (one, other):
        made.carry(3, 0, BODY, True, [])
    other.change(Impairment(loss_ppm=500_000, loss_burst_packets=1_000, gray_ppm=0, rate_bps=1))
    outcomes = [[made.carry(3, STEP_NS * (1 + n), BODY, True, []) for n in range(100)] for made in (one, other)]
    assert outcomes[0] == outcomes[1]


def test_a_gray_link_loses_data_and_passes_control():
    assert carried(Impairment(gray_ppm=PPM), 3) == ([], ["gray"] * 3)
    assert carried(Impairment(gray_ppm=PPM), 3, data=False)[1] == [None] * 3


def test_a_black_hole_swallows_one_usid_wherever_it_stands():
    made = link(Impairment(black_hole_usids=(0x1234,)))
    packet = data_packet(WRITE_ONLY)
    for usids, reason in (((0x1234, 5, 6), "black_hole"), ((5, 6, 0x1234), "black_hole"), ((5, 6), None)):
        packet[24:40] = build(0xFD00_0001, usids)
        assert made.carry(3, 0, packet, True, []) == reason
    # Behind the end marker nothing is a uSID.
    packet[24:40] = build(0xFD00_0001, (5,))[:8] + b"\x12\x34" + bytes(6)
    assert made.carry(3, 0, packet, True, []) is None
    assert made.carry(3, 0, b"short", True, []) is None


@pytest.mark.spec("MRC 1.0", "7.5.5")
@pytest.mark.parametrize("order", list(EvOrder))
def test_a_black_hole_swallows_one_entropy_value(order):
    made = ImpairedLink(Impairment(black_hole_evs=(0xABCD_1234,)), Rng("test"), order)
    packet = data_packet(WRITE_ONLY)
    for ev, reason in ((0xABCD_1234, "black_hole"), (0x1234_ABCD, None)):
        flow_label, source_port = ev_to_wire(ev, order)
        packet[41:44] = (0x10 << 16 | flow_label).to_bytes(3, "big")
        packet[80:82] = source_port.to_bytes(2, "big")
        assert made.carry(3, 0, packet, True, []) == reason
    assert made.carry(3, 0, packet[:81], True, []) is None


# What harms, copies and holds back.


def test_corruption_turns_one_bit_of_a_copy():
    made, out = link(Impairment(corruption_ppm=PPM)), []
    body = bytearray(BODY)
    for _ in range(200):
        assert made.carry(3, 0, body, True, out) is None
    assert body == BODY
    bits = [(int.from_bytes(entry.packet, "big") ^ int.from_bytes(BODY, "big")) for entry in out]
    assert all(bit.bit_count() == 1 for bit in bits)
    assert len(set(bits)) > 100
    assert made.touched["corrupted"] == 200


def test_a_duplicate_comes_right_behind_in_memory_of_its_own():
    made, out = link(Impairment(duplication_ppm=PPM)), []
    body = bytearray(BODY)
    made.carry(3, 50, body, True, out)
    assert [entry.arrival_ns for entry in out] == [50, 51]
    body[0] ^= 1
    assert out[1].packet == BODY
    assert made.touched == {**dict.fromkeys(TOUCHES, 0), "duplicated": 1}


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
    made, out = link(Impairment(reordering_ppm=100_000, reordering_ns=350)), []
    for index in range(500):
        made.carry(3, index * STEP_NS, BODY, True, out)
    late = [entry.arrival_ns - index * STEP_NS for index, entry in enumerate(out)]
    assert set(late) == {0, 350}
    assert late.count(350) == made.touched["reordered"] > 20


def test_what_a_healed_link_held_back_is_not_overtaken():
    made, out = link(Impairment(delay_ns=1_000)), []
    made.carry(3, 0, BODY, True, out)
    made.change(HEALTHY)
    for index in range(1, 13):
        made.carry(3, index * STEP_NS, BODY, True, out)
        assert made.whole == (index > 10)
    assert [entry.arrival_ns for entry in out] == [*range(1_000, 1_011), 1_100, 1_200]


# Any faults.


def faults() -> st.SearchStrategy[Impairment]:
    share = st.sampled_from([0, 0, 1, 300_000, PPM])
    time = st.sampled_from([0, 0, 1, 700])
    return st.builds(
        Impairment,
        up=st.sampled_from([True, True, True, False]),
        loss_ppm=share,
        loss_burst_packets=st.sampled_from([1, 1, 5]),
        gray_ppm=share,
        black_hole_usids=st.lists(st.integers(1, 9), max_size=3).map(lambda found: tuple(sorted(set(found)))),
        black_hole_evs=st.lists(st.integers(0, 9), max_size=3).map(lambda found: tuple(sorted(set(found)))),
        corruption_ppm=share,
        duplication_ppm=share,
        reordering_ppm=share,
        reordering_ns=st.sampled_from([1, 900]),
        delay_ppm=share,
        delay_ns=time,
        jitter_ns=time,
        rate_bps=st.sampled_from([0, 0, 5, 7]),
    )


@given(faults(), st.lists(st.integers(0, 300), max_size=40))
def test_nothing_comes_early_and_every_packet_is_accounted_for(fault, steps):
    made, out, now, lost = link(fault), [], 0, 0
    for step in steps:
        now += step
        before = len(out)
        reason = made.carry(3, now, BODY, bool(step % 2), out)
        lost += reason is not None
        assert reason is None or reason in LOSS_REASONS
        assert (len(out) == before) == (reason is not None)
        assert all(entry.arrival_ns >= now for entry in out[before:])
    assert len(out) + lost == len(steps) + made.touched["duplicated"]


@given(faults())
def test_settings_round_trip(fault):
    assert Impairment.from_settings(fault.settings()) == fault


def test_settings_are_plain_and_say_what_is_not_healthy():
    assert HEALTHY.settings() == {}
    assert Impairment.from_settings({}).healthy
    assert Impairment(up=False, black_hole_usids=(3,)).settings() == {"up": False, "black_hole_usids": [3]}


@given(st.lists(faults(), max_size=4))
def test_merging_knows_no_order_and_a_healthy_link_adds_nothing(parts):
    merged = Impairment.merged(parts)
    assert merged == Impairment.merged(reversed(parts))
    assert Impairment.merged([*parts, HEALTHY]) == merged
    for name in ("loss_ppm", "gray_ppm", "corruption_ppm", "duplication_ppm", "reordering_ppm"):
        assert getattr(merged, name) >= max((getattr(part, name) for part in parts), default=0)


def test_merged_faults_come_to_what_the_fields_say():
    one = Impairment(
        loss_ppm=500_000, loss_burst_packets=7, gray_ppm=100_000, black_hole_usids=(4, 2), delay_ns=5, jitter_ns=1
    )
    other = Impairment(
        loss_ppm=500_000, black_hole_usids=(2, 3), delay_ns=7, delay_ppm=10, rate_bps=9, reordering_ppm=1,
        reordering_ns=4,
    )  # fmt: skip
    third = Impairment(up=False, rate_bps=8, loss_burst_packets=90, reordering_ppm=PPM, reordering_ns=3)
    assert Impairment.merged([one, other, third]) == Impairment(
        up=False, loss_ppm=750_000, loss_burst_packets=7, gray_ppm=100_000, black_hole_usids=(2, 3, 4),
        reordering_ppm=PPM, reordering_ns=4, delay_ns=12, jitter_ns=1, rate_bps=8,
    )  # fmt: skip
    assert Impairment.merged([]) == HEALTHY


@pytest.mark.parametrize(
    "settings",
    [
        {"loss_ppm": -1},
        {"loss_ppm": 1_000_001},
        {"loss_ppm": 0.5},
        {"loss_ppm": True},
        {"up": 1},
        {"lag": 3},
        {"loss_burst_packets": 0},
        {"reordering_ns": 0, "reordering_ppm": 1},
        {"delay_ns": 1_000_000_001},
        {"rate_bps": "5G"},
        {"black_hole_usids": 5},
        {"black_hole_usids": [0]},
        {"black_hole_usids": [True]},
        {"black_hole_evs": [1 << 32]},
        {"black_hole_evs": [[1]]},
        {"black_hole_evs": list(range(65))},
    ],
)
def test_a_mistake_is_named(settings):
    with pytest.raises(ConfigError, match=r"^impairment\." + next(iter(settings))):
        Impairment.from_settings(settings)
