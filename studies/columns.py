"""The figures that studies read off an outcome, each defined once.

Shares are of the payload that the ports in question carry at line rate; times are microseconds of fabric time or base
RTTs of the topology (of the longer kind: over a T1).
"""

from collections.abc import Callable
from itertools import pairwise

from studies.outcome import FlowResult, Outcome, jain, payload_bps, rate_bps
from studies.study import Column
from studies.trial import Trial


def _rate(trial: Trial, flow: FlowResult) -> float:
    """Payload rate of a flow: over the window if there is one, else over its whole life."""
    if trial.window_ns is not None:
        start, end = trial.window_ns
        return rate_bps(flow.window_bytes, end - start)
    return rate_bps(flow.bytes_done, flow.time_ns)


def _shares(trial: Trial, outcome: Outcome, group: str) -> list[float]:
    line = payload_bps(trial.topology)
    return [_rate(trial, flow) / line for flow in (outcome.group(group) if group else outcome.flows)]


def mean_share(group: str = "", name: str = "mean share") -> Column:
    """Mean over flows of their rate, as a share of one NIC."""

    def read(trial: Trial, outcome: Outcome) -> float:
        shares = _shares(trial, outcome, group)
        return sum(shares) / len(shares)

    return Column(name, read, 3)


def sum_share(group: str = "", name: str = "share") -> Column:
    """Sum over flows of their rates, as a share of one NIC."""
    return Column(name, lambda trial, outcome: sum(_shares(trial, outcome, group)), 3)


def least_share(group: str = "", name: str = "slowest flow") -> Column:
    """Rate of the slowest flow, as a share of one NIC."""
    return Column(name, lambda trial, outcome: min(_shares(trial, outcome, group)), 3)


def fairness(group: str = "", name: str = "Jain index") -> Column:
    """Jain's index over the rates of the flows."""
    return Column(name, lambda trial, outcome: jain(_shares(trial, outcome, group)), 3)


def _last_us(trial: Trial, outcome: Outcome) -> float | None:
    last = outcome.last_ns()
    return None if last is None else last / 1000


def _last_rtts(trial: Trial, outcome: Outcome) -> float | None:
    last = outcome.last_ns()
    return None if last is None else last / trial.topology.base_rtt_ns()


def goodput_share(trial: Trial, outcome: Outcome) -> float:
    """Payload of all flows over the time until the last is done, as a share of one NIC."""
    total = sum(flow.bytes_done for flow in outcome.flows)
    return rate_bps(total, outcome.last_ns()) / payload_bps(trial.topology)


def count(name: str, read: Callable[[Outcome], int]) -> Column:
    """A whole number out of the counters."""
    return Column(name, lambda trial, outcome: float(read(outcome)))


def per_thousand(name: str, read: Callable[[Outcome], int]) -> Column:
    """A count per thousand data packets sent."""
    return Column(name, lambda trial, outcome: 1000 * read(outcome) / max(1, outcome.nics["data_packets"]), 1)


def resent(cause: str) -> Column:
    """Retransmissions for one cause."""
    return count(cause, lambda outcome: outcome.retransmits[cause])


DONE_US = Column("done", _last_us, 1, "us")
DONE_RTTS = Column("done", _last_rtts, 1, "base RTT")
GOODPUT = Column("goodput share", goodput_share, 3)
RESENT = count("resent", lambda outcome: outcome.resent)
LOST = count("lost", lambda outcome: outcome.retransmits["gap"] + outcome.retransmits["timeout"])
NEEDLESS = count("needless", lambda outcome: outcome.nics["duplicates"])
"""Sent again though it had arrived: what receivers saw twice. No link of a trial makes copies of packets."""
RETIRED = count("EVs retired", lambda outcome: outcome.retired)
TRIMS = count("trims", lambda outcome: sum(outcome.trims.values()))
TRIMS_PATH = count("trims in the fabric", lambda outcome: outcome.trims["path"])
ERRORS = count("QP errors", lambda outcome: outcome.nics["qp_errors"])
MARKED = per_thousand("marked per 1000", lambda outcome: outcome.nics["ecn_marks"])
TIMEOUTS = count("timeouts", lambda outcome: outcome.retransmits["timeout"])
RTT = Column("mean RTT", lambda trial, outcome: outcome.rtt_mean_ns / trial.topology.base_rtt_ns(), 2, "base RTT")


def _first_retired(trial: Trial, outcome: Outcome) -> float | None:
    """From the window's start, which is the fault, to the first EV taken out of use."""
    at_ns = outcome.first_retired_ns
    return None if at_ns is None else (at_ns - trial.fault_ns) / trial.topology.base_rtt_ns()


REACTION = Column("first EV retired after", _first_retired, 1, "base RTT")


def gap_rtts(trial: Trial, outcome: Outcome) -> float:
    """Longest stretch of samples from the fault on that hold less than half of what is usual.

    Usual is what came before the fault; where flows never end, what comes at the end if that is less.
    """
    sample = trial.sample_ns
    placed = [0, *outcome.timeline]
    steps = [after - before for before, after in pairwise(placed)]
    fault = trial.fault_ns // sample
    usual = sorted(steps[:fault])[fault // 2]
    if trial.window_ns is not None:
        usual = min(usual, sorted(steps[-fault:])[fault // 2])
    longest = running = 0
    for step in steps[fault:]:
        running = running + 1 if step < usual / 2 else 0
        longest = max(longest, running)
    return longest * sample / trial.topology.base_rtt_ns()


GAP = Column("longest gap", gap_rtts, 1, "base RTT")
