"""The wire: what holds of it whichever packets wait for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.egress_config import EgressConfig
from mrcfabric.egress_wire import EgressWire
from mrcfabric.impairment import HEALTHY, Impairment
from mrcfabric.units import NEVER
from tests.mrcfabric.test_egress import packet, port


@pytest.mark.pure
def test_a_wire_alone_is_no_port() -> None:
    with pytest.raises(TypeError, match="abstract"):
        EgressWire(EgressConfig(), 0, port()._fault_rng, ())  # type: ignore[abstract]


@given(st.integers(1, 1 << 48), st.integers(0, 100), st.lists(st.integers(1, 9_000), min_size=1, max_size=5))
def test_serialization_is_exact_at_every_rate(rate_bps: int, overhead: int, sizes: list[int]) -> None:
    egress = port(EgressConfig(rate_bps=rate_bps, delay_ns=100, overhead_bytes=overhead))
    out: list = []
    end = 0
    for size in sizes:
        egress.offer(0, packet(size + 4), False, out)
        end += -(-(size + 4 + overhead) * 8_000_000_000 // rate_bps)
    egress.run(NEVER - 1, out)
    assert (out[-1][1], egress.busy_until) == (end + 100, end)


def test_a_rate_limit_that_ends_leaves_the_rate_of_the_port() -> None:
    egress, out = port(), []
    egress.set_impairment(0, Impairment(rate_bps=1_000_000_000), out)
    egress.set_impairment(10, HEALTHY, out)
    egress.offer(10, packet(100), False, out)
    egress.run(1_000, out)
    assert (egress.busy_until, egress.impairment, egress.held) == (110, HEALTHY, 0)


def test_a_wire_is_free_early_when_a_rate_limit_ends_in_the_middle_of_a_packet() -> None:
    egress, out = port(EgressConfig(rate_bps=8_000_000_000, delay_ns=100, overhead_bytes=0)), []
    egress.set_impairment(0, Impairment(rate_bps=1_000_000), out)
    egress.offer(0, packet(1_000), False, out)
    egress.run(0, out)
    assert egress.busy_until == 8_000_000
    egress.set_impairment(4_000_000, Impairment(rate_bps=2_000_000), out)
    assert egress.busy_until == 6_000_000
    egress.set_impairment(5_000_000, HEALTHY, out)
    assert egress.busy_until == 5_000_250
    egress.offer(5_000_100, packet(1_000), False, out)
    egress.run(6_000_000, out)
    assert [sent[1] for sent in out] == [5_000_350, 5_001_350]


def test_what_a_rate_limit_held_back_is_due_early_when_it_ends() -> None:
    egress, out = port(EgressConfig(rate_bps=8_000_000_000, delay_ns=100, overhead_bytes=0)), []
    egress.set_impairment(0, Impairment(rate_bps=1_000_000), out)
    egress.offer(0, packet(1_000), False, out)
    assert egress.run(0, out) == egress.next_departure_ns == 8_000_000
    egress.set_impairment(4_000_000, HEALTHY, out)
    assert egress.next_departure_ns == egress.next_release_ns == 4_000_500


def test_a_wire_that_stands_still_is_free_early_too() -> None:
    egress, out = port(EgressConfig(rate_bps=8_000_000_000, delay_ns=100, overhead_bytes=0)), []
    egress.set_impairment(0, Impairment(rate_bps=1_000_000), out)
    egress.offer(0, packet(1_000), False, out)
    egress.run(0, out)
    egress.set_standstill(1_000, True, out)
    egress.set_impairment(2_000, HEALTHY, out)
    egress.set_standstill(3_000, False, out)
    assert egress.busy_until == 2_000 + -(-7_998_000 // 8_000)
    egress.run(10_000, out)
    assert [sent[1] for sent in out] == [3_100]


def test_a_slower_rate_leaves_the_packet_on_the_wire_as_it_is() -> None:
    egress, out = port(EgressConfig(rate_bps=8_000_000_000, delay_ns=100, overhead_bytes=0)), []
    egress.offer(0, packet(1_000), False, out)
    egress.run(0, out)
    egress.set_impairment(500, Impairment(rate_bps=1_000_000), out)
    assert egress.busy_until == 1_000
