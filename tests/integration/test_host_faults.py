"""Hosts that die, return and are kept apart under verified work: on three shares of this machine as in virtual time."""

from pathlib import Path

import pytest

from orchestrator.findings.judge import verdict
from orchestrator.flags import hosts_of
from orchestrator.hosts.host_lease import LEASE_S
from orchestrator.hosts.muster import muster
from orchestrator.scenario.resolve import load
from tests.support.runs import conducted

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

CLUSTER = Path(__file__).parents[2] / "examples" / "cluster"


def inventory(folder: Path) -> Path:
    """That of the examples, the folders of its hosts below `folder`."""
    file = folder / "hosts.yaml"
    file.write_text((CLUSTER / "hosts.yaml").read_text().replace("run_dir: ", f"run_dir: {folder}/"))
    return file


@pytest.mark.parametrize("name", ["plane-lost", "rank-lost", "restart-and-partition"])
async def test_the_examples_hold_and_are_the_same_on_both_beds(name: str, tmp_path: Path) -> None:
    hosts = inventory(tmp_path)
    plan = load(str(CLUSTER / f"{name}.yaml"), hosts=hosts_of(hosts))
    said: list[str] = []
    ground = muster(plan.topology, hosts, "local", None, LEASE_S, said.append)
    expected = await conducted(plan, "sim", tmp_path)
    seen = await conducted(plan, "udp", tmp_path / "run", ground)
    assert (seen.ended, seen.lost) == ("complete", ""), said
    assert (seen.fidelity["late_share"], seen.fidelity["host_drops"]) == (0, 0)
    assert [finding.record() for finding in verdict(plan.expectations, expected).findings if not finding.held] == []
    assert seen.looks == expected.looks
    assert seen.events == expected.events
    assert seen.trace_digest == expected.trace_digest != ""
