"""One port: serialization, priority, admission, marks, trims, and independence of how time is cut."""

from collections import deque
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.egress import Egress
from mrcfabric.egress_config import EgressConfig
from mrcfabric.node import Transmit
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Instant

# One byte per nanosecond, nothing added: times can be read off sizes.
PLAIN = EgressConfig(rate_bps=8_000_000_000, delay_ns=1_000, overhead_bytes=0)
RED = replace(PLAIN, ecn=True, ecn_min_bytes=500, ecn_max_bytes=1_500)
TRIM = replace(PLAIN, data_bytes_max=1_000, trim=True, trim_bytes=128, trim_dscp=12)
TRIMMABLE, NO_TRIM, CONTROL = 4, 0, 46
ECT_0, ECT_1, CE, NOT_ECT = 2, 1, 3, 0


def packet(size: int, dscp: int = TRIMMABLE, ecn: int = ECT_0, number: int = 0) -> bytearray:
    """An IPv6 packet as far as a port looks; the last byte is a number to tell packets apart."""
    head = 6 << 12 | dscp << 6 | ecn << 4
    return bytearray(head.to_bytes(2, "big") + bytes(size - 3) + bytes([number]))


def port(config: EgressConfig = PLAIN) -> Egress:
    return Egress(config, 3, Rng("test"))


def sent(egress: Egress, *offers: tuple[Instant, bytearray, bool]) -> list[Transmit]:
    out: list[Transmit] = []
    for at_ns, body, control in offers:
        egress.offer(at_ns, body, control, out)
    egress.run(NEVER - 1, out)
    return out


def ecn_bits(transmits: list[Transmit]) -> list[int]:
    return [entry[2][1] >> 4 & 3 for entry in transmits]


# Time and order.


def test_the_last_bit_arrives_after_serialization_and_delay():
    egress = port()
    assert [entry[:2] for entry in sent(egress, (50, packet(200), False))] == [(3, 50 + 200 + 1_000)]
    assert egress.busy_until == 250
    assert egress.next_departure_ns == NEVER


def test_serialization_counts_overhead_and_rounds_up():
    egress = port(EgressConfig(rate_bps=100_000_000_000, delay_ns=1_000, overhead_bytes=38))
    # (4232 + 38) * 8 / 100 = 341.6 ns
    assert [entry[1] for entry in sent(egress, (0, packet(4_232), False))] == [342 + 1_000]


def test_packets_wait_for_each_other():
    transmits = sent(port(), (0, packet(300), False), (100, packet(200), False), (900, packet(100), False))
    assert [entry[1] - 1_000 for entry in transmits] == [300, 500, 1_000]


@pytest.mark.spec("MRC 1.0", "1.8")
def test_control_overtakes_waiting_data_but_not_the_packet_in_serialization():
    transmits = sent(
        port(),
        (0, packet(300, number=1), False),
        (10, packet(300, number=2), False),
        (20, packet(64, CONTROL, number=3), True),
    )
    assert [entry[2][-1] for entry in transmits] == [1, 3, 2]


def test_an_arrival_is_seen_before_a_departure_of_the_same_instant():
    at_once = sent(port(), (7, packet(300, number=1), False), (7, packet(64, CONTROL, number=2), True))
    assert [entry[2][-1] for entry in at_once] == [2, 1]
    later = sent(
        port(),
        (0, packet(300, number=1), False),
        (5, packet(300, number=2), False),
        (300, packet(64, CONTROL, number=3), True),
    )
    assert [entry[2][-1] for entry in later] == [1, 3, 2]


def test_run_commits_starts_up_to_and_including_until():
    egress, out = port(), []
    for _ in range(3):
        egress.offer(0, packet(100), False, out)
    assert out == []
    assert egress.run(99, out) == 100
    assert len(out) == 1
    assert egress.run(100, out) == 200
    assert len(out) == 2
    assert (egress.data_bytes, egress.next_departure_ns) == (100, 200)


# Admission.


def test_a_full_queue_drops_and_counts():
    config = replace(PLAIN, data_bytes_max=400, control_bytes_max=100)
    egress, out = port(config), []
    assert [egress.offer(0, packet(200), False, out) for _ in range(3)] == [True, True, False]
    assert [egress.offer(0, packet(60, CONTROL), True, out) for _ in range(2)] == [True, False]
    assert (egress.drops["data_full"], egress.drops["control_full"]) == (1, 1)
    assert (egress.data_bytes_peak, egress.control_bytes_peak) == (400, 60)


def test_a_packet_that_has_started_leaves_room():
    egress, out = port(replace(PLAIN, data_bytes_max=200)), []
    assert egress.offer(0, packet(200), False, out)
    assert not egress.offer(0, packet(200), False, out)
    assert egress.offer(1, packet(200), False, out)


# Trimming.


@pytest.mark.spec("MRC 1.0", "5")
def test_what_finds_the_queue_full_is_cut_remarked_and_overtakes():
    egress = port(TRIM)
    transmits = sent(egress, *[(0, packet(500, number=number), False) for number in (1, 2, 3)])
    assert [len(entry[2]) for entry in transmits] == [128, 500, 500]
    trimmed = transmits[0][2]
    assert (trimmed[0] & 0x0F) << 2 | trimmed[1] >> 6 == 12
    assert trimmed[1] >> 4 & 3 == ECT_0
    assert (egress.trim_admitted, egress.trim_dropped, egress.drops["data_full"]) == (1, 0, 0)


def test_retransmissions_may_be_trimmed_and_other_classes_are_dropped():
    egress = port(TRIM)
    offers = [(0, packet(1_000, 8), False), (0, packet(1_000, 8), False), (0, packet(1_000, NO_TRIM), False)]
    assert sorted(len(entry[2]) for entry in sent(egress, *offers)) == [128, 1_000]
    assert egress.drops["data_full"] == 1


def test_without_trimming_the_packet_is_dropped():
    egress = port(replace(TRIM, trim=False))
    assert len(sent(egress, *[(0, packet(600), False)] * 2)) == 1
    assert egress.drops["data_full"] == 1


@pytest.mark.spec("MRC 1.0", "5")
def test_a_trimmed_packet_without_room_is_dropped():
    egress = port(replace(TRIM, control_bytes_max=200))
    assert len(sent(egress, *[(0, packet(1_000), False) for _ in range(4)])) == 2
    assert (egress.trim_admitted, egress.trim_dropped, egress.drops["trim_full"]) == (1, 2, 2)
    assert egress.counters()["trimmed"] == 3


def test_a_short_packet_is_trimmed_whole():
    egress = port(TRIM)
    transmits = sent(egress, (0, packet(1_000), False), (0, packet(90), False))
    assert [len(entry[2]) for entry in transmits] == [90, 1_000]
    assert transmits[0][2][1] >> 6 | (transmits[0][2][0] & 0x0F) << 2 == 12


# ECN. The queue left behind decides: 500 marks nothing, 1500 everything.


@pytest.mark.spec("MRC 1.0", "5")
def test_marks_follow_the_queue_left_behind():
    transmits = sent(port(RED), *[(0, packet(250), False) for _ in range(9)])
    # left behind: 2000 1750 1500 | 1250 1000 750 by chance | 500 250 0
    assert ecn_bits(transmits)[:3] == [CE] * 3
    assert ecn_bits(transmits)[6:] == [ECT_0] * 3


def test_the_ramp_is_linear():
    marked = 0
    for seed in range(1_000):
        egress = Egress(RED, 0, Rng(seed))
        marked += ecn_bits(sent(egress, (0, packet(250), False), (0, packet(750), False)))[0] == CE
    assert 190 <= marked <= 310  # (750 - 500) / 1000


def test_the_ramp_ends_at_its_probability():
    never = replace(RED, ecn_max_ppm=0)
    marks = ecn_bits(sent(port(never), *[(0, packet(250), False) for _ in range(7)]))
    assert marks == [CE] + [ECT_0] * 6  # 1500 left behind: always; 1250: on the ramp


@pytest.mark.spec("RFC 3168", "5")
@pytest.mark.parametrize(
    ("ecn", "after", "marks"), [(NOT_ECT, NOT_ECT, 0), (ECT_1, CE, 1), (ECT_0, CE, 1), (CE, CE, 0)]
)
def test_only_capable_packets_are_marked(ecn, after, marks):
    egress = port(RED)
    transmits = sent(egress, (0, packet(100, ecn=ecn), False), (0, packet(1_500, ecn=NOT_ECT), False))
    assert ecn_bits(transmits) == [after, NOT_ECT]
    assert egress.marks == marks


@pytest.mark.spec("MRC 1.0", "1.8")
def test_control_and_trimmed_packets_are_never_marked():
    egress = port(replace(TRIM, ecn=True))
    offers = [(0, packet(900), False), (0, packet(900), False), (0, packet(100, CONTROL), True)]
    assert ecn_bits(sent(egress, *offers)) == [ECT_0] * 3


def test_a_read_only_packet_is_marked_in_a_copy():
    egress = port(RED)
    body = bytes(packet(100))
    transmits = sent(egress, (0, body, False), (0, packet(1_500), False))
    assert ecn_bits(transmits)[0] == CE
    assert body == bytes(packet(100))


# Against a clock that ticks every nanosecond.

# Coarse figures, so that arrivals, departures and thresholds often coincide.
OFFERS = st.lists(
    st.tuples(
        st.integers(0, 20).map(lambda step: step * 50),
        st.sampled_from([100, 150, 200]),
        st.booleans(),
        st.sampled_from([TRIMMABLE, NO_TRIM]),
    ),
    max_size=30,
)
SMALL = replace(RED, ecn_min_bytes=200, ecn_max_bytes=200, data_bytes_max=700, control_bytes_max=300, trim=True)
SMALL = replace(SMALL, trim_bytes=128, control_share_ppm=250_000, control_burst_bytes=100)


def every_nanosecond(offers: list[tuple[Instant, int, bool, int]]) -> list[Transmit]:
    """The plainest possible port under `SMALL`: marks exactly where more than 200 bytes stay behind, a quarter for
    control and a hundred bytes ahead of that."""
    out: list[Transmit] = []
    data: deque[bytearray] = deque()
    control: deque[bytearray] = deque()
    free_ns = 0
    lead = Fraction(0)
    for now in range(30_000):
        for number, (at_ns, size, is_control, dscp) in enumerate(offers):
            if at_ns != now:
                continue
            body = packet(size, dscp, number=number)
            if not is_control and waiting(data) + size <= 700:
                data.append(body)
            elif is_control or dscp == TRIMMABLE:
                rest = body if is_control else packet(size, 12, number=number)[:128]
                if waiting(control) + len(rest) <= 300:
                    control.append(rest)
        if now >= free_ns and (control or data):
            if control and (lead <= 100 or not data):
                body = control.popleft()
                lead = lead + Fraction(3, 4) * len(body) if data else Fraction(0)
            else:
                body = marked(data.popleft(), waiting(data) > 200)
                lead = max(Fraction(0), lead - Fraction(1, 4) * len(body))
            free_ns = now + len(body)
            out.append((3, free_ns + 1_000, body))
        if now > 1_000 and not control and not data:
            return out
    raise AssertionError("the queues must drain")


def waiting(queue: deque[bytearray]) -> int:
    return sum(map(len, queue))


def marked(body: bytearray, mark: bool) -> bytearray:
    body[1] |= 0x30 if mark else 0
    return body


@settings(deadline=None, max_examples=100)
@given(OFFERS, st.lists(st.integers(0, 60).map(lambda step: step * 50), max_size=10))
def test_lazy_is_exact_and_cuts_do_not_matter(offers, cuts):
    offers = sorted(offers, key=lambda offer: offer[0])
    egress, out = port(SMALL), []
    todo = deque(enumerate(offers))
    for until in [*sorted(cuts), 30_000]:
        while todo and todo[0][1][0] <= until:
            number, (at_ns, size, is_control, dscp) = todo.popleft()
            egress.offer(at_ns, packet(size, dscp, number=number), is_control, out)
        egress.run(until, out)
    assert out == every_nanosecond(offers)
    lost = egress.drops["data_full"] + egress.drops["control_full"] + egress.drops["trim_full"]
    assert len(out) + lost == len(offers)
    assert (egress.packets, egress.bytes) == (len(out), sum(len(entry[2]) for entry in out))
    assert egress.trimmed == egress.trim_admitted + egress.trim_dropped
    assert egress.offered_packets == len(offers)
    assert egress.offered_bytes == sum(offer[1] for offer in offers)
    assert (egress.data_bytes, egress.control_bytes) == (0, 0)
