"""docs/SCALE.md: what was measured, the formula beside simulation, sizes and crossing points.

Owns the words. No figure of ours stands here: all come from `Measured`, or from the formula.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any, Final

from studies.scale.model import Cost, Terms, largest, useful, with_rate
from studies.scale.recovery import RTT_NS, SYSTEMS, Recovery, System
from studies.scale.validation import Checked

GPUS: Final = (1_024, 4_096, 16_384, 65_536, 131_072, 524_288)
WANTED: Final = 0.9
LINKS_OF_TWO_TIERS: Final = 2_048
"""GPUs up to which two tiers of radix 64 suffice for 800G ports: k^2 / 2."""
PEAK_PER_MINUTE, PEAK_GPUS, PEAK_LINKS_PER_GPU = 14, 75_000, 4
PEAK_PER_HOUR: Final = PEAK_PER_MINUTE * 60 / (PEAK_GPUS * PEAK_LINKS_PER_GPU)
RATE: Final = PEAK_PER_HOUR / 1000
"""Failures per link and hour of the tables that do not vary it."""
DEPLOYED_RTT_NS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Measured:
    """What the study has measured."""

    recoveries: dict[str, tuple[Recovery, Recovery]]
    """System -> what up-links, and what a NIC's cable, cost its job."""
    checks: list[Checked]

    def plain(self) -> dict[str, Any]:
        """For the store."""
        rows = {name: [one._asdict() for one in pair] for name, pair in self.recoveries.items()}
        return {"recoveries": rows, "checks": [one._asdict() for one in self.checks]}

    @classmethod
    def of(cls, stored: dict[str, Any]) -> "Measured":
        """From the store."""
        rows = {name: (Recovery(**pair[0]), Recovery(**pair[1])) for name, pair in stored["recoveries"].items()}
        return cls(rows, [Checked(**one) for one in stored["checks"]])


def costs(system: System, found: tuple[Recovery, Recovery], gpus: int) -> tuple[Cost, Cost]:
    """What failures of up-links and of NICs' cables cost as deployed."""
    share = DEPLOYED_RTT_NS / RTT_NS if system.by_rtt else 1.0
    tiers = 1 if system.ports > 1 or gpus <= LINKS_OF_TWO_TIERS else 2
    fabric, nic = found
    # A NIC with one port has no other to go on with, whatever its transport does on the bed, whose NICs have two.
    alone = system.ports == 1
    stall_s = nic.stall_s * (1.0 if alone else share)
    return (
        Cost(tiers * system.ports, fabric.stall_s * share, not fabric.survived),
        Cost(system.ports, stall_s, alone or not nic.survived),
    )


def page(measured: Measured) -> str:
    """The whole document."""
    terms = Terms(RATE)
    parts = [_HEAD, _recoveries(measured), _FORMULA, _checks(measured.checks), _RATES.format(
        peak=f"{PEAK_PER_HOUR:.1e}", rate=f"{RATE:.1e}", **{name: f"{value:g}" for name, value in asdict(terms).items()}
    ), _sizes(measured, terms), _CROSSING, _sensitivity(measured, terms), _LIMITS]  # fmt: skip
    return "".join(parts)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _recoveries(measured: Measured) -> str:
    rows = []
    for system in SYSTEMS:
        fabric, nic = measured.recoveries[system.name]
        rows.append([system.name, system.source, _recovery(fabric), _recovery(nic)])
    return _table(["System", "Timers from", "Half of a T0's up-links", "A NIC's cable, of two"], rows)


def _recovery(found: Recovery) -> str:
    rtts = f"{found.stall_s * 1e9 / RTT_NS:,.0f} RTT"
    return f"{found.stall_s:,.3f} s ({rtts})" if found.survived else f"fails after {found.stall_s:,.1f} s"


def _checks(checks: Sequence[Checked]) -> str:
    rows = [
        [f"{one.mean_ms:g} ms", str(one.restarts), f"{one.simulated:.3f}", f"{one.formula:.3f}",
         f"{one.formula / one.simulated - 1:+.1%}"] for one in checks
    ]  # fmt: skip
    return _table(["A failure each", "Restarts", "Useful, simulated", "By the formula", "Difference"], rows)


def _sizes(measured: Measured, terms: Terms) -> str:
    rows = []
    for system in SYSTEMS:
        cells = []
        for gpus in GPUS:
            share = useful(gpus, *costs(system, measured.recoveries[system.name], gpus), system.ports, terms)
            cells.append(f"{share:.1%}, {terms.step_s / share:,.2f} s" if share > 0.001 else "never ends")
        rows.append([system.name, *cells])
    return _table(["System", *(f"{gpus:,}" for gpus in GPUS)], rows)


def crossing(system: System, measured: Measured, terms: Terms) -> float:
    """The largest size at which at least `WANTED` of a job's time is useful."""
    found = measured.recoveries[system.name]
    small = largest(WANTED, *costs(system, found, 1), system.ports, terms)
    if small < LINKS_OF_TWO_TIERS:
        return small
    return max(LINKS_OF_TWO_TIERS, largest(WANTED, *costs(system, found, 1 << 20), system.ports, terms))


VARIATIONS: Final = (
    ("as above", lambda terms: terms),
    ("failures x 10", lambda terms: with_rate(terms, 10)),
    ("failures x 100", lambda terms: with_rate(terms, 100)),
    ("failures x 1000: the published peak", lambda terms: with_rate(terms, 1000)),
    ("failures / 10", lambda terms: with_rate(terms, 0.1)),
    ("checkpoint every 10 min", lambda terms: replace(terms, checkpoint_every_s=600.0)),
    ("checkpoint every 2 h", lambda terms: replace(terms, checkpoint_every_s=7_200.0)),
    ("restart in 2 min", lambda terms: replace(terms, restart_s=120.0)),
    ("restart in 30 min", lambda terms: replace(terms, restart_s=1_800.0)),
    ("step of 0.5 s", lambda terms: replace(terms, step_s=0.5)),
    ("step of 60 s", lambda terms: replace(terms, step_s=60.0)),
)


def _sensitivity(measured: Measured, terms: Terms) -> str:
    rows = []
    for name, change in VARIATIONS:
        found = [crossing(system, measured, change(terms)) for system in SYSTEMS]
        rows.append([name, *map(_size, found)])
    found = [crossing(replace(system, ports=8), measured, terms) for system in SYSTEMS]
    rows.append(["every NIC with eight ports", *map(_size, found)])
    return _table(["", *(system.name for system in SYSTEMS)], rows)


def _size(found: float) -> str:
    return "beyond 10 M" if found == inf else f"{found:,.0f}"


_HEAD: Final = """# At what scale MRC becomes indispensable

`make scale` makes this page anew. It measures what one failure costs a training job on each system, in virtual time,
on the cores that the daemons run; puts that into a formula; checks the formula against simulated jobs under random
failures; and says how large a job may be on each system until less than 90 % of its time is useful.

## What one failure costs, measured

Four ranks across two T0s train on the fabric of `examples/topologies/slow-bed.yaml`, where timers run as they are
published. The longest step without the median one, mean over three instants of the failure (one for the NIC).
*Fails*: a QP is in error, and the job goes back to its checkpoint; the time is from the failure until then. RC
retries as NCCL sets it: 4.3 s, seven times more.

"""
_FORMULA: Final = """
What MRC takes is round trips, so the formula has it at a base RTT of 10 us in place of the slow fabric's 2.2 ms. All
others are taken as measured, those with SHIELD and UET too, although part of what they take is round trips as well.

## The formula

With N GPUs, l links of a kind per GPU, r failures per link and hour, failures of a kind come at R = N l r. One
stalls the job for s, or fails it: then it hangs for s, takes D to restart and does again what came after its
checkpoint, taken every T and taking d. A NIC with p ports whose cable is dark for m slows its job to 1 - 1/p at
worst.

    slow   = 1 / (1 - (1 - exp(-R_nic m)) / p)                for NICs with several ports, else 1
    W      = T slow (1 + sum of R s over kinds that stall) + d
    E      = (1/F + D + s + t/2) (exp(F W) - 1),  F = sum of R over kinds that fail;  W where F is 0
    useful = T / E,  and a step of t takes t / useful

Beside it, jobs of four ranks on RoCE whose NICs' cables go dark at Poisson instants, a checkpoint every six steps,
three seeds:

"""
_RATES: Final = """
## Sizes

One published figure gives a rate: up to 14 flaps a minute of T0-T1 links in a production job (arXiv 2605.04333,
figure 5). On 75,000 GPUs of four ports, the size of the job of its figure 8, that is {peak} per link and hour at the
peak; the figure's own size is not published. The table takes a thousandth of it, {rate} (one failure of a link in 41
years), for all kinds of links alike, so that it is no argument for MRC, which has eight times the links. Assumed
besides: a checkpoint every {checkpoint_every_s} s that takes {checkpoint_s} s, a restart in {restart_s} s, a dark
NIC's cable repaired in {repair_s} s, a step of {step_s} s. MRC has NICs of eight ports at 100G and two tiers; the
others one port at 800G, two tiers of radix 64 up to 2,048 GPUs and three beyond. A NIC with one port whose cable
goes dark fails its job.

Useful share of the job's time, and what a step takes on the average:

"""
_CROSSING: Final = """
## The crossing point, and what moves it

The largest job of which at least 90 % of the time is useful:

"""
_LIMITS: Final = """
## What this does not say

- Failures of switches, GPUs, hosts and software come on top, for all systems alike.
- Most of what separates the systems in the first rows is the NIC's one port, not its transport. The last row gives all
  of them NICs of eight ports, and takes for a dark one what the measurement with two ports showed.
- Beyond the four ranks of the measurement all is extrapolated by the formula.
"""
