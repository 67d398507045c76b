"""A trial runs its flows to their ends, measures, and repeats itself."""

from dataclasses import asdict

import pytest

from studies.faults import LinkFault
from studies.flows import START_NS, Flow, permutation, ring
from studies.outcome import payload_bps, rate_bps
from studies.trial import Trial
from tests.studies.fabrics import tiny


def test_every_message_of_every_qp_counts() -> None:
    trial = Trial(tiny(), (Flow(0, 2, 1 << 16, messages=3, qps=2), Flow(1, 2, 1 << 15)), deadline_ns=1_000_000)
    outcome = trial.run()
    assert [flow.bytes_done for flow in outcome.flows] == [6 << 16, 1 << 15]
    assert all(flow.done_ns for flow in outcome.flows)
    assert outcome.nics["data_packets"] == 6 * 16 + 8
    assert outcome.nics["bytes_placed"] == (6 << 16) + (1 << 15)
    assert outcome.resent == 0


def test_the_same_trial_has_the_same_outcome() -> None:
    trial = Trial(tiny(), permutation(tiny(), 1 << 18), deadline_ns=1_000_000, sample_ns=2_000)
    assert asdict(trial.run()) == asdict(trial.run())


def test_a_deadline_ends_what_is_not_done() -> None:
    outcome = Trial(tiny(), (Flow(0, 2, 1 << 20),), deadline_ns=START_NS + 5_000).run()
    assert outcome.end_ns == START_NS + 5_000
    assert outcome.flows[0].done_ns is None
    assert outcome.last_ns() is None


def test_a_window_measures_the_rate_inside_it() -> None:
    topology = tiny()
    window_ns = (START_NS + 30_000, START_NS + 90_000)
    outcome = Trial(topology, (Flow(0, 2, 1 << 22),), window_ns=window_ns).run()
    assert outcome.end_ns == window_ns[1]
    share = rate_bps(outcome.flows[0].window_bytes, 60_000) / payload_bps(topology)
    assert share == pytest.approx(1.0, abs=0.02)


def test_samples_add_up() -> None:
    outcome = Trial(tiny(), (Flow(0, 2, 1 << 18),), deadline_ns=1_000_000, sample_ns=3_000).run()
    assert outcome.timeline == sorted(outcome.timeline)
    assert outcome.timeline[-1] <= 1 << 18
    assert len(outcome.timeline) == outcome.end_ns // 3_000


def test_a_trial_that_asks_for_nonsense_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="h000: a message of 0 bytes"):
        Trial(tiny(), (Flow(0, 2, 4096), Flow(0, 2, 0)), deadline_ns=1_000_000).run()


def test_a_step_of_a_ring_waits_for_the_step_before() -> None:
    topology = tiny()
    size = 1 << 16
    alone = Trial(topology, (Flow(0, 2, size),), deadline_ns=1_000_000).run().last_ns()
    outcome = Trial(topology, ring(topology, size), deadline_ns=1_000_000).run()
    last = outcome.last_ns()
    assert alone is not None
    assert last is not None
    steps = 2 * (topology.nics - 1)
    assert [flow.bytes_done for flow in outcome.flows] == [steps * size] * topology.nics
    assert last > steps * (alone - topology.base_rtt_ns() // 2)


def test_flows_of_a_broken_qp_fail_and_end_the_trial() -> None:
    topology = tiny(nic={"path_policy": "single", "retry_linear": 1, "retry_exponential": 0})
    faults = tuple(LinkFault(f"p{p}-t0-0~p{p}-t1-{t}", START_NS + 1_000) for p in (0, 1) for t in (0, 1))
    outcome = Trial(topology, ring(topology, 1 << 16), faults, deadline_ns=9_000_000).run()
    assert any(flow.failed for flow in outcome.flows)
    assert outcome.end_ns < 9_000_000
