"""A port with credits: what may start and when, what its neighbour is told, and nothing lost or granted twice."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.credit_egress import CreditEgress
from mrcfabric.credit_egress_config import CreditEgressConfig
from mrcfabric.node import Transmit
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, serialization_ns
from mrcfabric.wire.flow_control import INIT, MODULUS, NORMAL, FlowControl
from mrcfabric.wire.lrh import blocks_of
from tests.support.credit_link import PLAIN, CreditLink, ib_packet, number_of

BEGUN_NS = 6 + 1_000
"""When a port of PLAIN hears that the link begins, for VL 0; 6 ns later for VL 1."""


def full(link: CreditLink) -> None:
    """Check both directions: what may be sent, is under way, lies in the buffer or is granted anew is the buffer."""
    for end in (0, 1):
        near, far = link.ends[end].credits, link.ends[1 - end].credits
        for vl, blocks in enumerate(far.blocks):
            if not near.begun[vl] or not far.begun[vl]:
                continue
            under_way = (far.granted[vl] - near.limit[vl]) % MODULUS
            assert near.credit(vl) == (near.limit[vl] - near.sent[vl]) % MODULUS <= blocks
            assert under_way <= blocks
            assert 0 <= far.held[vl] <= blocks
            parts = near.credit(vl), link.inflight[end][vl], far.held[vl], under_way, far.untold(vl)
            assert sum(parts) == blocks, parts
    assert not link.overruns


# The beginning.


def test_nothing_starts_before_the_neighbour_has_said_that_it_lives() -> None:
    link = CreditLink()
    link.offer(0, 0, ib_packet(66, number=7))
    link.run(10_000, lambda: full(link))
    assert link.said(1)[0] == (1_006, INIT, 0, 64)
    assert link.packets(1) == [(BEGUN_NS + 66 + 1_000, 7)]


def test_an_idle_link_comes_to_rest() -> None:
    link = CreditLink()
    link.run(10**9)
    assert link.quiet
    assert [len(link.arrived[end]) for end in (0, 1)] == [2, 2]


def test_a_neighbour_that_comes_to_life_late_is_told_at_once() -> None:
    link = CreditLink()
    link.deaf = lambda end, _: link.now < 5 * 10**6 or (end == 1 and link.now < 5 * 10**6)
    link.run(5 * 10**6)
    assert link.quiet, "who gets no answer stops asking"
    link.ends[1] = CreditEgress(PLAIN, 1, Rng("again"))
    link.ends[1].begin(5 * 10**6)
    link.offer(5 * 10**6, 0, ib_packet(66, number=1))
    link.offer(5 * 10**6, 1, ib_packet(66, number=2))
    link.run(10**7, lambda: full(link))
    assert link.packets(1) == [(5 * 10**6 + BEGUN_NS + 6 + 6 + 66 + 1_000, 1)], "after the answers for two VLs"
    assert len(link.packets(0)) == 1


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 60_000), st.integers(1, 40), st.integers(0, 3_000))
def test_a_neighbour_may_begin_anew_at_any_time(at_ns: int, packets: int, hold_ns: int) -> None:
    link = CreditLink()
    link.hold_ns = lambda _: hold_ns
    for number in range(2 * packets):
        link.offer(number * 700, number % 2, ib_packet(958, number=number))
    link.run(at_ns)
    link.ends[1] = CreditEgress(PLAIN, 1, Rng("again"))
    link.ends[1].begin(at_ns)
    # What was under way to the old one is not the new one's.
    link.hold_ns = lambda _: 0
    link.deaf = lambda end, _: end == 1 and link.now < at_ns + 2_000
    link.run(at_ns + 4_000)
    for number in range(20):
        link.offer(at_ns + 200_000 + number, 0, ib_packet(958, number=1_000 + number))
        link.offer(at_ns + 200_000 + number, 1, ib_packet(958, number=1_000 + number))
    link.run(at_ns + 10**7)
    assert link.quiet
    for end in (0, 1):
        assert [number for _, number in link.packets(end)][-20:] == list(range(1_000, 1_020))


# I1: credits against the loop.


@pytest.mark.parametrize("rate_bps", [8 * 10**9, 10**11, 4 * 10**11])
@pytest.mark.parametrize("delay_ns", [100, 1_000, 5_000])
@pytest.mark.parametrize(("size", "blocks"), [(4_094, 64), (4_094, 65 * 3), (254, 12), (1_022, 2_048), (62, 5)])
def test_credits_bound_what_a_loop_can_carry(rate_bps: int, delay_ns: int, size: int, blocks: int) -> None:
    """Each window of packets takes one loop: a packet and a grant, there and back; or the wire is full."""
    config = CreditEgressConfig(rate_bps=rate_bps, delay_ns=delay_ns, blocks=(blocks,), low=((0, 1),), frame_blocks=1)
    link = CreditLink(config)
    window = blocks // blocks_of(size)
    loops = 4 if window > 20 else 20
    count = (loops + 1) * window + 1
    for number in range(count):
        link.offer(20_000, 0, ib_packet(size, number=number))
    link.run(10**8, lambda: full(link))
    packet_ns, grant_ns = serialization_ns(size + 2, rate_bps), serialization_ns(8, rate_bps)
    loop_ns = packet_ns + grant_ns + 2 * delay_ns
    arrivals = [at_ns for at_ns, _ in link.packets(1)]
    assert len(arrivals) == count
    # Grants of the period may stand in between, eight bytes each.
    rate = loops * window / (arrivals[-1] - arrivals[window])
    assert rate == pytest.approx(min(1 / packet_ns, window / loop_ns), rel=0.02)
    if packet_ns < 50:
        return  # a whole number of nanoseconds is too coarse
    # The formula in bits, of a buffer that whole packets fill.
    formula = min(1.0, 512 * window * blocks_of(size) / (rate_bps * loop_ns / 10**9))
    room = blocks_of(size) * 64 / (size + 2)
    assert rate * packet_ns == pytest.approx(min(1.0, formula / room), rel=0.03)


def test_a_packet_starts_at_the_instant_at_which_its_grant_comes() -> None:
    link = CreditLink(replace(PLAIN, blocks=(2, 2)))
    for number in range(3):
        link.offer(5_000, 0, ib_packet(126, number=number))
    link.run(30_000, lambda: full(link))
    loop_ns = 126 + 1_000 + 6 + 1_000
    assert link.packets(1) == [(6_126 + number * loop_ns, number) for number in range(3)]
    assert link.ends[0].waits.total_ns(0, link.now) == (loop_ns - 126) * 2 + 126 * 2


def test_no_packet_starts_with_credit_for_a_part_of_it() -> None:
    link = CreditLink(replace(PLAIN, blocks=(3, 3)))
    link.hold_ns = lambda number: 50_000 if number == 0 else 0
    link.offer(5_000, 0, ib_packet(126, number=0))
    link.offer(5_000, 0, ib_packet(126, number=1))
    link.offer(5_000, 0, ib_packet(62, number=2))
    link.run(50_000)
    assert [number for _, number in link.packets(1)] == [0], "a smaller packet does not overtake"
    link.run(80_000)
    assert [number for _, number in link.packets(1)] == [0, 1, 2]


# At every instant.


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 1 << 40))
def test_credits_and_what_is_buffered_add_up_at_every_instant(seed: int) -> None:
    draw = Random(seed)
    rates = draw.choice((1, 8, 100, 400)), draw.choice((1, 8, 100, 400))
    vls = draw.randint(1, 4)
    least = blocks_of(4_126)
    configs = [
        CreditEgressConfig(
            rate_bps=rate * 10**9, delay_ns=draw.choice((100, 1_000, 7_777)), frame_blocks=least,
            blocks=tuple(draw.choice((least, 2 * least + 1, 500, 2_048)) for _ in range(vls)),
            low=tuple((vl, draw.randint(1, 200)) for vl in range(vls)), update_blocks=draw.choice((1, 1, 7, least)),
        )
        for rate in rates
    ]  # fmt: skip
    link = CreditLink(*configs)
    held = draw.choice((0, 100, 3_000, 40_000))
    link.hold_ns = lambda number: number * 7_919 % (held + 1)
    for number in range(draw.randint(1, 120)):
        end, vl, size = draw.randint(0, 1), draw.randrange(vls), 4 * draw.randint(7, 1_031) + 2
        link.offer(draw.randint(0, 100_000), end, ib_packet(size, vl, number))
    link.run(10**10, lambda: full(link))
    assert link.quiet
    assert sum(end.drops[reason] for end in link.ends for reason in end.drops) == 0
    assert sum(len(link.packets(end)) for end in (0, 1)) == link.ends[0].packets + link.ends[1].packets
    for near, far in (link.ends, reversed(link.ends)):
        assert not near.data_bytes
        for vl in range(vls):
            assert near.credits.credit(vl) == far.credits.blocks[vl], "all is granted in the end"


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 1 << 40), st.lists(st.integers(0, 60_000), max_size=30))
def test_the_result_does_not_depend_on_how_time_is_cut(seed: int, cuts: list[int]) -> None:
    def departures(cut: list[int]) -> list[Transmit]:
        draw = Random(seed)
        port = CreditEgress(replace(PLAIN, head_life_ns=draw.choice((0, 5_000, 20_000))), 0, Rng("x"))
        out: list[Transmit] = []
        port.begin(0)
        events = sorted((draw.randint(1, 60_000), index) for index in range(40))
        marks = sorted([(at_ns, -1) for at_ns in cut] + events)
        fccl, held = 0, 0
        for at_ns, index in marks:
            if index < 0:
                port.run(at_ns - 1, out)
                continue
            what = Random(seed + index).randint(0, 3)
            if what == 0:
                fccl = min(fccl + 9, port.credits.sent[0] + 64) if fccl else 20
                port.heard(at_ns, FlowControl(NORMAL if index > 5 else INIT, 0, 0, fccl), out)
            elif what == 1 and held < 60:
                port.taken(at_ns, 0, 2, out)
                held += 2
            elif what == 2 and held:
                port.freed(at_ns, 0, 2, out)
                held -= 2
            else:
                port.offer(at_ns, ib_packet(4 * index + 30, number=index), 0, out, index % 3 << 4)
        port.run(10**6, out)
        return out

    assert departures([]) == departures(cuts)


# I5: what a fault of the link takes away comes back.


@pytest.mark.parametrize("lost", [{3}, {0}, {9}, {1, 2, 3, 4}])
def test_credits_of_lost_packets_are_healed_by_the_next_flow_control_packet(lost: set[int]) -> None:
    """The sender's own count comes with its packet of the period; then the receiver grants what was lost."""
    link = CreditLink(replace(PLAIN, blocks=(20, 20)))
    link.deaf = lambda end, packet: end == 1 and len(packet) > 6 and number_of(packet) in lost
    for number in range(10):
        link.offer(20_000, 0, ib_packet(126, number=number))
    link.run(30_000)
    near, far = link.ends[0].credits, link.ends[1].credits
    assert near.credit(0) == 20 - 2 * len(lost)
    link.run(10**7)
    assert near.credit(0) == 20
    assert link.quiet
    period = PLAIN.silence_ns
    healed = [(at_ns, fctbs) for at_ns, _, fctbs, _ in link.said(1) if fctbs == 20]
    assert healed[0][0] <= 20_000 + 20 * 64 + period + 1_010
    granted = [at_ns for at_ns, _, _, fccl in link.said(0) if fccl == 40]
    assert granted[0] == healed[0][0] + 6 + 1_000, "at once"
    assert far.received[0] == 20


def test_a_sender_that_has_lost_all_its_credit_goes_on() -> None:
    link = CreditLink(replace(PLAIN, blocks=(2, 2)))
    link.deaf = lambda end, packet: end == 1 and len(packet) > 6 and number_of(packet) == 0
    link.offer(20_000, 0, ib_packet(126, number=0))
    link.offer(20_000, 0, ib_packet(126, number=1))
    link.run(10**7)
    assert [number for _, number in link.packets(1)] == [1]
    (arrival_ns, _), *_ = link.packets(1)
    assert arrival_ns <= 20_000 + PLAIN.silence_ns + 2 * 1_006 + 1_126


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1 << 32), st.integers(1, 60))
def test_whatever_a_fault_loses_all_credit_is_back_after_it(seed: int, share: int) -> None:
    """Packets and flow control packets are lost at random for a while, and nobody knows which."""
    draw = Random(seed)
    link = CreditLink(replace(PLAIN, blocks=(20, 20)))
    over_ns = 3 * PLAIN.silence_ns
    link.deaf = lambda end, packet: 10_000 < link.now < over_ns and len(packet) > 6 and draw.randrange(100) < share
    for number in range(200):
        link.offer(number * 4_000, number % 2, ib_packet(126, number % 3 % 2, number))
    link.run(10**9)
    assert link.quiet
    for near, far in (link.ends, reversed(link.ends)):
        assert [near.credits.credit(vl) for vl in (0, 1)] == [20, 20]
        assert not near.data_bytes
        assert not far.data_bytes
    assert not link.overruns


def test_next_departure_is_never_when_nothing_waits() -> None:
    port = CreditEgress(PLAIN, 0, Rng("x"))
    assert port.next_departure_ns == NEVER
    assert port.run(10**9, []) == NEVER
