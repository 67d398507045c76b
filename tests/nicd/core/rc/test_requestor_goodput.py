"""Goodput under loss against closed forms: go-back-N, go-back-0, and what a lost last packet costs.

W is the number of packets that leave from a lost packet, which counts, to its first resend, which does not.
"""

from typing import Any

import pytest

from mrcfabric.rng import PPM, Rng
from nicd.core.events import STATUS_OK, STATUS_RETRY_EXCEEDED
from tests.nicd.core.rc.pipe import PSN_AB, Fate, Pipe, Seen, always

MTU = 256
RATE_BPS = 10_000_000_000
PACKET_NS = (MTU + 64 + 38) * 8 / 10
_FAR_NS = 1 << 40


def lossy(ppm: int, seed: int, last: int = -1) -> Fate:
    """A pipe that loses data independently; never the packet with PSN `last`, whose loss no NAK finds."""
    rng = Rng("goodput", seed)

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        return side > 0 or not seen.is_data or seen.psn == last or not rng.chance(ppm)

    return fate


def measured_w(delay_ns: int, **nic: Any) -> int:
    """W of a pipe with this delay, by the loss of one packet in the middle of a message."""
    times: list[int] = []
    fate = losing_first((PSN_AB + 700) & 0xFFFFFF, times)
    pipe = Pipe(fate, mtu=MTU, rate_bps=RATE_BPS, delay_ns=delay_ns, cc="none", **nic)
    pipe.write(MTU * 1500)
    pipe.run(100_000_000)
    assert len(times) == 2
    assert pipe.completions()[0].status == STATUS_OK
    return round((times[1] - times[0]) / PACKET_NS)


def goodput(packets: int, ppm: int, delay_ns: int, seed: int, **nic: Any) -> tuple[float, int]:
    """(share of the line that a long message gets, how often the sender went back)."""
    fate = lossy(ppm, seed, (PSN_AB + packets - 1) & 0xFFFFFF)
    pipe = Pipe(fate, mtu=MTU, rate_bps=RATE_BPS, delay_ns=delay_ns, size=MTU * packets, cc="none", **nic)
    pipe.write(MTU * packets)
    pipe.run(_FAR_NS)
    (done,) = pipe.completions()
    assert done.status == STATUS_OK
    assert pipe.target() == bytes(pipe.source)
    assert pipe.counter(0, "timeouts") == 0, "the formula is of losses that NAKs find"
    return packets * PACKET_NS / (done.at_ns - 10 - 2 * delay_ns), pipe.counter(0, "rc", "passes_begun")


def check_go_back_n(packets: int, ppm: int, delay_ns: int, seed: int) -> None:
    w = measured_w(delay_ns)
    share, passes = goodput(packets, ppm, delay_ns, seed)
    # What this draw of losses must give: every gap costs W packet times.
    assert share == pytest.approx(packets / (packets + passes * w), rel=0.03)
    # And how many gaps there are: one per p / (1 - p) packets, four standard deviations.
    p = ppm / PPM
    mean = packets * p / (1 - p)
    assert abs(passes - mean) < 4 * mean**0.5 + 1


@pytest.mark.parametrize(("ppm", "delay_ns"), [(1_000, 2_000), (10_000, 2_000), (10_000, 20_000)])
def test_go_back_n_pays_a_window_per_loss(ppm: int, delay_ns: int) -> None:
    check_go_back_n(4_000, ppm, delay_ns, 1)


@pytest.mark.long
@pytest.mark.parametrize("w", [16, 32, 64, 128, 256, 512])
@pytest.mark.parametrize("ppm", [100, 1_000, 3_000, 10_000])
def test_go_back_n_over_loss_and_window(ppm: int, w: int) -> None:
    check_go_back_n(20_000, ppm, round((w - 4) * PACKET_NS / 2), 2)


@pytest.mark.long
@pytest.mark.parametrize(("ppm", "w", "draws"), [(1_000, 16, 8), (10_000, 16, 8), (1_000, 128, 16), (10_000, 64, 10)])
def test_go_back_n_has_the_goodput_of_the_formula(ppm: int, w: int, draws: int) -> None:
    """(1 - p) / (1 - p + p W) within 3 %, the mean of draws that together lose enough packets for that."""
    delay_ns = round((w - 4) * PACKET_NS / 2)
    exact_w = measured_w(delay_ns)
    p = ppm / PPM
    shares = [goodput(16_000, ppm, delay_ns, seed)[0] for seed in range(draws)]
    mean = len(shares) / sum(1 / share for share in shares)
    assert mean == pytest.approx((1 - p) / (1 - p + p * exact_w), rel=0.03)


def test_go_back_0_lives_on_nothing_where_every_256th_packet_is_lost() -> None:
    """MS16: a 4 MB message of 1 KB packets never gets through; go-back-N gets through the same."""
    counts = {"go_back_0": 0, "go_back_n": 0}
    for recovery in counts:
        number = 0

        def fate(at_ns: int, side: int, seen: Seen) -> bool:
            nonlocal number
            number += side == 0 and seen.is_data
            return bool(side) or not seen.is_data or number % 256 > 0

        pipe = Pipe(fate, mtu=1024, size=4 << 20, rc_recovery=recovery, cc="none")
        pipe.write(4 << 20)
        pipe.run(1_000_000)
        counts[recovery] = pipe.counter(1, "bytes_placed")
        assert not pipe.errors()
        assert len(pipe.completions()) == (recovery == "go_back_n")
    assert counts["go_back_0"] == 0
    assert counts["go_back_n"] == 4 << 20


def check_go_back_0(per_message: int, messages: int, ppm: int, delay_ns: int, seed: int) -> None:
    fate = lossy(ppm, seed)
    w = measured_w(delay_ns, rc_recovery="go_back_0")
    w -= 700  # The whole message up to the lost packet goes again.
    size = MTU * per_message
    pipe = Pipe(
        fate, mtu=MTU, rate_bps=RATE_BPS, delay_ns=delay_ns, size=size, cc="none", rc_recovery="go_back_0",
        rc_retry_cnt=7,
    )  # fmt: skip
    for number in range(messages):
        pipe.write(size, number)
    pipe.run(_FAR_NS)
    assert [done.status for done in pipe.completions()] == [STATUS_OK] * messages
    assert pipe.target() == bytes(pipe.source)
    p, m = ppm / PPM, per_message
    # The packets up to the first loss of each attempt, and W - 1 behind it; W = 1 gives m p / ((1 - p)^-m - 1).
    attempts = (1 - p) ** -m - 1
    share = m / (attempts / p + attempts * (w - 1))
    took = pipe.completions()[-1].at_ns / PACKET_NS
    spread = 4 / (messages * attempts) ** 0.5
    assert m * messages / took == pytest.approx(share, rel=spread)


def test_go_back_0_repeats_whole_messages() -> None:
    check_go_back_0(100, 150, 10_000, 1_000, 5)


@pytest.mark.long
@pytest.mark.parametrize(("per_message", "ppm"), [(50, 20_000), (100, 10_000), (400, 3_000), (1000, 1_000)])
def test_go_back_0_over_sizes(per_message: int, ppm: int) -> None:
    check_go_back_0(per_message, 60_000 // per_message, ppm, 1_000, 6)


def losing_first(psn: int, sent: list[int]) -> Fate:
    """A pipe that loses the first packet with this PSN; `sent`: when those came by."""

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        if side or not seen.is_data or seen.psn != psn:
            return True
        sent.append(at_ns)
        return len(sent) > 1

    return fate


@pytest.mark.spec("IBTA", "9.7.6.1.3")
@pytest.mark.parametrize(("exponent", "length"), [(1, 1), (6, 4096), (14, 50_000), (20, 1)])
def test_a_lost_last_packet_costs_one_time_out(exponent: int, length: int) -> None:
    times = []
    last = (PSN_AB + -(-length // 4096) - 1) & 0xFFFFFF
    for lose in (False, True):
        sent: list[int] = []
        fate = losing_first(last, sent) if lose else always
        pipe = Pipe(fate, size=1 << 16, rc_timeout=exponent, rc_ack_every=0)
        pipe.write(length)
        pipe.run(_FAR_NS)
        (done,) = pipe.completions()
        assert done.status == STATUS_OK
        assert len(sent) == 2 * lose
        assert pipe.counter(0, "timeouts") == lose
        times.append(done.at_ns)
    # The time-out runs from the oldest packet in flight; only that one is sent again at its end.
    assert times[1] - times[0] <= 4_096 << exponent
    if length <= 4096:
        assert times[1] - times[0] == 4_096 << exponent


@pytest.mark.spec("IBTA", "9.7.6.1.3")
@pytest.mark.parametrize(("exponent", "retries"), [(4, 7), (14, 7), (14, 0), (10, 3)])
def test_after_the_last_try_the_qp_is_in_error(exponent: int, retries: int) -> None:
    tries: list[int] = []

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        tries.append(at_ns)
        return False

    pipe = Pipe(fate, size=1 << 12, rc_timeout=exponent, rc_retry_cnt=retries)
    pipe.write(1000, 1)
    pipe.write(1000, 2)
    pipe.run(_FAR_NS)
    (error,) = pipe.errors()
    assert error.at_ns == 10 + (retries + 1) * (4_096 << exponent)
    assert error.reason == "retry_exceeded"
    assert len(tries) == 2 * (retries + 1)
    assert [done.status for done in pipe.completions()] == [STATUS_RETRY_EXCEEDED, "flushed"]
    assert pipe.nics[0].next_timeout() is None
