"""The formula: what share of its time a job is useful, from failure rates, recoveries, checkpoints and size.

With N GPUs, l links of a kind per GPU, and r failures per link and hour, failures of a kind come at R = N l r,
Poisson. One either stalls the job for s, or fails it: then it hangs for s, takes D to restart, and does again what
came after its last checkpoint, taken every T and taking d. While a NIC with p ports has a dark one, its job runs at
1 - 1/p at worst, and repair takes m.

    slow   = 1 / (1 - (1 - exp(-R_nic m)) / p)               for NICs with several ports, else 1
    W      = T slow (1 + sum of R_k s_k over kinds that stall) + d
    E      = (1/F + D + s) (exp(F W) - 1),  F = sum of R_k over kinds that fail;  W where F is 0
    useful = T / E

E is Daly's time to get through one interval (Future Generation Computer Systems 22, 2006) without failures in D. A
step of t seconds takes t / useful on the average."""

from dataclasses import dataclass, replace
from math import exp, inf
from typing import Final

HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Cost:
    """What one failure of a kind of link does to a job."""

    links_per_gpu: float
    stall_s: float
    fatal: bool


@dataclass(frozen=True, slots=True)
class Terms:
    """What does not depend on the system."""

    rate_per_hour: float
    """Failures per link and hour, the same for all kinds of links."""
    checkpoint_every_s: float = 1800.0
    checkpoint_s: float = 30.0
    restart_s: float = 600.0
    repair_s: float = 60.0
    step_s: float = 5.0


def useful(gpus: int, fabric: Cost, nic: Cost, ports: int, terms: Terms) -> float:
    """The useful share of a job's time; 0.0 for a job that never gets through an interval."""
    rates = [(gpus * one.links_per_gpu * terms.rate_per_hour / HOUR, one) for one in (fabric, nic)]
    slow = 1.0
    if ports > 1 and not nic.fatal:
        slow = 1 / (1 - (1 - exp(-rates[1][0] * terms.repair_s)) / ports)
    stalls = sum(rate * one.stall_s for rate, one in rates if not one.fatal)
    work_s = terms.checkpoint_every_s * slow * (1 + stalls) + terms.checkpoint_s
    fatal = sum(rate for rate, one in rates if one.fatal)
    if not fatal:
        return terms.checkpoint_every_s / work_s
    if fatal * work_s > 300:
        return 0.0
    # A failure breaks off a step; half of one on the average.
    hung_s = sum(rate * (one.stall_s + terms.step_s / 2) for rate, one in rates if one.fatal) / fatal
    return terms.checkpoint_every_s / ((1 / fatal + terms.restart_s + hung_s) * (exp(fatal * work_s) - 1))


def largest(wanted: float, fabric: Cost, nic: Cost, ports: int, terms: Terms) -> float:
    """The largest number of GPUs with a useful share of at least `wanted`; inf beyond 10 million, 0 below one."""
    if useful(1, fabric, nic, ports, terms) < wanted:
        return 0
    low, high = 1, 10_000_000
    if useful(high, fabric, nic, ports, terms) >= wanted:
        return inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if useful(middle, fabric, nic, ports, terms) >= wanted else (low, middle)
    return low


def with_rate(terms: Terms, factor: float) -> Terms:
    """The same with so many times the failures."""
    return replace(terms, rate_per_hour=terms.rate_per_hour * factor)
