"""Whole fabrics of which a plane, or one T1 of it, is longer than the rest: nothing is lost, little sent twice."""

import pytest

from mrcfabric.impairment import Impairment
from mrcfabric.topology import Topology
from tests.nicd.core.fabric import Fabric
from tests.support.corners import corners

PIECE_BYTES = 1 << 18
PIECES = 40


def run(seed: str, planes: int, delay_ns: int, at_ns: int, t1: int | None, rate_bps: int, both: bool) -> Fabric:
    """Two NICs on two T0s; from `at_ns` on the links of plane 1's T1s, or of one of them, are longer."""
    topology = Topology(
        name="slow", planes=planes, t0_per_plane=2, t1_per_plane=4, nics_per_t0=1, seed=seed, rate_bps=rate_bps
    )
    fabric = Fabric(topology)
    for name in topology.nic_names():
        fabric.memory(name, PIECE_BYTES)
    fabric.connect("h000", "h001", 100, 200)
    slow = Impairment(delay_ns=delay_ns)
    for number in range(4) if t1 is None else (t1,):
        for t0 in range(2):
            fabric.impair(f"p1-t0-{t0}", 1 + number, slow, at_ns)
            fabric.impair(f"p1-t1-{number}", t0, slow, at_ns)
    for number in range(PIECES):
        fabric.write("h000", 100, number, 0, PIECE_BYTES, 1_000)
        if both:
            fabric.write("h001", 200, number, 0, PIECE_BYTES, 1_000)
    assert fabric.finish(80_000_000)
    assert fabric.errors() == []
    # Time for the probes of what was accused wrongly.
    fabric.simulator.run(fabric.simulator.now_ns + 40 * (topology.base_rtt_ns() + 4 * delay_ns))
    return fabric


@pytest.mark.parametrize("both", corners([False, True], True))
@pytest.mark.parametrize(
    ("delay_ns", "at_ns", "t1"), [(20_000, 1, None), (40_000, 100_000, None), (20_000, 100_000, 2)]
)
def test_a_longer_plane_costs_one_flight_sent_twice_and_no_ev(
    delay_ns: int, at_ns: int, t1: int | None, both: bool
) -> None:
    fabric = run("slow", 4, delay_ns, at_ns, t1, 100_000_000_000, both)
    ways = 1 + both
    assert fabric.total("timeouts") == 0
    # What left on the plane until the first late packet was heard of, at most.
    flight = fabric.topology.rate_bps * (2 * delay_ns + fabric.topology.base_rtt_ns()) // 8 // 4096 // 1_000_000_000
    assert fabric.total("retransmits") <= ways * flight
    assert fabric.ev_states()["assumed_bad"] == 0


@pytest.mark.long
@pytest.mark.parametrize("seed", ["a", "b", "c"])
@pytest.mark.parametrize("planes", [2, 8])
@pytest.mark.parametrize("delay_ns", [3_000, 8_000, 25_000, 60_000])
@pytest.mark.parametrize("at_ns", [1, 150_000])
def test_whatever_the_length(seed: str, planes: int, delay_ns: int, at_ns: int) -> None:
    fabric = run(seed, planes, delay_ns, at_ns, None, 100_000_000_000, True)
    flight = fabric.topology.rate_bps * (2 * delay_ns + fabric.topology.base_rtt_ns()) // 8 // 4096 // 1_000_000_000
    # Where both send, the first acknowledgements of either come by the longer plane, too.
    assert fabric.total("retransmits") <= 2 * flight * 3 // 2
    assert fabric.ev_states()["assumed_bad"] == 0
