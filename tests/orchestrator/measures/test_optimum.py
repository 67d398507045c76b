"""What flows placed beside what was due to them."""

import pytest

from orchestrator.measures.judge import verdict
from orchestrator.measures.measure import Question
from orchestrator.measures.optimum import max_min
from orchestrator.measures.spans import Interval, whole
from tests.support.runs import simulated
from tests.support.scenarios import plan_of

FABRIC = """\
name: due
fabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2}
length: 200rtt
look: 2rtt
workload: [{name: w, kind: KIND, ranks: RANKS, message_bytes: 256KiB, window: 16, for: 80rtt}]
"""


async def share(kind: str, ranks: str, method: str = "", start_rtts: int = 20, end_rtts: int = 80) -> float:
    plan = plan_of(FABRIC.replace("KIND", kind).replace("RANKS", ranks) + method)
    recording = await simulated(plan)
    rtt = plan.topology.base_rtt_ns()
    window = Interval(plan.begin_ns + start_rtts * rtt, plan.begin_ns + end_rtts * rtt)
    (figure,) = max_min(Question(recording, (), (window,)))
    assert figure.value is not None
    return figure.value


async def test_a_healthy_pair_gets_nearly_all_that_is_due() -> None:
    assert 0.97 <= await share("p2p", "[h000, h002]") <= 1


async def test_senders_of_an_incast_are_due_a_part_each() -> None:
    assert 0.6 <= await share("incast", "[h000, h001, h002, h003]") <= 1


async def test_what_the_probes_of_a_mapper_took_is_not_due() -> None:
    alone = await share("permutation", "4")
    # Not counted, they leave 0.93 here.
    for mapper in ("{}", "{period: 100us}"):
        assert await share("permutation", "4", f"mapper: {mapper}\n") == pytest.approx(alone, abs=0.005)


@pytest.mark.parametrize(
    "fault",
    [
        'fault: link_down, selector: {links: "h000~p0-t0-0"}',
        'fault: rate_limit, rate: 50G, selector: {links: "h000~p0-t0-0"}',
    ],
)
async def test_what_a_fault_took_is_not_due(fault: str) -> None:
    kept = await share("p2p", "[h000, h002]", f"method: [{{name: it, at: 5rtt, {fault}}}]\n")
    # Goodput alone would say a half, or three quarters.
    assert kept >= 0.6


async def test_a_flow_is_due_what_was_left_while_it_was_left() -> None:
    plan = plan_of(
        FABRIC.replace("KIND", "p2p").replace("RANKS", "[h000, h002]")
        + 'method: [{name: it, at: 20rtt, for: 40rtt, fault: link_down, selector: {links: "h000~p0-t0-0"}}]\n'
        + "expect: [{measure: max_min, during: it, skip: 10rtt, at_least: 0.9}]\n"
    )
    recording = await simulated(plan)
    assert verdict(plan.expectations, recording).outcome == "held"
    by_flow = max_min(Question(recording, ("w:h000>h002",), (whole(recording),)))
    assert [figure.of for figure in by_flow] == ["w:h000>h002"]
    assert max_min(Question(recording, ("other",), (whole(recording),))) == []
