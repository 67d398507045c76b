"""Processes beside the daemons: started, loaded, and gone with the fabric."""

from pathlib import Path

import pytest

from orchestrator.fabric import Fabric
from orchestrator.process.launcher import ProcessFailedError
from tests.orchestrator.running import ROOT, SMALL, is_gone

pytestmark = pytest.mark.integration


async def test_workers_run_beside_the_daemons_and_end_with_the_fabric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    async with Fabric.launch(SMALL, tmp_path / "small") as fabric:
        done = await fabric.workers.start("rank0", "tests.orchestrator.entries:exit_with", 7, preload=["json"])
        assert await done.ended == 7
        assert fabric.unexpected_deaths() == []
        assert fabric.folder.log("rank0").read_text() == "leaving with 7\n"
        endless = await fabric.workers.start("rank1", "tests.orchestrator.entries:sleep", None)
    assert is_gone(endless.pid)


async def test_a_worker_that_cannot_be_loaded_is_one_error(fabric: Fabric) -> None:
    with pytest.raises(ProcessFailedError, match="No module named 'no_such_module'"):
        await fabric.workers.start("rank0", "no_such_module:run", None, preload=["no_such_module"])
