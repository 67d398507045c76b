"""What a machine lacks is named with its remedy, by the doctor and by a launch alike."""

import os
import resource
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.fabric import Fabric
from orchestrator.hosts import doctor
from orchestrator.hosts.doctor import Check, examine, require
from orchestrator.hosts.placement.site import Sites
from tests.orchestrator.running import MRCFABRIC, SMALL
from tests.support.packages import NEEDS_ROOT, program


def named(name: str) -> Check:
    [check] = [check for check in examine(SMALL) if check.name == name]
    return check


def test_a_machine_that_runs_the_tests_can_carry_a_small_fabric() -> None:
    checks = list(examine(SMALL))
    assert [check.line() for check in checks if check.needed and not check.holds] == []
    assert {"Python", "open files", "memory", "loopback", "ports", "UDP offload", "socket buffers"} <= {
        check.name for check in checks
    }


@pytest.mark.parametrize("hard", [20, 200])
async def test_too_few_open_files_are_one_line_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hard: int
) -> None:
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _what: (hard, hard))
    check = named("open files")
    assert not check.holds
    assert "FAILS  open files: 276 are needed for 10 daemons" in check.line()
    with pytest.raises(ConfigError) as refused:
        async with Fabric.launch(SMALL, tmp_path / "small"):
            pass
    assert (refused.value.what, refused.value.hint) == (check.found, check.remedy)
    assert not (tmp_path / "small").exists(), "nothing has begun"
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _what: (hard, resource.RLIM_INFINITY))
    assert named("open files").holds


def test_too_few_processes_are_named_for_who_is_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = doctor._threads_of_mine()
    assert mine >= 1
    limits = (mine + 15, resource.RLIM_INFINITY)
    monkeypatch.setattr(doctor, "_threads_of_mine", lambda: mine)
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _what: limits)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "22 are needed for 10 daemons, any number" in named("processes").found
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert f"22 are needed for 10 daemons, 15 of {mine + 15:,} left" in named("processes").found
    with pytest.raises(ConfigError, match=r"processes: .*ulimit -u"):
        doctor.require(SMALL, "none", Sites())
    limits = (mine + 22, resource.RLIM_INFINITY)
    assert named("processes").holds


def test_what_is_needed_grows_with_the_fabric(monkeypatch: pytest.MonkeyPatch) -> None:
    large = replace(SMALL, t0_per_plane=100, nics_per_t0=2)
    monkeypatch.setattr(doctor, "_available_bytes", lambda: 1 << 30)
    require(SMALL, "none", Sites())
    with pytest.raises(ConfigError, match=r"memory: .* MiB are needed for 404 daemons, 1,024 MiB are free"):
        require(large, "none", Sites())
    monkeypatch.setattr(doctor, "_available_bytes", lambda: None)
    require(large, "none", Sites())


def test_a_loopback_that_is_down_or_narrow_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.loopback_state()[0]
    monkeypatch.setattr(doctor, "loopback_state", lambda: (True, 1500))
    assert named("loopback").remedy == "ip link set lo mtu 65536"
    monkeypatch.setattr(doctor, "loopback_state", lambda: (False, 65536))
    with pytest.raises(ConfigError, match=r"loopback: is down .*ip link set lo up"):
        require(SMALL, "none", Sites())


@pytest.mark.integration
@pytest.mark.skipif(os.geteuid() != 0, reason=NEEDS_ROOT)
def test_a_launch_without_a_loopback_is_one_line(tmp_path: Path) -> None:
    program("unshare")
    done = subprocess.run(
        ["unshare", "-n", MRCFABRIC, "up", "--run-dir", str(tmp_path / "run")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "mrcfabric: loopback: is down (ip link set lo up)\n"
