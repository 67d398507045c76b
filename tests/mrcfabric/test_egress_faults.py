"""One port whose link has faults, whose thresholds are wrong, or that stands still."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.egress import Egress
from mrcfabric.egress_config import EgressConfig
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.impairment import Impairment
from mrcfabric.node import Transmit
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER
from tests.mrcfabric.test_egress import CE, CONTROL, ECT_0, RED, TRIM, ecn_bits, packet, port, sent


@pytest.mark.spec("MRC 1.0", "5")
def test_a_dead_link_is_silence_and_the_queue_drains():
    egress, out = port(), []
    for _ in range(3):
        egress.offer(0, packet(100), False, out)
    egress.set_impairment(100, Impairment(up=False), out)
    assert len(out) == 1  # the one that started before
    assert egress.impairment == Impairment(up=False)
    egress.run(1_000, out)
    assert len(out) == 1
    assert (egress.data_bytes, egress.packets, egress.drops["link_down"]) == (0, 3, 2)
    egress.set_impairment(1_001, Impairment(), out)
    egress.offer(1_001, packet(100), False, out)
    egress.run(2_000, out)
    assert len(out) == 2


def test_a_random_loss_is_counted():
    egress = port()
    egress.set_impairment(0, Impairment(loss_ppm=500_000), [])
    transmits = sent(egress, *[(0, packet(100), False)] * 200)
    assert len(transmits) + egress.drops["loss"] == 200
    assert 60 <= egress.drops["loss"] <= 140


def test_a_gray_link_tells_the_classes_apart():
    egress = port()
    egress.set_impairment(0, Impairment(gray_ppm=1_000_000), [])
    offers = [(0, packet(100), False), (0, packet(90, CONTROL), True), (0, packet(100), False), (900, packet(80), True)]
    assert [len(entry[2]) for entry in sent(egress, *offers)] == [90, 80]
    assert egress.drops["gray"] == 2


def test_a_rate_limit_concerns_what_starts_later():
    egress, out = port(), []
    for _ in range(3):
        egress.offer(0, packet(100), False, out)
    egress.set_impairment(50, Impairment(rate_bps=800_000_000), out)
    egress.run(2_100, out)
    assert [entry[1] - 1_000 for entry in out] == [100, 1_100, 2_100]
    egress.set_impairment(2_100, Impairment(), out)
    egress.offer(3_000, packet(100), False, out)
    egress.run(4_000, out)
    assert out[-1][1] == 3_100 + 1_000


def test_a_rate_that_is_no_limit_is_refused_and_nothing_changes():
    egress = port()
    egress.set_impairment(0, Impairment(loss_ppm=1), [])
    with pytest.raises(RefusedError, match="no limit"):
        egress.set_impairment(0, Impairment(rate_bps=8_000_000_000), [])
    assert egress.impairment == Impairment(loss_ppm=1)


def test_a_healed_link_costs_nothing_once_nothing_is_held_back():
    egress, out = port(), []
    egress.set_impairment(0, Impairment(delay_ns=250), out)
    for at_ns in (0, 100, 200, 300):
        egress.offer(at_ns, packet(100), False, out)
        if at_ns == 100:
            egress.set_impairment(100, Impairment(), out)
        assert egress.impairment.healthy == (at_ns > 0)
    assert egress.held == 3
    egress.run(500, out)
    assert [entry[1] - 1_000 for entry in out] == [350, 351, 352, 400]
    egress.offer(600, packet(100), False, out)
    egress.run(700, out)
    assert out[-1][1] == 1_700
    assert egress._link is None
    assert egress.touched["delayed"] == 3


def test_a_port_that_stands_still_keeps_what_waits():
    egress, out = port(), []
    for _ in range(3):
        egress.offer(0, packet(100), False, out)
    egress.set_standstill(50, True, out)
    egress.set_standstill(60, True, out)
    assert egress.run(5_000, out) == egress.next_departure_ns == NEVER
    assert (len(out), egress.data_bytes) == (1, 200)
    egress.set_standstill(6_000, False, out)
    egress.set_standstill(6_001, False, out)
    egress.run(7_000, out)
    assert [entry[1] - 1_000 for entry in out] == [100, 6_100, 6_200]


def test_a_short_standstill_does_not_cut_a_packet_in_two():
    egress, out = port(), []
    egress.offer(0, packet(100), False, out)
    egress.offer(0, packet(100), False, out)
    egress.set_standstill(10, True, out)
    egress.set_standstill(20, False, out)
    egress.run(1_000, out)
    assert [entry[1] - 1_000 for entry in out] == [100, 200]


def test_thresholds_can_be_wrong_and_right_again():
    egress, out = port(RED), []
    egress.set_ecn(0, None, out, min_bytes=50, max_bytes=60)
    assert egress.ecn_thresholds == (50, 60)
    assert ecn_bits(sent(egress, (0, packet(100), False), (0, packet(100), False))) == [CE, ECT_0]
    with pytest.raises(RefusedError, match="below min_bytes 2000"):
        egress.set_ecn(500, None, out, min_bytes=2_000)
    assert egress.ecn_thresholds == (50, 60)
    egress.set_ecn(500, None, out)
    assert egress.ecn
    assert egress.ecn_thresholds == (500, 1_500)
    plain = port()
    plain.set_ecn(0, None, out, min_bytes=0, max_bytes=0)
    assert not plain.ecn
    plain.set_ecn(0, True, out)
    assert plain.ecn


def test_trimming_can_be_left_to_the_configuration():
    egress = port(TRIM)
    egress.set_trim(False)
    assert not egress.trim
    egress.set_trim(None)
    assert egress.trim


ANY_FAULTS = st.builds(
    Impairment,
    loss_ppm=st.sampled_from([0, 300_000]),
    loss_burst_packets=st.sampled_from([1, 4]),
    duplication_ppm=st.sampled_from([0, 300_000]),
    reordering_ppm=st.sampled_from([0, 300_000]),
    reordering_ns=st.just(170),
    jitter_ns=st.sampled_from([0, 400]),
    rate_bps=st.sampled_from([0, 3_000_000_000]),
)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 40).map(lambda step: step * 50), ANY_FAULTS), max_size=4),
    st.lists(st.integers(0, 60).map(lambda step: step * 50), max_size=10),
)
def test_with_faults_cuts_do_not_matter_either(changes, cuts):
    def happened(cuts: list[int]) -> list[Transmit]:
        egress, out = port(), []
        todo = [(step * 40, 1, None) for step in range(40)] + [(at_ns, 0, fault) for at_ns, fault in changes]
        todo.sort(key=lambda entry: entry[:2])
        for until in [*sorted(cuts), 30_000]:
            while todo and todo[0][0] <= until:
                at_ns, _, fault = todo.pop(0)
                if fault is not None:
                    egress.set_impairment(at_ns, fault, out)
                else:
                    egress.offer(at_ns, packet(60, number=at_ns // 40), False, out)
            egress.run(until, out)
        return out

    assert happened(cuts) == happened([])


# Link-level retry.


@pytest.mark.parametrize("retry_ns", [0, 700])
@pytest.mark.parametrize("share_ppm", [50_000, 300_000])
def test_a_link_that_retries_delays_what_it_hits_and_all_behind_it(share_ppm: int, retry_ns: int) -> None:
    """Nothing is lost, the order stays, and each retry costs the link its time: to the nanosecond."""
    config = EgressConfig(rate_bps=100_000_000_000, delay_ns=500, data_bytes_max=1 << 30)
    egress, out = Egress(config, 0, Rng("retry")), []
    egress.set_impairment(1, Impairment(retry_ppm=share_ppm, retry_ns=retry_ns), out)
    count, size = 400, 4_096
    for _ in range(count):
        egress.offer(1, bytearray(size), False, out)
    egress.run(1 << 40, out)
    packet_ns = -(-(size + config.overhead_bytes) * 8 // 100)
    once_ns = retry_ns or 2 * config.delay_ns + packet_ns
    arrivals = [at_ns for _, at_ns, _ in out]
    assert len(arrivals) == count
    assert arrivals == sorted(arrivals)
    late = [later - sooner - packet_ns for sooner, later in pairwise([1 + config.delay_ns, *arrivals])]
    assert all(one >= 0 and one % once_ns == 0 for one in late), "only whole retries come in between"
    hit = sum(one > 0 for one in late)
    assert egress.touched["retried"] == hit
    assert egress.touched["delayed"] == 0
    wanted = count * share_ppm / 1_000_000
    assert abs(hit - wanted) < 5 * wanted**0.5
    retries = sum(late) // once_ns
    assert retries >= hit
    if share_ppm == 300_000:
        assert retries > hit, "a retry may be hit, too"
    assert not any(egress.drops.values())


def test_a_link_on_which_every_retry_is_hit_gives_up() -> None:
    config = EgressConfig(rate_bps=100_000_000_000, delay_ns=500)
    egress, out = Egress(config, 0, Rng("retry")), []
    egress.set_impairment(1, Impairment(retry_ppm=1_000_000), out)
    egress.offer(1, bytearray(1_000), False, out)
    egress.run(1 << 40, out)
    assert out == []
    assert egress.drops["loss"] == 1


def test_retries_of_two_faults_are_those_of_one_that_is_as_bad() -> None:
    both = Impairment.merged([Impairment(retry_ppm=500_000, retry_ns=3), Impairment(retry_ppm=500_000, retry_ns=9)])
    assert (both.retry_ppm, both.retry_ns) == (750_000, 9)
    with pytest.raises(ConfigError, match="retry_ppm"):
        Impairment(retry_ppm=1_000_001)
