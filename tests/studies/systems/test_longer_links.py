"""UET where all links are longer than the topology says: nothing is late beside a plane, and no queue is there."""

import pytest

from studies.flows import Flow
from studies.systems.bench_fabric import fabric, measure, of_system
from studies.weak_planes import longer


def share_of_line(system: str, planes: int, longer_us: int, rate_gbps: int = 100, strikes: int = 0) -> float:
    """What eight pairs across T1s get of the line; all links of `strikes` planes, of all if 0, are longer."""
    topology = of_system(fabric("far", 4, 8, planes=planes, rate_bps=rate_gbps * 10**9), system)
    flows = [Flow(nic, (nic + 4) % 8, 1) for nic in range(8)]
    faults = [longer(topology, plane, longer_us * 1_000, list(range(8))) for plane in range(strikes or planes)]
    shares = measure(topology, flows, 500_000, 900_000, faults).shares
    return sum(shares) / len(shares) / planes


@pytest.mark.parametrize("system", ["uet", "uet-reps"])
@pytest.mark.parametrize(
    "longer_us", [1, pytest.param(3, marks=pytest.mark.long), pytest.param(6, marks=pytest.mark.long), 12]
)
@pytest.mark.parametrize("planes", [1, pytest.param(4, marks=pytest.mark.long)])
def test_uet_keeps_its_rate_where_all_links_are_longer(system: str, planes: int, longer_us: int) -> None:
    assert share_of_line(system, planes, longer_us) > 0.94


@pytest.mark.parametrize(
    ("rate_gbps", "longer_us"),
    [(25, 3), (25, 12), *(pytest.param(400, more_us, marks=pytest.mark.long) for more_us in (3, 6))],
)
def test_and_at_other_rates(rate_gbps: int, longer_us: int) -> None:
    assert share_of_line("uet", 2, longer_us, rate_gbps) > 0.9


def test_credits_alone_reach_as_far_as_four_products_of_the_configured_length() -> None:
    assert share_of_line("uet-rccc", 1, 3) > 0.95
    assert 0.4 < share_of_line("uet-rccc", 1, 12) < 0.6, "a round trip is eleven times as long as configured"
