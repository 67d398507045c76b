"""Rows B3 and B5: what BGP's timers hold back: routes that flap, and news that comes soon after other news.

B3: a cable between a T0 and a T1 goes dark and comes back again and again; the other T0 hears of each, and gives the
route penalties. B5: two T0s lose their cables to the same T1, one after the other; the third T0 hears of the second
loss when the T1's interval between two messages is over. What is measured are the switches' own events.
"""

from collections.abc import Sequence
from math import log2
from typing import Any, Final, NamedTuple

from mrcfabric.naming import t0_name, t1_name
from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_MS, NS_PER_S
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from studies.systems.row import Finding, Row, between, near
from switchd.core.events_routing import FibWritten, RouteDamped

_FLAP_NS: Final = 5 * NS_PER_S
"""So long is the cable dark each time."""
_WITHDRAWAL: Final = 1_000
_SUPPRESS: Final = 2_000
_LONGEST_S: Final = 3_600
_CUT_NS: Final = 100 * NS_PER_S + 123_456_789
_INTERVAL_S: Final = 30
_JITTER: Final = 0.75
"""The least share of an interval that a switch waits (RFC 4271 10)."""


class Flapping(NamedTuple):
    """One point of B3."""

    flaps: int
    gap_s: int = 20
    """From one to the next."""
    half_life_s: int = 900
    reuse: int = 750


class Pacing(NamedTuple):
    """One point of B5."""

    gap_ms: int
    """From the first loss to the second."""
    jitter: bool = True
    seeds: int = 8


def penalty(flaps: int, gap_s: float, half_life_s: float) -> float:
    """What so many withdrawals leave at the instant of the last, each of which adds 1,000."""
    return _WITHDRAWAL * sum(2 ** (-number * gap_s / half_life_s) for number in range(flaps))


def suppressing_flap(gap_s: float, half_life_s: float) -> int:
    """The number of the flap with which the penalty grows beyond 2,000; the gap must be short enough for one."""
    return next(flap for flap in range(1, 100) if penalty(flap, gap_s, half_life_s) > _SUPPRESS)


def reuse_after_s(value: float, half_life_s: float, reuse: float) -> float:
    """How long a penalty takes to fade to the threshold of reuse; no route is left out for more than 60 min."""
    return min(half_life_s * log2(value / reuse), _LONGEST_S)


def _fabric(t0s: int, t1s: int, seed: str, **switch: Any) -> tuple[SimulatedFabric, list[tuple[str, Any]]]:
    """(a plane of switches that speak BGP, the list that its events come into)."""
    topology = Topology(
        name="timers", seed=seed, planes=1, t0_per_plane=t0s, t1_per_plane=t1s, nics_per_t0=1, evs_per_qp=8,
        reserve_evs_per_qp=0, nic={"transport": "rc"},
        switch={"forwarding": "ecmp", "routing": "bgp", "trim": False, "trim_last_hop": False, **switch},
    )  # fmt: skip
    told: list[tuple[str, Any]] = []
    return SimulatedFabric(topology, on_events=lambda node, events: told.extend((node, one) for one in events)), told


def measure_dampening(point: Flapping) -> Sequence[Finding]:
    """B3: one rhythm of flaps."""
    half_life_ns = point.half_life_s * NS_PER_S
    fabric, told = _fabric(
        2, 1, "b3", bgp_dampening=True, bgp_dampening_half_life_ns=half_life_ns, bgp_dampening_reuse=point.reuse
    )
    gap_ns = point.gap_s * NS_PER_S
    for number in range(point.flaps):
        at_ns = _CUT_NS + number * gap_ns
        fabric.inject(once("link_down", f"{t0_name(0, 0)}~{t1_name(0, 0)}", at_ns=at_ns, until_ns=at_ns + _FLAP_NS))
    last_ns = _CUT_NS + (point.flaps - 1) * gap_ns
    left = penalty(point.flaps, point.gap_s, point.half_life_s)
    wanted_s = reuse_after_s(left, point.half_life_s, point.reuse)
    fabric.run(last_ns + round(1.01 * wanted_s * NS_PER_S) + NS_PER_S)
    damped, used = (
        next(one for node, one in told if node == t0_name(0, 1) and isinstance(one, RouteDamped) and one.damped == on)
        for on in (True, False)
    )
    third = suppressing_flap(point.gap_s, point.half_life_s)
    at = f"{point.flaps} flaps every {point.gap_s} s, half-life {point.half_life_s / 60:g} min, reuse {point.reuse:,}"
    # The T0 hears of every cut after the same time: the T1's detection and work, the link, and its own work.
    heard_ns = damped.at_ns - _CUT_NS - (third - 1) * gap_ns
    flap = 1 + (damped.at_ns - _CUT_NS) / gap_ns
    suppressed = penalty(third, point.gap_s, point.half_life_s)
    return [
        between(f"{at}: left out with flap", third, third, int(flap), 0),
        near(f"{at}: penalty then", suppressed, damped.penalty, 0.001, 0),
        near(
            f"{at}: from the last, with P {left:,.0f}, until it is used again",
            wanted_s / 60,
            (used.at_ns - last_ns - heard_ns) / NS_PER_S / 60,
            0.001,
            3,
            "min",
        ),
    ]


def measure_pacing(point: Pacing) -> Sequence[Finding]:
    """B5: two losses at one distance in time, over seeds."""
    waits, lates = [], []
    for seed in range(point.seeds if point.jitter else 1):
        first_ns, second_ns = _news(point, f"b5-{seed}", _INTERVAL_S)
        waits.append((second_ns - first_ns) / NS_PER_S)
        lates.append((second_ns - _CUT_NS - point.gap_ms * NS_PER_MS) / NS_PER_S)
    # Without an interval: what detection, work, the link and the writing take.
    quick_s = (_news(point, "b5-0", 0)[1] - _CUT_NS - point.gap_ms * NS_PER_MS) / NS_PER_S
    least = _INTERVAL_S * (_JITTER if point.jitter else 1)
    gap_s = point.gap_ms / 1_000
    at = f"{gap_s:g} s apart, {f'jitter, {len(waits)} seeds' if point.jitter else 'no jitter'}"
    found = [
        between(f"{at}: {which} time between the two writes", least, _INTERVAL_S, choose(waits), 3, "s")
        for which, choose in (("shortest", min), ("longest", max))
    ]
    bounds = least - gap_s + quick_s, _INTERVAL_S - gap_s + quick_s
    found += [
        between(f"{at}: {which} time from the second loss to its write", *bounds, choose(lates), 3, "s")
        for which, choose in (("shortest", min), ("longest", max))
    ]
    return found


def _news(point: Pacing, seed: str, interval_s: int) -> tuple[int, int]:
    """When the third T0 has written the first loss, and the second."""
    fabric, told = _fabric(3, 2, seed, bgp_advertisement_interval_ns=interval_s * NS_PER_S, bgp_jitter=point.jitter)
    gap_ns = point.gap_ms * NS_PER_MS
    for number, at_ns in ((0, _CUT_NS), (2, _CUT_NS + gap_ns)):
        fabric.inject(once("link_down", f"{t0_name(0, number)}~{t1_name(0, 1)}", at_ns=at_ns))
    fabric.run(_CUT_NS + (_INTERVAL_S + 1) * NS_PER_S + gap_ns)
    first, second = (
        one.at_ns for node, one in told if node == t0_name(0, 1) and isinstance(one, FibWritten) and one.at_ns > _CUT_NS
    )
    return first, second


DAMPENING: Final = Row(
    "B3",
    "Damping of routes that flap",
    "left out with the first flap whose penalty exceeds 2,000, the third in a row; used again half-life x log2(P / "
    "reuse) after the last, which is 15 log2(P/750) min as set by default; P = 1,000 x the sum "
    "of 2^(-age / half-life); never longer than 60 min",
    "RFC 2439 4.2 and 4.8; FRR's defaults",
    "0.1 %",
    "two T0s and a T1 that speak BGP; the cable of one T0 goes dark for 5 s again and again, and the other T0 gives "
    "the penalties",
    (Flapping(3), Flapping(4), Flapping(6), Flapping(3, 60), Flapping(5, 20, 120), Flapping(4, 20, 300, 1_200),
     Flapping(4, 40, 1_800)),
    measure_dampening,
)  # fmt: skip
PACING: Final = Row(
    "B5",
    "The interval between two advertisements, 30 s",
    "the second loss is written J x 30 s after the first, J within 0.75 and 1; from the loss: detection + J x 30 s - "
    "what had passed of the interval",
    "RFC 4271 9.2.1.1 and 10; FRR's old default",
    "none: bounds of the jitter",
    "two T0s lose their cables to one T1, one after the other, and a third T0 writes both. A plane here has two tiers, "
    "so news passes one switch that waits; every further tier would add a wait of its own",
    (Pacing(100), Pacing(5_000), Pacing(15_000), Pacing(100, False), Pacing(15_000, False)),
    measure_pacing,
)
ROWS: Final = (DAMPENING, PACING)
