"""Each figure on an outcome made by hand."""

from dataclasses import replace

import pytest

from studies import columns
from studies.faults import LinkFault
from studies.flows import START_NS, Flow
from studies.outcome import FlowResult, Outcome, payload_bps
from studies.trial import Trial
from tests.studies.fabrics import tiny

TOPOLOGY = tiny()
RTT_NS = TOPOLOGY.base_rtt_ns()
TRIAL = Trial(TOPOLOGY, (Flow(0, 2, 1 << 20),), deadline_ns=1_000_000)
LINE = payload_bps(TOPOLOGY)


def outcome(*flows: FlowResult, timeline: tuple[int, ...] = ()) -> Outcome:
    counters = {"data_packets": 2000, "ecn_marks": 5, "qp_errors": 0, "duplicates": 1}
    causes = {"gap": 2, "timeout": 3, "trim": 4, "nack": 0, "port_down": 1}
    trims = {"path": 1, "last_hop": 3}
    return Outcome(
        9_000, list(flows), counters, causes, trims, 7, {}, {}, 2 * RTT_NS, 3 * RTT_NS, timeline=list(timeline)
    )


def flow(share: float, time_ns: int = 80_000, group: str = "all") -> FlowResult:
    """One that has had this share of a NIC for this long."""
    return FlowResult(group, 0, 2, 1_000, 1_000 + time_ns, round(share * LINE * time_ns / 8e9))


def test_shares_over_flows_and_groups() -> None:
    made = outcome(flow(0.5), flow(0.25), flow(0.125, group="other"))
    assert columns.mean_share("all").read(TRIAL, made) == pytest.approx(0.375, abs=1e-4)
    assert columns.sum_share().read(TRIAL, made) == pytest.approx(0.875, abs=1e-4)
    assert columns.least_share().read(TRIAL, made) == pytest.approx(0.125, abs=1e-4)
    assert columns.fairness("other").read(TRIAL, made) == pytest.approx(1.0)


def test_a_window_counts_what_arrived_in_it() -> None:
    trial = replace(TRIAL, window_ns=(10_000, 50_000))
    made = outcome(flow(0.9))
    made.flows[0].window_bytes = round(LINE * 40_000 / 8e9 / 2)
    assert columns.mean_share().read(trial, made) == pytest.approx(0.5, abs=1e-4)


def test_what_never_ended() -> None:
    made = outcome(flow(0.5), FlowResult("all", 1, 2, 1_000))
    assert columns.DONE_US.read(TRIAL, made) is None
    assert columns.GOODPUT.read(TRIAL, made) == 0
    assert columns.least_share().read(TRIAL, made) == 0


def test_times_and_counts() -> None:
    made = outcome(flow(0.5, time_ns=4 * RTT_NS))
    assert columns.DONE_RTTS.read(TRIAL, made) == pytest.approx(4.0)
    assert columns.RTT.read(TRIAL, made) == pytest.approx(2.0)
    assert columns.LOST.read(TRIAL, made) == 5
    assert columns.RESENT.read(TRIAL, made) == 10
    assert columns.TRIMS.read(TRIAL, made) == 4
    assert columns.MARKED.read(TRIAL, made) == 2.5


def test_the_longest_gap_begins_with_the_fault() -> None:
    trial = replace(TRIAL, sample_ns=RTT_NS, fault_ns=4 * RTT_NS)
    placed = (100, 200, 300, 400, 410, 420, 520, 530, 630)
    assert columns.GAP.read(trial, outcome(timeline=placed)) == pytest.approx(2.0)


def test_the_reaction_is_counted_from_the_fault() -> None:
    cut = LinkFault("p0-t0-0~p0-t1-0", START_NS + 5_000)
    trial = replace(TRIAL, faults=(cut,), fault_ns=cut.at_ns)
    reaction = columns.REACTION.read(trial, trial.run())
    assert reaction is not None
    assert 1.0 < reaction < 10.0
