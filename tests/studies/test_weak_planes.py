"""A weak plane costs what it lacks and nothing more, whatever is weak about it."""

from fractions import Fraction
from typing import Any

import pytest

from mrcfabric.topology import Topology
from studies.weak_planes import Breakage, Row, dead_t1s, longer, lossy, measure, port_down, slow
from tests.support.corners import corners

LEAST = 0.95
"""Of the max-min shares, all flows together."""
CARRIED = 0.75
"""Of what a plane could carry, at least: none is starved."""
WAVERING = 0.1
WAVERING_FEW = 0.15
"""A plane at a tenth of its rate brings some 90 packets in a bin; independent ones would already waver by 0.1."""


def topology(planes: int = 4, t1s: int = 4, per_t0: int = 4, t0s: int = 2, seed: str = "0", **more: Any) -> Topology:
    return Topology(
        name="weak", planes=planes, t0_per_plane=t0s, t1_per_plane=t1s, nics_per_t0=per_t0, seed=seed,
        evs_per_qp=32 * planes, reserve_evs_per_qp=8 * planes, **more,
    )  # fmt: skip


def across(made: Topology, seed: int = 0) -> list[tuple[int, int]]:
    """Each NIC sends to one below the next T0."""
    each = made.nics_per_t0
    return [(nic, ((nic // each + 1) * each + (nic + seed) % each) % made.nics) for nic in range(made.nics)]


def holds(row: Row, least: float = LEAST, wavering: float = WAVERING) -> None:
    assert row.ratio >= least, row
    assert min(row.planes) >= CARRIED, row
    assert max(row.wavering) <= wavering, row


def test_what_is_due_follows_from_what_is_broken() -> None:
    made = topology()
    broken = [dead_t1s(0, 1), slow(made, 1, Fraction(1, 2), range(4)), lossy(made, 2, 500_000, [0])]
    assert broken[0].meets("p0-t0-1", "p0-t1-0")
    assert not broken[0].meets("p0-t0-1", "p0-t1-1")
    assert broken[1].meets("p1-t1-3", "p1-t0-0")
    assert not broken[1].meets("p2-t1-3", "p2-t0-0")
    assert (broken[1].left, broken[1].arrives) == (Fraction(1, 2), 1)
    assert (broken[2].left, broken[2].arrives) == (1, Fraction(1, 2))
    assert port_down(made, 5, 3).meets("h005", "p3-t0-1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "due"),
    [
        pytest.param([dead_t1s(1, 2)], 3.5 / 4, marks=pytest.mark.long),
        ([slow(topology(), 1, Fraction(1, 4), range(4))], 3.25 / 4),
        pytest.param([slow(topology(), 1, Fraction(1, 4), [0])], 3.8125 / 4, marks=pytest.mark.long),
    ],
    ids=["two of four T1s dead", "a plane at a quarter", "a path at a quarter"],
)
def test_a_loaded_rack_gets_what_is_left(broken: list[Breakage], due: float) -> None:
    made = topology()
    row = measure(made, across(made), broken)
    assert row.due == pytest.approx(due)
    holds(row)


@pytest.mark.slow
@pytest.mark.parametrize("rate", corners([10, 25], 10))
def test_one_plane_carries_its_whole_rate_alone_where_a_product_is_few_packets(rate: int) -> None:
    made = topology(2, t1s=2, per_t0=2, rate_bps=rate * 10**9)
    holds(measure(made, across(made), [dead_t1s(1, 2)]))


@pytest.mark.slow
def test_one_of_eight_planes_that_dies_under_full_windows_ends_no_qp() -> None:
    made = topology(8, t1s=2, per_t0=2, rate_bps=10 * 10**9)
    row = measure(made, across(made), [dead_t1s(1, 2)])
    assert row.worst >= LEAST, row
    holds(row)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "part", "least"),
    [
        (25, Fraction(1, 10), 0.9),
        pytest.param(25, Fraction(1, 4), 0.92, marks=pytest.mark.long),
        pytest.param(10, Fraction(1, 4), 0.75, marks=pytest.mark.long),
    ],
)
def test_acknowledgements_on_a_slow_plane_do_not_slow_the_other(rate: int, part: Fraction, least: float) -> None:
    made = topology(2, rate_bps=rate * 10**9)
    row = measure(made, across(made), [slow(made, 0, part, range(4))])
    assert row.ratio >= least, row


@pytest.mark.slow
@pytest.mark.long
def test_a_plane_that_turns_out_to_be_longer_carries_its_part_beside_one_other() -> None:
    made = topology(2)
    holds(measure(made, across(made), [longer(made, 0, 6_000, range(4))]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long)])
def test_a_plane_that_turns_out_to_be_far_longer_loses_nothing_while_it_is_found_out(seed: int) -> None:
    """With even seeds each NIC also receives from the one to which it sends."""
    made = topology(2, seed=str(seed))
    row = measure(made, across(made, seed), [longer(made, 0, 12_000, range(4))])
    assert row.ratio >= 0.97, row
    holds(row)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "delay_ns", "least", "seed"),
    [
        (25, 12_000, LEAST, 0),
        (100, 6_000, LEAST, 0),
        *(
            pytest.param(rate, delay_ns, least, seed, marks=pytest.mark.long)
            for rate, delay_ns, least in [
                (25, 6_000, LEAST),
                (25, 12_000, LEAST),
                (100, 6_000, LEAST),
                (100, 12_000, LEAST),
            ]
            for seed in (1, 2)
        ),
    ],
)
def test_one_longer_path_of_a_plane_takes_nothing_from_it(rate: int, delay_ns: int, least: float, seed: int) -> None:
    made = topology(2, seed=str(seed), rate_bps=rate * 10**9)
    holds(measure(made, across(made, seed), [longer(made, 0, delay_ns, [0])]), least)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "paths", "delay_ns", "least", "seed"),
    [
        (100, 3, 30_000, LEAST, 0),
        (100, 2, 30_000, LEAST, 1),
        *(
            pytest.param(rate, paths, delay_ns, least, seed, marks=pytest.mark.long)
            # The fewer packets there are per round trip, the longer it takes to tell a length from a queue.
            for rate, paths, delay_ns, least in [
                (25, 2, 6_000, 0.93),
                (25, 2, 12_000, LEAST),
                (25, 2, 30_000, LEAST),
                (25, 3, 12_000, LEAST),
                (25, 3, 30_000, LEAST),
                (40, 3, 30_000, LEAST),
                (50, 3, 12_000, LEAST),
                (50, 3, 30_000, LEAST),
                (100, 2, 6_000, LEAST),
                (100, 3, 12_000, LEAST),
            ]
            for seed in (2, 3)
        ),
        # These take longest: with an even seed, whose NICs receive from those to which they send, or with an odd one.
        *(
            pytest.param(rate, paths, delay_ns, least, seed, marks=pytest.mark.long)
            for rate, paths, delay_ns, least, seed in [
                (100, 2, 30_000, LEAST, 2),
                (100, 3, 30_000, LEAST, 3),
                (200, 3, 30_000, LEAST, 2),
                (400, 2, 12_000, LEAST, 3),
                (400, 3, 12_000, LEAST, 2),
                (400, 3, 30_000, 0.94, 3),
            ]
        ),
    ],
)
def test_several_longer_paths_of_a_plane_take_nothing_from_it(
    rate: int, paths: int, delay_ns: int, least: float, seed: int
) -> None:
    """Of four; where three are longer the fourth one is what delays are measured against.

    At 400 Gb/s and 30 us the granted window (MPR) holds less than a product of both planes: one takes from the other.
    """
    made = topology(2, seed=str(seed), rate_bps=rate * 10**9)
    bound = rate == 400 and delay_ns == 30_000
    row = measure(made, across(made, seed), [longer(made, 0, delay_ns, range(paths))])
    holds(row, least, 2 * WAVERING if bound else WAVERING)


def longer_and_slow(made: Topology, name: str) -> list[Breakage]:
    """Paths or planes of another length beside slow ones."""
    every = range(4)
    return {
        "plane 30 us, path at a quarter": [longer(made, 0, 30_000, every), slow(made, 1, Fraction(1, 4), [0])],
        "plane 30 us, path at half": [longer(made, 0, 30_000, every), slow(made, 1, Fraction(1, 2), [0])],
        "two paths 30 us, one at half": [longer(made, 0, 30_000, [0, 1]), slow(made, 0, Fraction(1, 2), [2])],
        "two paths 12 us, one at half": [longer(made, 0, 12_000, [0, 1]), slow(made, 0, Fraction(1, 2), [2])],
        "one path 30 us, one at a quarter": [longer(made, 0, 30_000, [0]), slow(made, 0, Fraction(1, 4), [2])],
    }[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rate", "least"),
    [
        ("plane 30 us, path at a quarter", 50, LEAST),
        *(
            pytest.param(name, rate, least, marks=pytest.mark.long)
            for name, rate, least in [
                ("plane 30 us, path at a quarter", 100, 0.92),
                ("plane 30 us, path at a quarter", 400, 0.93),
                ("plane 30 us, path at half", 25, LEAST),
                ("two paths 30 us, one at half", 25, 0.9),
                ("two paths 30 us, one at half", 100, 0.92),
                ("two paths 30 us, one at half", 400, 0.91),
                ("two paths 12 us, one at half", 100, LEAST),
                ("one path 30 us, one at a quarter", 50, 0.93),
            ]
        ),
    ],
)
def test_lengths_and_slow_paths_together_leave_most_of_it(name: str, rate: int, least: float) -> None:
    """After 40 base RTTs, which are 5 round trips of a plane 30 us farther."""
    made = topology(2, seed="1", rate_bps=rate * 10**9)
    assert measure(made, across(made, 1), longer_and_slow(made, name)).ratio >= least


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "seed"),
    [(50, "0"), *(pytest.param(rate, seed, marks=pytest.mark.long) for rate in (50, 100) for seed in "12")],
)
def test_acknowledgements_leave_longer_paths_to_data(rate: int, seed: str) -> None:
    """No link is full. With acknowledgements on a path 12 us longer packets seemed to meet a full receiver: 0.84."""
    made = topology(2, per_t0=2, seed=seed, rate_bps=rate * 10**9)
    farther = [longer(made, 0, 6_000, [0]), longer(made, 1, 3_000, range(4))]
    assert measure(made, across(made), farther, settle_rtts=100).ratio >= 0.97


@pytest.mark.slow
@pytest.mark.parametrize(
    ("t1s", "rate", "seed"),
    [
        (2, 100, "2"),
        *(pytest.param(2, rate, seed, marks=pytest.mark.long) for rate in (100, 400) for seed in "01"),
        *(pytest.param(8, 50, seed, marks=pytest.mark.long) for seed in "012"),
        pytest.param(2, 50, "01234567", marks=pytest.mark.long),
    ],
)
def test_acknowledgements_leave_slow_paths_to_data(t1s: int, rate: int, seed: str) -> None:
    """With acknowledgements on the slow path those who share an up-link had 0.6 and 1.4 of their shares: 0.90."""
    # Two T1s at 50 Gb/s: one seed has 0.91.
    assert sum(_beside_a_slow_path(t1s, rate, one) for one in seed) / len(seed) >= 0.94


def _beside_a_slow_path(t1s: int, rate: int, seed: str) -> float:
    """The share of what is due with a path of plane 0 at a tenth and plane 1 at half."""
    made = topology(2, t1s=t1s, per_t0=max(2, t1s // 2), seed=seed, rate_bps=rate * 10**9)
    broken = [slow(made, 0, Fraction(1, 10), [0]), slow(made, 1, Fraction(1, 2), range(t1s))]
    return measure(made, across(made, int(seed)), broken, settle_rtts=100).ratio


@pytest.mark.slow
@pytest.mark.parametrize(
    ("t1s", "rate", "seed"),
    [
        (8, 50, "0"),
        *(pytest.param(8, rate, seed, marks=pytest.mark.long) for rate in (50, 100) for seed in "12"),
        *(pytest.param(4, rate, seed, marks=pytest.mark.long) for rate in (100, 400) for seed in "12"),
    ],
)
def test_windows_that_stay_full_grow_until_slow_links_are(t1s: int, rate: int, seed: str) -> None:
    """With the published bound 0.92 with eight T1s at 50 Gb/s, 0.89 with four at 400."""
    made = topology(2, t1s=t1s, per_t0=2, seed=seed, rate_bps=rate * 10**9)
    broken = [slow(made, 0, Fraction(1, 4), range(t1s))]
    if t1s == 4:
        broken.append(slow(made, 1, Fraction(1, 10), [0, 1]))
    row = measure(made, across(made, int(seed)), broken, settle_rtts=100)
    assert row.ratio >= {8: 0.945, 4: 0.92}[t1s], row


@pytest.mark.slow
@pytest.mark.parametrize(
    ("planes", "rate", "us"),
    [
        (1, 100, 3),
        (2, 25, 6),
        *(
            pytest.param(planes, rate, us, marks=pytest.mark.long)
            for planes in (1, 2, 4)
            for rate in (10, 100, 400)
            for us in (2, 3, 6, 12)
        ),
    ],
)
def test_planes_that_are_longer_alike_carry_what_they_carried(planes: int, rate: int, us: int) -> None:
    """Nothing is late beside another plane. Windows closed for the delay: 3 us had 0.02 to 0.12 of line at 100 Gb/s."""
    made = topology(planes, rate_bps=rate * 10**9)
    t1s = range(made.t1_per_plane)
    row = measure(made, across(made), [longer(made, plane, us * 1_000, t1s) for plane in range(planes)], 80)
    assert row.ratio >= LEAST, row


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "seed"),
    [
        (100, "2"),
        *(pytest.param(100, seed, marks=pytest.mark.long) for seed in "045"),
        pytest.param(200, "2", marks=pytest.mark.long),
    ],
)
def test_a_longer_path_is_found_beside_a_queue(rate: int, seed: str) -> None:
    """In a rack with twice what its up-links carry it is marked, and kept a small share with some flows: 0.84."""
    made = topology(2, t1s=2, seed=seed, rate_bps=rate * 10**9)
    row = measure(made, across(made, int(seed)), [longer(made, 1, 30_000, [0])], settle_rtts=100)
    assert row.ratio >= 0.88, row  # 0.90 to 0.96 over 24 seeds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "seed"),
    [(25, "0"), *(pytest.param(rate, seed, marks=pytest.mark.long) for rate in (25, 50, 100) for seed in "1234")],
)
def test_a_slow_path_takes_nothing_from_the_other_paths_of_its_plane(rate: int, seed: str) -> None:
    made = topology(2, seed=seed, rate_bps=rate * 10**9)
    row = measure(made, across(made, int(seed)), [slow(made, 0, Fraction(1, 10), [0])])
    # With few packets per round trip it takes longer to see how slow the path is.
    assert row.ratio >= {25: 0.92, 50: 0.935, 100: LEAST}[rate], row
    assert min(row.planes) >= 0.85, row
    assert max(row.wavering) <= WAVERING, row


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rate", "least"),
    [
        ("healthy", 5, 0.92),
        ("5% lost", 10, 0.92),
        *(
            pytest.param(name, rate, least, marks=pytest.mark.long)
            for name, rate, least in [
                ("healthy", 1, 0.86),
                ("healthy", 10, LEAST),
                ("5% lost", 5, 0.87),
                ("a quarter", 5, 0.88),
                ("a quarter", 10, 0.92),
            ]
        ),
    ],
)
@pytest.mark.parametrize("seed", ["1", "2"])
def test_few_packets_per_product_are_no_reason_to_slow_down(name: str, rate: int, least: float, seed: str) -> None:
    """Five packets at 5 Gb/s, seven at 10: sprayed packets meet for as long as the target, by chance."""
    made = topology(2, seed=seed, rate_bps=rate * 10**9)
    assert measure(made, across(made, int(seed)), breakages(made)[name]).ratio >= least


@pytest.mark.slow
def test_a_plane_that_loses_packets_carries_what_arrives() -> None:
    made = topology(2)
    row = measure(made, across(made), [lossy(made, 0, 50_000, range(4))])
    assert row.due == pytest.approx((1 + 0.95**2) / 2)
    holds(row)
    assert min(row.planes) >= 0.9, row


def breakages(made: Topology) -> dict[str, list[Breakage]]:
    """By name, all on the second plane but for mixtures."""
    t1s = range(made.t1_per_plane)
    many = made.t1_per_plane
    return {
        "healthy": [],
        "one T1 dead": [dead_t1s(1, 1)],
        "half of the T1s dead": [dead_t1s(1, many // 2)],
        "all T1s but one dead": [dead_t1s(1, many - 1)],
        "all T1s dead": [dead_t1s(1, many)],
        "half the rate": [slow(made, 1, Fraction(1, 2), t1s)],
        "a quarter": [slow(made, 1, Fraction(1, 4), t1s)],
        "a tenth": [slow(made, 1, Fraction(1, 10), t1s)],
        "a path at a quarter": [slow(made, 1, Fraction(1, 4), [0])],
        "a path at a tenth": [slow(made, 1, Fraction(1, 10), [0])],
        "1% lost": [lossy(made, 1, 10_000, t1s)],
        "5% lost": [lossy(made, 1, 50_000, t1s)],
        "a port down": [port_down(made, 0, 1)],
        "12 us longer": [longer(made, 1, 6_000, t1s)],
        "dead and slow": [dead_t1s(0, 1), slow(made, 1, Fraction(1, 4), t1s)],
        "dead and lossy": [dead_t1s(0, 1), lossy(made, 1, 10_000, t1s)],
    }


RACK = ("half of the T1s dead", "a quarter", "a path at a quarter")
"""These are in the test of a loaded rack, with what is due to it."""


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in breakages(topology()) if name not in RACK])
def test_any_breakage(name: str) -> None:
    made = topology()
    holds(measure(made, across(made), breakages(made)[name]), wavering=WAVERING_FEW if name == "a tenth" else WAVERING)
