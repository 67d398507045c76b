"""The Clustermapper inside a run: what it finds, what NICs then avoid, and who is asked and told what."""

from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.measures.durations import LOSS_CAUSES
from orchestrator.measures.judge import verdict
from orchestrator.measures.recording import Recording
from orchestrator.report.report import build
from orchestrator.report.run_page import render
from orchestrator.runs.loop import RunLoop
from orchestrator.runs.recorder import Recorder
from orchestrator.scenario.plan import Plan
from orchestrator.scenario.resolve import load
from orchestrator.sim.backend import SimBackend
from tests.support.corners import corners
from tests.support.runs import Ears, simulated

SCENARIO = """
name: mapped
fabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 4, nics_per_t0: 2, evs_per_qp: 16, reserve_evs_per_qp: 8}
length: 700rtt
mapper: {period: 20us}
workload:
  - {name: all, kind: permutation, messages: 8, message_bytes: 256KiB}
method:
  - {name: broken, at: 60rtt, for: 100rtt, FAULT}
expect:
  - {measure: mapping_rtts, during: broken, at_most: 150}
"""
UP_LINK, NIC_LINK, T1 = "p0-t0-0~p0-t1-1", "h001~p1-t0-0", "p1-t1-2"
LOSS = f'fault: loss, toxicity: 5%, selector: {{links: ["{UP_LINK}"]}}'
GRAY = f'fault: gray, toxicity: 5%, selector: {{links: ["{UP_LINK}"]}}'
FAULTS = {
    UP_LINK: LOSS,
    NIC_LINK: f'fault: loss, toxicity: 10%, selector: {{links: ["{NIC_LINK}"]}}',
    T1: f"fault: switch_reboot, selector: {{nodes: [{T1}]}}",
}


def scenario(folder: Path, fault: str, *overrides: str) -> Plan:
    file = folder / "mapped.yaml"
    file.write_text(SCENARIO.replace("FAULT", fault))
    return load(str(file), overrides)


def ever_bad(recording: Recording) -> set[str]:
    assert recording.links is not None
    return {name for found in recording.links for name in found.bad}


@pytest.mark.parametrize("seed", corners(["a", "b", "c"], "a"))
@pytest.mark.parametrize("name", FAULTS)
async def test_each_fault_is_named_and_nothing_else(tmp_path: Path, name: str, seed: str) -> None:
    plan = scenario(tmp_path, FAULTS[name], f"seed={seed}")
    recording = await simulated(plan)
    assert ever_bad(recording) == {name}
    assert verdict(plan.expectations, recording).outcome == "held"
    assert recording.links is not None
    avoided = {one for found in recording.links for one in found.avoided}
    assert avoided | set().union(*(found.kept for found in recording.links)) == {name}


async def test_what_is_mended_is_used_again(tmp_path: Path) -> None:
    plan = scenario(tmp_path, LOSS, "length=2000rtt", "workload.all.messages=400", "expect=[]")
    recording = await simulated(plan)
    assert recording.links is not None
    assert [(found.bad, found.avoided) for found in recording.links] == [((UP_LINK,), (UP_LINK,)), ((), ())]
    assert sum(states["denied"] for nic in recording.looks[-1].nics.values() for states in nic.evs) == 0


async def test_what_is_avoided_loses_nothing_more(tmp_path: Path) -> None:
    """Once NICs are kept off a lossy link, nothing is lost. Without denials EVs come back to it, and lose some."""
    lost = {}
    for deny in ("true", "false"):
        plan = scenario(
            tmp_path,
            GRAY,
            f"mapper.deny={deny}",
            "method.broken.for=300rtt",
            "workload.all.messages=150",
            "workload.all.ranks=[h000, h002]",
        )
        recording = await simulated(plan)
        assert recording.links is not None
        assert recording.links[0].bad == (UP_LINK,)
        late_ns = recording.links[0].at_ns + 5 * recording.rtt_ns
        losses = [one for one in recording.events if one["kind"] == "retransmit" and one["cause"] in LOSS_CAUSES]
        lost[deny] = sum(one["at_ns"] > late_ns for one in losses)
    assert lost["true"] == 0 < lost["false"]


async def test_a_nic_that_dies_or_is_deaf_is_asked_nothing(tmp_path: Path) -> None:
    """It is no bad link, and the looks of the others go on."""
    for fault in ("fault: nic_crash, selector: {nodes: [h001]}", "fault: control_cut, selector: {nodes: [h001]}"):
        recording = await simulated(scenario(tmp_path, fault, "expect=[]", "workload.all.ranks=[h000, h002, h003]"))
        assert ever_bad(recording) == set()
        assert recording.ended == "complete" or recording.end_ns > recording.begin_ns


async def test_a_run_without_a_mapper_asks_no_nic_and_has_no_figures(tmp_path: Path) -> None:
    file = tmp_path / "unmapped.yaml"
    file.write_text(SCENARIO.replace("mapper: {period: 20us}\n", "").replace("FAULT", LOSS))
    plan = load(str(file))
    recording = await simulated(plan)
    assert recording.links is None
    found = verdict(plan.expectations, recording)
    assert found.outcome == "not held"
    assert build(plan, recording, found)["links"] is None
    assert "held bad" not in render(build(plan, recording, found), recording)


async def test_the_report_and_whoever_listens_hear_of_every_change(tmp_path: Path) -> None:
    plan = scenario(tmp_path, LOSS)
    backend, ears = SimBackend(plan.topology), Ears()
    recording = await RunLoop(plan, backend, Recorder(plan, backend), ears).run()
    assert recording.links is not None
    told = [(what, at_ns) for what, at_ns in ears.heard if what.startswith("bad")]
    assert told == [(f"bad {' '.join(found.bad)}", found.at_ns) for found in recording.links]
    report = build(plan, recording, verdict(plan.expectations, recording))
    assert [found["at_ns"] for found in report["links"]] == [found.at_ns for found in recording.links]
    page = render(report, recording)
    assert "held bad" in page
    assert UP_LINK in page


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("mapper.period=5ns", "a round of probes cannot take 5ns, 5 ns of fabric time"),
        ("mapper.period=2000000s", "of fabric time"),
        ("system=roce", "only MRC NICs probe links"),
        ("mapper.denied=true", "no such key here"),
    ],
)
def test_a_mapper_that_cannot_be_is_refused_with_its_line(tmp_path: Path, override: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        scenario(tmp_path, LOSS, override)
