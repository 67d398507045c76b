"""Max-min shares, by hand and against every other allocation."""

import itertools
from collections.abc import Hashable, Iterable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.max_min import Arrival, Capacity, fill, fulfilled, plane_shares, shares
from mrcfabric.topology import Topology

RATE = 100


def using(pools: Iterable[Hashable]) -> dict[Hashable, Fraction]:
    """A flow that takes of each of these pools what it delivers."""
    return dict.fromkeys(pools, Fraction(1))


def test_flows_that_share_a_pool_stop_together_and_others_go_on() -> None:
    # Bertsekas and Gallager's example: one long flow over pools that others share.
    flows = [using("ab"), using("a"), using("b"), using("b")]
    assert fill(flows, {"a": 9, "b": 9}) == [3, 6, 3, 3]
    assert fill(flows, {"a": 2, "b": 9}) == [1, 1, 4, 4]
    assert fill([], {}) == []
    assert fill([using("a")] * 3, {"a": 1}) == [Fraction(1, 3)] * 3


def test_a_flow_that_loses_a_part_takes_more_of_a_pool_than_it_delivers() -> None:
    assert fill([{"a": Fraction(2)}, {"a": Fraction(1)}], {"a": 9}) == [3, 3]
    assert fill([{"a": Fraction(2)}, {"a": Fraction(1), "b": Fraction(1)}], {"a": 9, "b": 1}) == [4, 1]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=3),
    st.lists(st.sets(st.integers(0, 2), min_size=1), min_size=1, max_size=3),
)
def test_no_other_allocation_is_fairer(sizes: list[int], drawn: list[set[int]]) -> None:
    """Every allocation in sixths is tried: none has a larger smallest share, or the same and a larger second."""
    pools = dict(enumerate([*sizes, 6]))
    flows = [[pool for pool in own if pool in pools] or [0] for own in drawn]
    found = fill([using(own) for own in flows], pools)
    for pool, size in pools.items():
        assert sum(share for share, own in zip(found, flows, strict=True) if pool in own) <= size
    best = sorted(found)
    steps = [Fraction(part, 6) for part in range(0, 6 * 6 + 1, 2)]
    for other in itertools.product(steps, repeat=len(flows)):
        if all(
            sum(share for share, own in zip(other, flows, strict=True) if pool in own) <= size
            for pool, size in pools.items()
        ):
            assert sorted(other) <= best


def topology(planes: int = 4, t1s: int = 4, per_t0: int = 4) -> Topology:
    return Topology(
        name="x", planes=planes, t0_per_plane=2, t1_per_plane=t1s, nics_per_t0=per_t0,
        evs_per_qp=32 * planes, reserve_evs_per_qp=8 * planes, mtu_bytes=256,
    )  # fmt: skip


def without(*broken: str, rate: int = 0) -> Capacity:
    """Whole links, but for those with such an end: these have `rate`."""

    def capacity(near: str, far: str) -> int:
        return rate if any(one in (near, far, f"{near}>{far}") for one in broken) else RATE

    return capacity


ACROSS = [(nic, nic + 4) for nic in range(4)] + [(nic + 4, nic) for nic in range(4)]


@pytest.mark.parametrize(
    ("capacity", "due"),
    [
        (without(), 4 * RATE),
        (without("p1-t1-0", "p1-t1-1"), 3.5 * RATE),
        (without("p1-t1-0", "p1-t1-1", "p1-t1-2"), 3.25 * RATE),
        (without(*(f"p1-t1-{number}" for number in range(4))), 3 * RATE),
        (without(*(f"p1-t1-{number}" for number in range(4)), rate=RATE // 4), 3.25 * RATE),
        (without("p1-t1-3", rate=RATE // 4), 3.8125 * RATE),
        # One up-link each: of the rack's four flows, and of nobody else.
        (without("p0-t0-0>p0-t1-0"), [3.75 * RATE] * 4 + [4 * RATE] * 4),
        # Up-links of one T0 and down-links of the other: two T1s are left between them.
        (without("p0-t0-0>p0-t1-0", "p0-t1-1>p0-t0-1"), [3.5 * RATE] * 4 + [4 * RATE] * 4),
    ],
)
def test_a_loaded_rack_by_hand(capacity: Capacity, due: float | list[float]) -> None:
    expected = due if isinstance(due, list) else [due] * 8
    assert shares(topology(), ACROSS, capacity) == [Fraction(share) for share in expected]


def test_a_port_that_is_down_binds_both_directions_of_its_nic() -> None:
    found = shares(topology(), ACROSS, without("h000>p2-t0-0", "p2-t0-0>h000"))
    assert found == [3 * RATE] + [4 * RATE] * 3 + [3 * RATE] + [4 * RATE] * 3


def losing(*broken: str, part: Fraction = Fraction(1, 20)) -> Arrival:
    """Nothing is lost but on links with such an end."""

    def arrival(near: str, far: str) -> Fraction:
        return 1 - part if any(one in (near, far, f"{near}>{far}") for one in broken) else Fraction(1)

    return arrival


ONCE, TWICE = Fraction(19, 20), Fraction(19, 20) ** 2


@pytest.mark.parametrize(
    ("broken", "due"),
    [
        # Both links of every path lose 5 % of what they carry.
        ([f"p1-t1-{number}" for number in range(4)], [3 + TWICE] * 8),
        (["p1-t1-2"], [3 + (3 + TWICE) / 4] * 8),
        # Up-links only, or down-links only, of the first T0.
        ([f"p0-t0-0>p0-t1-{number}" for number in range(4)], [3 + ONCE] * 4 + [4] * 4),
        ([f"p0-t1-{number}>p0-t0-0" for number in range(4)], [4] * 4 + [3 + ONCE] * 4),
        (["h000>p2-t0-0"], [3 + ONCE] + [4] * 7),
        (["p2-t0-0>h000"], [4] * 4 + [3 + ONCE] + [4] * 3),
    ],
)
def test_what_lossy_links_carry_and_lose_is_not_due(broken: list[str], due: list[Fraction]) -> None:
    assert shares(topology(), ACROSS, without(), losing(*broken)) == [rate * RATE for rate in due]


def test_what_is_lost_later_fills_the_ports_before() -> None:
    # Two NICs below four T1s: the up-links have room, and the NIC's port has none for what is sent again.
    few = topology(per_t0=2)
    flows = [(0, 2), (1, 3)]
    every = losing(*(f"p0-t1-{number}" for number in range(4)))
    assert plane_shares(few, 0, flows, without(), every) == [TWICE * RATE] * 2
    # One T1 that loses nothing is enough to ask for the whole.
    assert plane_shares(few, 0, flows, without(), losing("p0-t1-0")) == [RATE] * 2
    assert plane_shares(few, 0, flows, without("p0-t1-0"), every) == [TWICE * RATE] * 2


def test_an_incast_divides_the_port_of_its_receiver() -> None:
    flows = [(nic, 0) for nic in range(1, 8)]
    assert plane_shares(topology(), 0, flows, without()) == [Fraction(RATE, 7)] * 7


def test_neighbours_need_no_t1() -> None:
    flows = [(0, 1), (2, 4)]
    broken = without(*(f"p0-t1-{number}" for number in range(4)))
    assert plane_shares(topology(), 0, flows, broken) == [RATE, 0]


def test_how_far_flows_are_from_their_shares() -> None:
    due = [Fraction(10), Fraction(30), Fraction(0)]
    assert fulfilled([10, 30, 0], due) == (1.0, 1.0)
    assert fulfilled([20, 15, 5], due) == (25 / 40, 0.5)
    assert fulfilled([], []) == (1.0, 1.0)
    assert fulfilled([1.0], [Fraction(0)]) == (1.0, 1.0)
