"""Loss without a word: gaps, probes, time-outs, retries, and requests for credit."""

import itertools

import pytest

from mrcfabric.wire.trim import trim
from mrcfabric.wire.uet_layout import CONTROL_CREDIT, CONTROL_CREDIT_REQUEST, CONTROL_PROBE, FLAG_RETX
from nicd.core.commands import SetCarrier
from tests.nicd.core.uet.pipe import FIRST_PSN, Fate, Pipe, Seen

FIRST = FIRST_PSN


def lose_first(count: int, keep: int = 0) -> Fate:
    """A fate that loses data packets number `keep` and the `count` - 1 behind it, on their first way."""

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        place = (seen.psn - FIRST) & 0xFFFFFFFF
        return not (seen.is_data and not seen.flags & FLAG_RETX and keep <= place < keep + count)

    return fate


def test_a_gap_is_filled_after_the_reordering_time() -> None:
    pipe = Pipe(lose_first(1, 5))
    pipe.write(1 << 19)
    pipe.run(1_000_000)
    settings = pipe.nics[0].config.settings
    first = next(at for at, side, seen in pipe.log if not side and seen.psn == FIRST + 5)
    again = next(at for at, side, seen in pipe.log if not side and seen.flags & FLAG_RETX)
    assert settings.uet_reorder_ns <= again - first <= settings.uet_reorder_ns + settings.base_rtt_ns
    assert pipe.counter(0, "timeouts") == pipe.counter(0, "probes_sent") == 0


def test_a_lost_last_packet_costs_a_probe_and_no_time_out() -> None:
    pipe = Pipe(lose_first(1, 2))
    pipe.write(3 * 4_096)
    pipe.run(1_000_000)
    settings = pipe.nics[0].config.settings
    assert [seen.peeked[3] for seen in pipe.sent(0) if seen.is_control] == [CONTROL_PROBE]
    assert pipe.counter(0, "timeouts") == 0
    assert pipe.completions()[0].at_ns < settings.tail_probe_ns + 2 * settings.base_rtt_ns
    assert pipe.quiet


def test_all_packets_lost_cost_a_time_out() -> None:
    pipe = Pipe(lambda at_ns, side, seen: at_ns > 40_000)
    pipe.write(3 * 4_096)
    pipe.run(1_000_000)
    settings = pipe.nics[0].config.settings
    assert pipe.counter(0, "retransmits", "timeout") == 3
    again = [at for at, side, seen in pipe.log if seen.is_data and seen.flags & FLAG_RETX]
    assert settings.rto_ns <= again[0] <= settings.rto_ns + 2_000
    assert [done.status for done in pipe.completions()] == ["ok"]


@pytest.mark.parametrize(("linear", "exponential"), [(0, 0), (2, 0), (1, 3)])
def test_retries_are_counted_and_then_the_qp_fails(linear: int, exponential: int) -> None:
    pipe = Pipe(lambda at_ns, side, seen: False)
    pipe.run(5)
    pipe.link(0).initiator.silence.set_timers(50_000, linear, exponential)
    pipe.write(100)
    pipe.run(200_000_000)
    assert len(pipe.data()) == 1 + linear + exponential
    assert pipe.errors()[0].reason == "retry_counter_exceeded"
    assert [done.status for done in pipe.completions()] == ["retry_exceeded"]


@pytest.mark.parametrize(
    ("linear", "exponential", "due"), [(0, 3, [1, 2, 4]), (3, 0, [1, 1, 1]), (2, 4, [1, 1, 1, 2, 4, 8])]
)
def test_time_outs_double_beyond_the_linear_retries(linear: int, exponential: int, due: list[int]) -> None:
    pipe = Pipe(lambda at_ns, side, seen: False, retry_linear=linear, retry_exponential=exponential)
    pipe.write(100)
    pipe.run(10_000_000)
    at = [arrival for arrival, _, seen in pipe.log if seen.is_data]
    gaps = [later - earlier for earlier, later in itertools.pairwise(at)]
    assert [round(gap / gaps[0]) for gap in gaps] == due


def test_without_a_port_it_waits_ever_longer_and_then_gives_up() -> None:
    pipe = Pipe(lambda at_ns, side, seen: at_ns < 10_000, retry_linear=2, retry_exponential=3)
    pipe.write(1 << 18)
    pipe.command(0, 30_000, SetCarrier(0, 0, False))
    pipe.run(300_000)
    looks = []
    while not pipe.errors() and len(looks) < 50:
        due_ns = pipe.nics[0].next_timeout()
        assert due_ns is not None
        looks.append(due_ns)
        pipe.run(max(due_ns, pipe.now + 1))
    assert pipe.errors()[0].reason == "retry_counter_exceeded"
    assert len(looks) < 10, "none comes again at once"


@pytest.mark.parametrize("until_ns", [200_000, 1_000_000])
def test_when_the_port_is_back_it_goes_on(until_ns: int) -> None:
    pipe = Pipe(lambda at_ns, side, seen: not 20_000 < at_ns < until_ns)
    pipe.write(1 << 18)
    pipe.command(0, 30_000, SetCarrier(0, 0, False))
    pipe.command(0, until_ns, SetCarrier(0, 0, True))
    pipe.run(until_ns + 500_000)
    assert [done.status for done in pipe.completions()] == ["ok"]
    assert pipe.quiet


def test_trims_use_no_retries() -> None:
    cut: list[int] = []

    def fate(at_ns: int, side: int, seen: Seen) -> bool | bytearray:
        if seen.is_data and len(cut) < 5:
            cut.append(at_ns)
            return trim(seen.packet, 256, 12)
        return True

    pipe = Pipe(fate, retry_linear=0, retry_exponential=0)
    pipe.write(4_000)
    pipe.run(1_000_000)
    assert len(cut) == 5
    assert [done.status for done in pipe.completions()] == ["ok"]


def test_a_lost_grant_is_asked_for() -> None:
    lost: list[int] = []

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        # Credit packets of the first 100 us, and all acknowledgements that speak of credit, are lost.
        credit = side == 1 and (seen.is_ack or (seen.is_control and seen.peeked[3] == CONTROL_CREDIT))
        if credit and at_ns < 60_000:
            lost.append(at_ns)
            return False
        return True

    pipe = Pipe(fate, uet_cc="rccc", uet_speculation_ppt=0)
    pipe.write(200_000)
    pipe.run(3_000_000)
    assert lost
    assert [done.status for done in pipe.completions()] == ["ok"]
    kinds = {seen.peeked[3] for seen in pipe.sent(0) if seen.is_control}
    assert kinds & {CONTROL_CREDIT_REQUEST, CONTROL_PROBE}
    assert pipe.target()[:200_000] == bytes(pipe.source[:200_000])
    assert pipe.quiet


@pytest.mark.parametrize("longer_rtts", [9, 10, 15])
@pytest.mark.parametrize("planes", [1, 4])
def test_a_round_trip_beyond_the_time_out_is_learnt(longer_rtts: int, planes: int) -> None:
    """The time-out is eight base RTTs: what comes later was sent again, and the answer says which one has come."""
    pipe = Pipe(planes=planes, size=1 << 22, late_is_congestion=False)
    settings = pipe.nics[0].config.settings
    longer_ns = longer_rtts * settings.base_rtt_ns
    pipe.copies = lambda seen: (longer_ns if seen.is_data else 0,)
    for number in range(4):
        pipe.write(1 << 20, wr_id=number, offset=number << 20)
    pipe.run(3_000_000)
    assert [done.status for done in pipe.completions()] == ["ok"] * 4
    windows = pipe.link(0).initiator.table.windows
    assert all(0 <= longer_ns - windows.extra_ns(plane) < settings.base_rtt_near_ns for plane in range(planes))
    # The first windows were sent again before anything could be known, and nothing else.
    again = [at for at, _, seen in pipe.log if seen.is_data and seen.flags & FLAG_RETX]
    first_answer = next(at for at, side, seen in pipe.log if side and seen.is_ack)
    assert planes < len(again) == pipe.counter(0, "retransmits", "timeout") == pipe.counter(1, "duplicates")
    assert max(again) <= first_answer + settings.base_rtt_near_ns
    assert pipe.quiet


@pytest.mark.parametrize("share", [5, 17])
def test_paths_that_reorder_further_than_configured_are_waited_for(share: int) -> None:
    pipe = Pipe(size=1 << 22)
    settings = pipe.nics[0].config.settings
    late_ns = 2 * settings.uet_reorder_ns
    pipe.copies = lambda seen: (late_ns if seen.is_data and not seen.flags & FLAG_RETX and not seen.psn % share else 0,)
    for number in range(4):
        pipe.write(1 << 20, wr_id=number, offset=number << 20)
    pipe.run(3_000_000)
    again = [at for at, _, seen in pipe.log if seen.is_data and seen.flags & FLAG_RETX]
    late = sum(seen.is_data and not seen.flags & FLAG_RETX and not seen.psn % share for _, _, seen in pipe.log)
    assert 0 < len(again) < late // 3
    assert [done.status for done in pipe.completions()] == ["ok"] * 4
