"""The share of the control class, and what an operator sets while packets are under way."""

from collections import deque
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from mrcfabric.node import Transmit
from mrcfabric.rng import PPM
from mrcfabric.units import NEVER
from mrcfabric.wire.dscp import dscp_of
from tests.mrcfabric.test_egress import CE, CONTROL, ECT_0, PLAIN, RED, TRIM, TRIMMABLE, ecn_bits, packet, port, sent

# The share of the control class. One byte per nanosecond, half of them at most, no burst unless said.

HALF = replace(PLAIN, control_share_ppm=500_000, control_burst_bytes=0)


def classes(transmits: list[Transmit]) -> str:
    """`c` for control, `d` for data, in the order of departure."""
    return "".join("c" if dscp_of(entry[2]) == CONTROL else "d" for entry in transmits)


@pytest.mark.spec("UEC", "CMS")
def test_control_that_floods_leaves_data_its_share():
    flood = [(0, packet(100, CONTROL), True) for _ in range(40)]
    waiting = [(0, packet(200), False) for _ in range(4)]
    egress = port(replace(HALF, control_burst_bytes=200))
    # Ahead by 50 more with every one: within 200 up to the fifth; then 200 bytes of data take 100 off.
    assert classes(sent(egress, *flood, *waiting)) == "ccccc" + "dcc" * 3 + "d" + "c" * 29
    assert egress.control_held == 4
    strict = port()
    assert classes(sent(strict, *flood, *waiting)) == "c" * 40 + "d" * 4
    assert (strict.control_held, strict.control_packets, strict.control_sent_bytes) == (0, 40, 4_000)


def test_control_that_delays_nobody_is_not_held_to_a_share():
    egress = port(HALF)
    transmits = sent(egress, *[(0, packet(100, CONTROL), True) for _ in range(40)], (1_000, packet(200), False))
    assert classes(transmits) == "c" * 11 + "d" + "c" * 29
    assert egress.control_held == 1


def test_a_burst_of_acknowledgements_overtakes_as_under_strict_priority():
    egress = port(replace(HALF, control_burst_bytes=2_000))
    offers = [(0, packet(400), False)] + [(1, packet(400), False)] * 5 + [(2, packet(100, CONTROL), True)] * 30
    assert classes(sent(egress, *offers)) == "d" + "c" * 30 + "d" * 5


def test_framing_counts_towards_the_share():
    # 62 + 38 bytes on the wire against 162 + 38.
    egress = port(replace(HALF, overhead_bytes=38, control_burst_bytes=200))
    flood = [(0, packet(62, CONTROL), True) for _ in range(40)]
    assert classes(sent(egress, *flood, *[(0, packet(162), False)] * 4)) == "ccccc" + "dcc" * 3 + "d" + "c" * 29


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 4_000), st.sampled_from([64, 100, 150, 300]), st.booleans()), max_size=80),
    st.sampled_from([100_000, 250_000, 333_333, 500_000, 900_000]),
    st.sampled_from([0, 300, 1_000]),
)
def test_control_has_its_share_while_data_waits_no_more_and_no_less(offers, share_ppm, burst):
    """Over any stretch in which data waits without a break, and over any in which both do."""
    egress, out = port(replace(PLAIN, control_share_ppm=share_ppm, control_burst_bytes=burst)), []
    todo = deque(sorted(offers))
    bound = (burst + 300) * PPM
    # Control's bytes less its share of all bytes since the stretch began, in millionths; the least and the most so far.
    ahead = least = most = 0
    while todo or egress.next_departure_ns < NEVER:
        if todo and todo[0][0] <= egress.next_departure_ns:
            at_ns, size, control = todo.popleft()
            egress.offer(at_ns, packet(size, CONTROL if control else TRIMMABLE), control, out)
            continue
        data_waits, both_wait = egress.data_bytes > 0, egress.data_bytes > 0 < egress.control_bytes
        control_before, before = egress.control_sent_bytes, egress.bytes
        egress.run(egress.busy_until, out)
        if not data_waits:
            ahead = least = most = 0
            continue
        if not both_wait:
            most = ahead
        ahead += (egress.control_sent_bytes - control_before) * PPM - share_ppm * (egress.bytes - before)
        assert ahead - least <= bound
        # With a burst of a data packet, nothing that data takes off is lost.
        assert not both_wait or burst < 300 or most - ahead <= bound
        least = min(least, ahead)
        most = max(most, ahead) if both_wait else ahead
    assert len(out) == len(offers)


# What an operator sets while packets are under way.


@pytest.mark.spec("MRC 1.0", "5")
def test_trimming_goes_off_and_on_with_the_code_point_of_the_port():
    egress, out = port(TRIM), []
    egress.offer(0, packet(1_000), False, out)
    egress.set_trim(on=False)
    assert not egress.offer(0, packet(1_000), False, out)
    egress.set_trim(on=True, dscp=16)
    assert egress.offer(0, packet(1_000), False, out)
    egress.run(NEVER - 1, out)
    assert [dscp_of(entry[2]) for entry in out] == [16, TRIMMABLE]
    assert (egress.drops["data_full"], egress.trimmed) == (1, 1)


@pytest.mark.parametrize("dscp", [64, TRIMMABLE, 8])
def test_a_code_point_that_will_not_do_is_refused_and_changes_nothing(dscp):
    egress = port(TRIM)
    with pytest.raises(ConfigError, match=r"egress\.trim_dscp"):
        egress.set_trim(on=False, dscp=dscp)
    assert (egress.trim, egress.trim_dscp) == (True, 12)


@pytest.mark.spec("MRC 1.0", "5")
def test_marks_end_and_begin_with_the_departures_of_that_instant():
    egress, out = port(RED), []
    for _ in range(9):
        egress.offer(0, packet(500), False, out)
    egress.set_ecn(500, on=False, out=out)
    assert (len(out), egress.ecn) == (1, False)
    egress.set_ecn(1_000, on=True, out=out)
    assert (len(out), egress.ecn) == (2, True)
    egress.run(NEVER - 1, out)
    assert ecn_bits(out)[:4] == [CE, ECT_0, CE, CE]
