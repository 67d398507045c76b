"""Where runs take place: the plan and a backend whose time stands still at the begin."""

from dataclasses import replace
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.process.run_folder import is_held
from orchestrator.runs.backends import launched, simulated
from orchestrator.scenario.process_kinds import ALL_REDUCE
from tests.support.runs import pair, plan


async def test_in_virtual_time() -> None:
    what = plan()
    async with simulated(what)() as (same, backend):
        assert same is what
        assert (backend.kind, backend.now_ns, backend.topology) == ("sim", 0, what.topology)


@pytest.mark.integration
async def test_on_daemons_that_end_with_it(tmp_path: Path) -> None:
    what = plan()
    async with launched(what, tmp_path / "run")() as (same, backend):
        assert same is what
        assert (backend.kind, backend.now_ns, backend.topology) == ("udp", 0, what.topology)
        assert is_held(tmp_path / "run")
    assert not is_held(tmp_path / "run")


def test_ranks_that_are_processes_do_not_live_in_virtual_time() -> None:
    with pytest.raises(ConfigError, match="the ranks of pair are processes, and live in wall time"):
        simulated(plan(programs=(replace(pair(), kind=ALL_REDUCE, figures={}),)))
