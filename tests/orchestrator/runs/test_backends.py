"""Where runs take place: the plan and a backend whose time stands still at the begin."""

from dataclasses import replace
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.process.run_folder import is_held
from orchestrator.runs.backends import launched, simulated
from orchestrator.scenario.process_kinds import ALL_REDUCE
from tests.support.runs import after_bytes, offsets, pair, plan, reboot


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


def test_a_switch_that_shares_its_process_cannot_die(tmp_path: Path) -> None:
    for what in (plan(faults=(reboot(8, 30),)), plan(triggers=(after_bytes(1, offsets(reboot(8, 30))),))):
        with pytest.raises(ConfigError, match="reboot-p0-t1-1 lets a switch die"):
            launched(what, tmp_path, pack="plane")
    launched(plan(), tmp_path, pack="plane")


def test_ranks_that_are_processes_do_not_live_in_virtual_time() -> None:
    with pytest.raises(ConfigError, match="the ranks of pair are processes, and live in wall time"):
        simulated(plan(programs=(replace(pair(), kind=ALL_REDUCE, figures={}),)))
