"""Which link credits share evenly, and which not: a receiver can share its own port among those that send to it.

UEC 1.0 3.6.14: a receiver grants at the rate of its ports to its senders in turn. So NICs that send to one get the
same, wherever they are, however many QPs they have, whenever they begin. A sender's port is shared by the sender. A
link of the fabric that two receivers share is known to neither: that is what windows (NSCC) and OCCC are for.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.topology import Topology
from studies.flows import START_NS, Flow
from studies.systems.bench_fabric import Measured, fabric, measure, of_system
from tests.support.corners import corners

EVEN = 0.95
US = 1_000


def credited(seed: str, nics: int, uplinks: int, **nic: Any) -> Topology:
    topology = of_system(fabric(seed, nics, uplinks), "uet-rccc")
    return replace(topology, nic={**topology.nic, **nic})


def watched(topology: Topology, flows: Sequence[Flow], from_us: int = 300, to_us: int = 1_100) -> Measured:
    return measure(topology, flows, from_us * US, to_us * US)


def even(shares: Sequence[float]) -> float:
    return min(shares) / max(shares)


@pytest.mark.parametrize("seed", corners(["one", "two", "three"], "one"))
@pytest.mark.parametrize(("senders", "uplinks"), [(2, 1), (3, 4), (7, 4)])
def test_senders_to_one_receiver_get_the_same_wherever_they_are(senders: int, uplinks: int, seed: str) -> None:
    below = (senders + 1) // 2 + 1
    flows = [Flow(1 + number, 0, 1, start_ns=START_NS + 1_700 * number) for number in range(senders)]
    assert {flow.source // below for flow in flows} == {0, 1}, "some share the receiver's switch, others do not"
    found = watched(credited(seed, below, uplinks), flows).shares
    assert even(found) > EVEN
    assert sum(found) > 0.95


@pytest.mark.parametrize(("qps", "uplinks"), [(2, 1), (3, 2), (8, 4)])
def test_what_counts_is_nics_and_not_qps(qps: int, uplinks: int) -> None:
    found = watched(credited("qps", 2, uplinks), [Flow(0, 2, 1, qps=qps), Flow(1, 2, 1)]).shares
    assert even(found) > EVEN


@pytest.mark.parametrize("late_us", [50, 333])
def test_one_that_comes_late_has_its_share_at_once(late_us: int) -> None:
    flows = [Flow(0, 2, 1), Flow(1, 2, 1, start_ns=START_NS + late_us * US)]
    found = watched(credited("late", 2, 2), flows, late_us + 60, late_us + 560).shares
    assert even(found) > EVEN


@pytest.mark.parametrize("seed", ["one", "two"])
def test_a_sender_shares_its_own_port_among_receivers(seed: str) -> None:
    flows = [Flow(0, 2, 1), Flow(0, 3, 1, start_ns=START_NS + 1_700), Flow(0, 1, 1)]
    found = watched(credited(seed, 2, 2), flows).shares
    assert even(found) > EVEN
    assert sum(found) > 0.95


@pytest.mark.parametrize("seed", corners(["one", "two", "three"], "three"))
def test_a_link_that_two_receivers_share_is_for_windows_or_occc(seed: str) -> None:
    flows = [Flow(0, 2, 1), Flow(1, 3, 1, start_ns=START_NS + 1_700)]
    alone, slowed, both = (
        watched(credited(seed, 2, 1, **nic), flows, 1_000, 3_000)
        for nic in ({}, {"uet_occc": True}, {"uet_cc": "both"})
    )
    # Nobody tells a receiver that the other one grants the same link: what is too much is trimmed and sent again.
    assert alone.outcome.resent > 100 * both.outcome.resent
    assert slowed.outcome.resent < alone.outcome.resent // 5
    assert even(slowed.shares) > 0.8
    assert sum(both.shares) > 0.95
