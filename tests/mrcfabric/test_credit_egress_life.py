"""A port with credits: packets that grow too old, VL15, faults of the link, arbitration, and what it counts."""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.credit_egress import HEAD_LIFE, STALLED, CreditEgress
from mrcfabric.egress_queues import CONTROL_FULL
from mrcfabric.impairment import Impairment
from mrcfabric.node import Transmit
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER
from mrcfabric.wire.flow_control import INIT, NORMAL, FlowControl
from mrcfabric.wire.link import ControlFrame
from tests.support.credit_link import PLAIN, CreditLink, ib_packet, number_of

LIFE_NS = 5_000
AGEING = replace(PLAIN, head_life_ns=LIFE_NS, stall_count=3)


class Told(list[tuple[int, Any, int]]):
    """What a port has told of departures."""

    def __call__(self, at_ns: int, origin: Any, size: int) -> None:
        self.append((at_ns, origin, size))


def begun(config: Any = PLAIN, fccl: int = 0, told: Told | None = None) -> tuple[CreditEgress, list[Transmit]]:
    """A port that has heard INIT at 100, with so many blocks on each VL."""
    port, out = CreditEgress(config, 0, Rng("x"), told), list[Transmit]()
    port.begin(0)
    for vl in range(config.vls):
        port.heard(100, FlowControl(INIT, vl, 0, fccl), out)
    port.run(200, out)
    assert len(out) == config.vls
    out.clear()
    return port, out


def left(out: list[Transmit]) -> list[tuple[int, int]]:
    """(start, number) of the packets that left a port of PLAIN."""
    return [
        (one[1] - 1_000 - len(one[2]), number_of(one[2]))
        for one in out if not isinstance(one[2], ControlFrame)
    ]  # fmt: skip


# Age.


def test_a_packet_that_is_next_for_too_long_is_dropped_at_that_instant() -> None:
    told = Told()
    port, out = begun(AGEING, 0, told)
    for number in range(2):
        port.offer(1_000, ib_packet(66, number=number), 0, out, 5 << 4)
    assert port.next_departure_ns == 1_000 + LIFE_NS
    port.run(1_000 + LIFE_NS, out)
    assert told == [(1_000 + LIFE_NS, 80, 66)]
    assert port.next_departure_ns == 1_000 + 2 * LIFE_NS, "the second was the next one from then on"
    port.heard(1_000 + 2 * LIFE_NS, FlowControl(NORMAL, 0, 0, 2), out)
    port.run(NEVER - 1, out)
    assert left(out) == [(1_000 + 2 * LIFE_NS, 1)], "a grant at the last instant is in time"
    assert (port.drops[HEAD_LIFE], port.data_bytes) == (1, 0)
    assert port.offered_packets == 2
    assert port.offered_bytes == 132


def test_too_many_in_a_row_stall_the_vl_for_eight_lives() -> None:
    told = Told()
    port, out = begun(AGEING, 0, told)
    for number in range(5):
        port.offer(1_000, ib_packet(66, number=number), 0, out, 5 << 4)
    port.offer(1_000, ib_packet(66, 1, number=9), 1, out, 5 << 4 | 1)
    stalled_ns = 1_000 + 3 * LIFE_NS
    port.run(stalled_ns, out)
    assert (port.drops[HEAD_LIFE], port.drops[STALLED]) == (4, 2), "one of them was VL 1's"
    assert [at_ns for at_ns, origin, _ in told if origin == 80] == [
        1_000 + LIFE_NS, 1_000 + 2 * LIFE_NS, stalled_ns, stalled_ns, stalled_ns
    ]  # fmt: skip
    over_ns = stalled_ns + 8 * LIFE_NS
    port.heard(over_ns - 10, FlowControl(NORMAL, 0, 0, 64), out)
    assert not port.offer(over_ns - 1, ib_packet(66), 0, out, 80)
    assert port.offer(over_ns, ib_packet(66, number=7), 0, out, 80)
    port.run(NEVER - 1, out)
    assert left(out) == [(over_ns, 7)]
    assert port.offered_packets == port.packets + sum(port.drops.values()) == 8


def test_a_packet_that_leaves_breaks_the_row() -> None:
    port, out = begun(AGEING)
    for number in range(5):
        port.offer(1_000, ib_packet(66, number=number), 0, out, 80)
    port.run(1_000 + 2 * LIFE_NS, out)
    port.heard(1_001 + 2 * LIFE_NS, FlowControl(NORMAL, 0, 0, 2), out)
    port.run(NEVER - 1, out)
    assert [number for _, number in left(out)] == [2]
    assert (port.drops[HEAD_LIFE], port.drops[STALLED]) == (4, 0)


def test_without_a_bound_packets_wait_for_ever() -> None:
    port, out = begun(PLAIN)
    port.offer(1_000, ib_packet(66), 0, out, 80)
    assert port.run(NEVER - 1, out) == NEVER


def test_who_stands_still_drops_nothing_until_it_goes_on() -> None:
    port, out = begun(AGEING)
    port.offer(1_000, ib_packet(66), 0, out, 80)
    port.set_standstill(2_000, True, out)
    assert port.run(100_000, out) == NEVER
    port.set_standstill(100_001, False, out)
    port.run(100_001, out)
    assert port.drops[HEAD_LIFE] == 1


# VL15 and arbitration.


def test_vl15_needs_no_credit_goes_first_and_drops_what_finds_no_room() -> None:
    port, out = begun(replace(PLAIN, control_bytes_max=200), 64)
    port.offer(1_000, ib_packet(514, number=0), 0, out, 80)
    port.offer(1_000, ib_packet(514, number=1), 0, out, 80)
    found = [port.offer(1_001, ib_packet(90, 15, number=2 + one), 15, out, 80) for one in range(3)]
    assert found == [True, True, False]
    port.run(NEVER - 1, out)
    assert [number for _, number in left(out)] == [0, 2, 3, 1]
    assert port.drops[CONTROL_FULL] == 1
    assert (port.control_packets, port.data_packets, port.credits.sent) == (2, 2, [18, 0])


def test_a_vl_without_credit_does_not_hold_up_another() -> None:
    port, out = begun(PLAIN)
    port.heard(300, FlowControl(NORMAL, 1, 0, 10), out)
    port.offer(1_000, ib_packet(66, 0, 0), 0, out, 80)
    port.offer(1_000, ib_packet(66, 1, 1), 1, out, 81)
    port.run(10_000, out)
    assert left(out) == [(1_000, 1)]


@pytest.mark.parametrize("weights", [(64, 64), (200, 100), (90, 30)])
def test_vls_share_the_wire_by_their_weights(weights: tuple[int, int]) -> None:
    config = replace(PLAIN, low=tuple(enumerate(weights)), blocks=(2_048, 2_048))
    link = CreditLink(config)
    for number in range(600):
        link.offer(20_000, 0, ib_packet(318, number % 2, number))
    link.run(20_000 + 300 * 318)
    first, second = link.ends[0].vl_sent_bytes[:2]
    # 318 bytes are five units, and a turn ends with the packet that uses it up.
    turn = [-(-weight // 5) for weight in weights]
    assert first / second == pytest.approx(turn[0] / turn[1], rel=0.1)


# Faults of the link.


@pytest.mark.parametrize("fault", [{"control_loss_ppm": 400_000}, {"loss_ppm": 300_000}, {"up": False}])
def test_all_credit_is_back_after_any_fault_that_loses(fault: dict[str, Any]) -> None:
    link = CreditLink(replace(PLAIN, blocks=(20, 20)))
    for number in range(200):
        link.offer(10_000 + number * 2_000, number % 2, ib_packet(126, number % 3 % 2, number))
    for end in (0, 1):
        link.at(30_000, lambda out, end=end: link.ends[end].set_impairment(30_000, Impairment(**fault), out[end]))
        link.at(900_000, lambda out, end=end: link.ends[end].set_impairment(900_000, Impairment(), out[end]))
    link.run(10**9)
    assert link.quiet
    assert not link.overruns
    for end in link.ends:
        assert [end.credits.credit(vl) for vl in (0, 1)] == [20, 20]
        assert not end.data_bytes


def test_the_neighbour_is_told_when_a_link_comes_back() -> None:
    port, out = begun(PLAIN, 10)
    port.set_impairment(1_000, Impairment(up=False), out)
    port.taken(1_500, 0, 5, out)
    port.freed(2_000, 0, 5, out)
    assert port.run(10**8, out) == NEVER, "it does not talk to a dead link"
    port.set_impairment(2 * 10**8, Impairment(), out)
    assert port.next_departure_ns == 2 * 10**8
    port.run(2 * 10**8 + 100, out)
    assert len(out) == 2


# Flow control packets.


def test_grants_wait_until_enough_has_come_together_but_no_longer_than_the_period() -> None:
    port, out = begun(replace(PLAIN, update_blocks=4), 10)
    port.taken(1_000, 0, 6, out)
    port.freed(2_000, 0, 3, out)
    assert port.next_departure_ns == PLAIN.silence_ns
    port.freed(3_000, 0, 1, out)
    assert port.next_departure_ns == 3_000
    port.run(10_000, out)
    port.freed(11_000, 0, 2, out)
    assert port.next_departure_ns == 3_000 + PLAIN.silence_ns


def test_a_port_says_how_much_it_has_sent_once_in_a_period() -> None:
    link = CreditLink(replace(PLAIN, blocks=(2_048, 2_048)))
    count = 3 * PLAIN.silence_ns // 958
    for number in range(count):
        link.offer(20_000, 0, ib_packet(958, number=number))
    link.run(10**9)
    said = [at_ns for at_ns, *_ in link.said(1)][1:]
    assert [round((at_ns - 1_000) / PLAIN.silence_ns, 2) for at_ns in said] == pytest.approx([1, 2, 3, 4], abs=0.02)


def test_what_a_port_counts() -> None:
    link = CreditLink(replace(PLAIN, blocks=(4, 4)))
    link.hold_ns = lambda _: 700
    for number in range(3):
        link.offer(10_000, 0, ib_packet(126, 1, number))
    link.run(11_500)
    near, far = (end.counters(11_500) for end in link.ends)
    assert near["vls"][1] == {
        "bytes": 252, "packets": 2, "waiting_bytes": 126, "peak": 378, "blocked_ns": 11_500 - 10_126, "credit": 0,
        "stalls": 1, "held": 0, "held_peak": 0, "blocks": 4,
    }  # fmt: skip
    assert (far["vls"][1]["held"], far["vls"][1]["held_peak"]) == (4, 4)
    assert near["flow_packets"] == 2
    assert near["data_waiting"] == 1
    assert set(near["vls"]) == {0, 1, 15}
