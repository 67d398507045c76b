"""Credits: what a sender may send of them, and in which turn and at which pace a receiver grants them."""

import itertools

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER
from nicd.core.settings import NicSettings
from nicd.core.timers import Timers
from nicd.core.uet.credits import CreditSource, Grantor
from nicd.core.uet.oversubscribed import WHOLE, Oversubscribed

UNIT = 256


def test_a_sender_that_was_idle_speculates_and_loses_the_rest_at_the_first_grant() -> None:
    credit = CreditSource(10_000, 20_000)
    assert credit.open
    credit.spend(4_000)
    assert (credit.left_bytes, credit.spare_bytes) == (0, 6_000)
    assert credit.grant(10)
    assert credit.stop()
    assert (credit.left_bytes, credit.spare_bytes) == (10 * UNIT, 0)
    credit.spend(4_000)
    assert not credit.open
    assert credit.left_bytes == 10 * UNIT - 4_000, "the last packet may go below"


def test_or_at_the_first_nack() -> None:
    credit = CreditSource(10_000, 20_000)
    credit.spend(4_000)
    assert credit.stop()
    assert not credit.open
    assert not credit.stop()
    credit.rest()
    assert credit.open
    credit.spend(4_000)
    assert credit.spare_bytes == 6_000


def test_speculation_adds_up_with_what_is_left() -> None:
    credit = CreditSource(10_000, 20_000)
    credit.grant(20)
    credit.spend(1_000)
    assert (credit.left_bytes, credit.spare_bytes) == (20 * UNIT - 1_000, 10_000 - 20 * UNIT)
    for _ in range(4):
        credit.spend(4_000)
    assert credit.left_bytes < 0
    assert not credit.open


def test_what_was_granted_is_no_speculation() -> None:
    credit = CreditSource(1_000, 20_000)
    credit.grant(100)
    credit.spend(1_000)
    assert not credit.stop()
    assert credit.left_bytes == 100 * UNIT - 1_000


def test_one_packet_may_always_leave_first() -> None:
    credit = CreditSource(0, 20_000)
    assert credit.open
    credit.spend(4_000)
    assert not credit.open


def test_grants_count_up_and_wrap_and_old_ones_say_nothing() -> None:
    credit = CreditSource(0, 1 << 40)
    credit.granted = 0xFFFFFE
    assert credit.grant(2)
    assert (credit.granted, credit.left_bytes) == (0x1000002, 4 * UNIT)
    assert not credit.grant(2)
    assert not credit.grant(1)
    assert credit.target(0) == 0xFFFFFE, "what is left is not wanted again"
    assert credit.target(4 * UNIT) == 2
    assert credit.target(4 * UNIT + 1) == 3


def test_a_target_only_goes_up_while_credit_is_spent_on_a_backlog() -> None:
    credit = CreditSource(3_000, 1 << 40)
    backlog, last = 50_000, 0
    while backlog > 0:
        if credit.open:
            credit.spend(1_000)
            backlog -= 1_000
        else:
            credit.grant(credit.granted + 7)
            credit.stop()
        assert credit.target(backlog) >= last
        last = credit.target(backlog)
    assert last * UNIT >= 47_000


def test_a_target_is_bounded() -> None:
    credit = CreditSource(0, 2_560)
    assert credit.target(1 << 30) == 10


class Told:
    def __init__(self) -> None:
        self.grants: list[tuple[int, int]] = []

    def send(self, now: int, count: int) -> bool:
        self.grants.append((now, count))
        return True


def run(timers: Timers, until: int) -> None:
    while timers.next_ns() <= until:
        timers.fire(timers.next_ns())


def test_senders_are_served_in_turn_at_the_rate_of_the_ports() -> None:
    timers = Timers()
    # 8 Gb/s is a byte per nanosecond: a quantum of 1,024 bytes takes 1,024 ns.
    grantor = Grantor(timers, 8_000_000_000, 1024, 1 << 30, 0)
    told = [Told() for _ in range(3)]
    for number, one in enumerate(told):
        grantor.wants(100, number, 10, one.send)
    run(timers, 100_000)
    first = 100
    assert told[0].grants == [(first, 4), (first + 3 * 1024, 8), (first + 6 * 1024, 10)]
    assert told[1].grants == [(first + 1024, 4), (first + 4 * 1024, 8), (first + 6 * 1024 + 512, 10)]
    assert told[2].grants[-1] == (first + 7 * 1024, 10)
    assert timers.next_ns() == NEVER
    assert grantor.grants == 9
    assert [grantor.granted(number) for number in range(4)] == [10, 10, 10, 0]


def test_n_senders_that_always_want_more_get_the_same() -> None:
    timers = Timers()
    grantor = Grantor(timers, 100_000_000_000, 16_384, 1 << 40, 0)
    told = [Told() for _ in range(7)]
    for number, one in enumerate(told):
        grantor.wants(number, number, 1 << 20, one.send)
    run(timers, 1_000_000)
    counts = [one.grants[-1][1] for one in told]
    assert max(counts) - min(counts) <= 64
    assert abs(sum(counts) * UNIT - 12_500_000) < 3 * 16_384


def slowed() -> Oversubscribed:
    """Trimmed inside the fabric down to a hundredth; a step back takes a base RTT of 10 us."""
    law = Oversubscribed(NicSettings(base_rtt_ns=10_000), Rng("slowed"))
    law.look(0)
    law.saw(1, False, True, True)
    law.look(law.until_ns)
    return law


def test_a_grant_is_paid_for_at_the_rate_of_today_and_not_at_that_of_when_it_was_made() -> None:
    timers, law = Timers(), slowed()
    grantor = Grantor(timers, 8_000_000_000, 1 << 14, 1 << 40, 0, law)
    told = Told()
    at_ns = law.until_ns
    grantor.wants(at_ns, 0, 1 << 20, told.send)
    run(timers, at_ns + 2_000_000)
    gaps = [later - earlier for (earlier, _), (later, _) in itertools.pairwise(told.grants)]
    # At a hundredth the first would take 1.6 ms; the rate has its first hundredths back every 7.5 to 12.5 us.
    assert 140_000 < gaps[0] < 240_000
    assert gaps[0] > 2 * gaps[1] > 2 * gaps[3]
    assert abs(gaps[-1] - (1 << 14)) <= 1
    assert law.share == WHOLE


def test_targets_only_go_up_and_are_repeated_on_demand() -> None:
    timers = Timers()
    grantor = Grantor(timers, 8_000_000_000, 1 << 20, 1 << 30, 0)
    told = Told()
    grantor.repeat(0, 5)
    grantor.wants(0, 5, 10, told.send)
    run(timers, 10)
    grantor.wants(20, 5, 4, told.send)
    run(timers, 100_000)
    assert told.grants == [(0, 10)]
    grantor.repeat(200_000, 5)
    assert told.grants[-1] == (200_000, 10)
    grantor.wants(300_000, 5, 12, told.send)
    grantor.forget(5)
    run(timers, 400_000)
    assert told.grants[-1] == (200_000, 10)
    assert grantor.granted(5) == 0


def test_nobody_is_granted_more_than_it_can_use() -> None:
    timers = Timers()
    grantor = Grantor(timers, 8_000_000_000, 1 << 20, 2_560, 0)
    told = Told()
    grantor.wants(0, 5, 0x7FFFFF, told.send)
    run(timers, 1_000_000)
    assert told.grants == [(0, 10)]
    grantor.wants(1_000_000, 5, 15, told.send)
    run(timers, 2_000_000)
    assert told.grants[-1] == (1_000_000, 15)


def test_those_that_want_nothing_are_served_while_nobody_wants_more() -> None:
    timers = Timers()
    grantor = Grantor(timers, 8_000_000_000, 1024, 1 << 30, 2_560)
    told = [Told() for _ in range(2)]
    grantor.wants(0, 0, 0, told[0].send)
    grantor.wants(0, 1, 8, told[1].send)
    run(timers, 100_000)
    # First the one that wants, all of it; then both in turn, until each has ten units that it has not asked for.
    assert told[1].grants[:2] == [(0, 4), (1024, 8)]
    assert (grantor.granted(0), grantor.granted(1)) == (10, 18)
    assert timers.next_ns() == NEVER
    grantor.wants(200_000, 0, 4, told[0].send)
    run(timers, 300_000)
    assert grantor.granted(0) == 14, "it has used four"


def test_a_sender_whose_context_is_gone_comes_back_with_the_next_one() -> None:
    timers = Timers()
    grantor = Grantor(timers, 8_000_000_000, 1024, 1 << 30, 2_560)
    told = Told()
    grantor.wants(0, 0, 8, lambda now, count: False)
    run(timers, 100_000)
    assert grantor.granted(0) == 0
    assert timers.next_ns() == NEVER
    grantor.wants(200_000, 0, 8, told.send)
    run(timers, 300_000)
    assert grantor.granted(0) == 18
