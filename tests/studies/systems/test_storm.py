"""A NIC that pauses for ever, and what the others see of it."""

from studies.systems.bench_fabric import CONTROL_DSCP, fabric
from studies.systems.pauses import _NO_CONTROL, _PFC
from studies.systems.storm import StormFabric, pause_ns


def test_a_pause_is_84_bytes_on_the_wire() -> None:
    assert pause_ns(100 * 10**9) == 7
    assert pause_ns(10**9) == 672


def test_nothing_reaches_a_storm_after_its_pause_and_others_get_theirs() -> None:
    storm = StormFabric(fabric("s", 2, 1, nic=_NO_CONTROL, switch=_PFC, dscp=CONTROL_DSCP), 2, 1)
    storm.send(0, 2, 1, 5_000)
    storm.send(1, 0, 1, 5_000)
    storm.run(400_000)
    assert storm.pauses("p0-t0-1", 0)["xoff_received"] >= 7
    assert storm.counters("h000")["bytes_placed"] == 1 << 20
    # A pause of 335 us that is repeated at half of its time, twice in 400 us.
    assert storm.pauses("p0-t0-1", 2)["xoff_sent"] == 3
