"""The engine where a script stands in for srun, or nothing: with a real Slurm it is tried by
tests/integration/test_under_slurm.py.
"""

import os
import sys
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines.slurm import SlurmEngine
from orchestrator.hosts.placement.inventory import Host
from tests.support.launches import DEADLINE_S, ends, facts, launch, say
from tests.support.wait import eventually

LOOPBACK = "127.0.0.1"
HOST = Host.at("h2", LOOPBACK, 2)
HERE = """#!/bin/sh
echo "$*" >> "$TMPDIR/asked"
for word; do case $word in --*) shift ;; *) break ;; esac; done
export SLURMD_NODENAME=h2 SLURM_JOB_ID=7 SLURM_STEP_ID=0
"$@"
code=$?
[ $code = 0 ] || echo "srun: error: h2: task 0: Exited with exit code $code" >&2
exit $code
"""
OVER = """#!/bin/sh
echo 'srun: error: Unable to confirm allocation for job 7: Invalid job id' >&2
exit 1
"""


def site(folder: Path, monkeypatch: pytest.MonkeyPatch, srun: str) -> None:
    """A job 7, and this for srun."""
    (folder / "srun").write_text(srun)
    (folder / "srun").chmod(0o755)
    (folder / "scancel").symlink_to("/bin/false")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_it_is_for_allocations_on_machines_with_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(ConfigError, match="--engine slurm: this is no allocation"):
        SlurmEngine()
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="--engine slurm: there is no `srun` here"):
        SlurmEngine()


@pytest.mark.integration
async def test_a_task_becomes_the_program_in_a_folder_of_its_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site(tmp_path, monkeypatch, HERE)
    heard: list[str] = []
    told = launch(LOOPBACK, files={"a/b": b"carried"}, on_line=heard.append, read=["a/b"])
    running = await SlurmEngine().start(HOST, told)
    known = await facts(running)
    assert known["folder"] == str(tmp_path / f"mrcfabric-{os.getuid()}/h2/mrcfabric")
    assert known["files"] == {"a/b": "carried"}
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("--jobid=7 --nodelist=h2 --nodes=1 --ntasks=1 ")
    assert f" --cpus-per-task=2 {sys.executable} -c " in asked
    assert known["launch"]["secret"] not in known["command"] + asked
    await say(running, "log of interest")
    await eventually(lambda: heard == ["launched", "of interest"], DEADLINE_S)
    await say(running, "exit 3")
    assert await ends(running) == "exit code 3: of interest"
    await running.stop()
    await running.stop()


@pytest.mark.integration
async def test_a_program_that_slurm_does_not_end_goes_with_srun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site(tmp_path, monkeypatch, HERE.replace('\n"$@"\n', '\nexec "$@"\n'))
    monkeypatch.setattr("orchestrator.hosts.engines.slurm.LEAVE_WALL_S", 0.0)
    monkeypatch.setattr("orchestrator.hosts.engines.slurm.STOP_WALL_S", 0.0)
    monkeypatch.setattr("orchestrator.hosts.engines.slurm.FORCE_WALL_S", 0.0)
    running = await SlurmEngine().start(HOST, launch(LOOPBACK))
    await running.stop()
    assert running.ended.result().startswith("connection lost: srun has ended: SIG")


@pytest.mark.integration
async def test_what_srun_says_instead_of_a_task_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site(tmp_path, monkeypatch, OVER)
    with pytest.raises(ConfigError, match="host h2: job 7 is over"):
        await SlurmEngine().start(HOST, launch(LOOPBACK))
