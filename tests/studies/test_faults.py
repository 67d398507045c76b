"""Faults of trials strike where and when they say."""

from studies.faults import LinkFault, LossyEv, NodeFault, PortFault, RandomLoss
from studies.flows import START_NS, Flow
from studies.outcome import Outcome
from studies.trial import Fault, Trial
from tests.studies.fabrics import tiny

AT_NS = START_NS + 4_000
FLOW = Flow(0, 2, 1 << 20)


def run(*faults: Fault) -> Outcome:
    return Trial(tiny(), (FLOW,), faults, deadline_ns=2_000_000).run()


def test_a_cut_cable_loses_packets_and_retires_evs() -> None:
    outcome = run(LinkFault("p0-t0-0~p0-t1-0", AT_NS))
    assert outcome.drops["link_down"] > 0
    assert outcome.retired > 0
    assert outcome.first_retired_ns is not None
    assert outcome.first_retired_ns > AT_NS
    assert outcome.flows[0].done_ns is not None


def test_a_nic_s_port_is_known_to_be_down() -> None:
    outcome = run(PortFault(2, 1, AT_NS))
    assert outcome.retransmits["port_down"] > 0
    assert outcome.flows[0].done_ns is not None


def test_a_dead_node_is_left_out_of_the_counters() -> None:
    outcome = run(NodeFault("p1-t1-1", AT_NS))
    assert outcome.flows[0].done_ns is not None
    assert outcome.resent > 0


def test_random_loss_strikes_once_on_every_way() -> None:
    outcome = run(RandomLoss(50_000))
    sent = outcome.nics["data_packets"] + outcome.nics["sacks_sent"]
    assert 0.02 < outcome.drops["loss"] / sent < 0.09


def test_the_path_of_one_ev_is_lossy_for_its_flow() -> None:
    outcome = run(LossyEv(0, 0, 500_000, AT_NS))
    assert outcome.drops["loss"] > 0
    assert outcome.retired > 0
