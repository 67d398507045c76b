"""Goodput of selective recovery (IRN) under loss: what is lost is sent again, and nothing else."""

import pytest

from mrcfabric.rng import PPM, Rng
from nicd.core.events import STATUS_OK
from tests.nicd.core.rc.pipe import PSN_AB, Pipe, Seen

MTU = 256
RATE_BPS = 10_000_000_000
PACKET_NS = (MTU + 80 + 38) * 8 / 10


def check(packets: int, ppm: int, w: int, seed: int, window_packets: int) -> None:
    rng = Rng("selective", seed)
    lost = 0
    all_sent_ns = 0
    last = (PSN_AB + packets - 1) & 0xFFFFFF

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        nonlocal lost, all_sent_ns
        if side == 0 and seen.psn == last and not all_sent_ns:
            all_sent_ns = at_ns
        if side or not seen.is_data or not rng.chance(ppm):
            return True
        lost += 1
        return False

    delay_ns = round((w - 4) * PACKET_NS / 2)
    pipe = Pipe(
        fate, mtu=MTU, rate_bps=RATE_BPS, delay_ns=delay_ns, size=MTU * packets, cc="none", rc_recovery="selective",
        rc_window_bytes=window_packets * MTU,
    )  # fmt: skip
    pipe.write(MTU * packets)
    pipe.run(1 << 40)
    (done,) = pipe.completions()
    assert done.status == STATUS_OK
    assert pipe.target() == bytes(pipe.source)
    assert pipe.counter(1, "duplicates") == 0, "nothing is sent again that has arrived"
    assert pipe.counter(0, "data_packets") == packets + lost
    # Until the last packet has left once: what is lost of the last window then takes a round trip more.
    share = packets * PACKET_NS / (all_sent_ns - 10 - delay_ns)
    assert share == pytest.approx(packets / (packets + lost), rel=0.02)
    if packets * ppm > 1000 * PPM:
        assert share == pytest.approx(1 - ppm / PPM, rel=0.02)


@pytest.mark.parametrize("ppm", [1_000, 10_000])
def test_selective_pays_a_packet_per_loss(ppm: int) -> None:
    check(6_000, ppm, 16, 1, 400)


@pytest.mark.long
@pytest.mark.parametrize("ppm", [100, 1_000, 10_000, 50_000])
@pytest.mark.parametrize("w", [16, 64, 256, 512])
def test_selective_over_loss_and_delay(ppm: int, w: int) -> None:
    check(40_000, ppm, w, 2, 8 * w)


@pytest.mark.parametrize("packets", [1, 2, 3, 40])
def test_a_lost_last_packet_costs_the_short_time_out(packets: int) -> None:
    count = 0

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        nonlocal count
        count += side == 0 and seen.is_data
        return bool(side) or count != packets

    pipe = Pipe(fate, size=1 << 20, rc_recovery="selective", rc_window_bytes=1 << 20, rc_ack_every=1)
    pipe.write(4096 * packets)
    pipe.run(1 << 40)
    (done,) = pipe.completions()
    assert done.status == STATUS_OK
    assert pipe.counter(0, "timeouts") == 1
    assert 100_000 < done.at_ns < 100_000 + 20_000


def test_a_dead_path_ends_the_qp_when_go_back_n_would_end_it() -> None:
    pipe = Pipe(lambda at_ns, side, seen: False, size=1 << 16, rc_recovery="selective", rc_timeout=8, rc_retry_cnt=2)
    pipe.write(40_000)
    pipe.run(1 << 40)
    (error,) = pipe.errors()
    assert 3 * (4_096 << 8) <= error.at_ns <= 3 * (4_096 << 8) + 320_000
    assert [done.status for done in pipe.completions()] == ["retry_exceeded"]
