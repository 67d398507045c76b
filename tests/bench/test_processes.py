"""Processes by kind, CPU and memory, on processes that are certainly there."""

import os
import subprocess
import sys
from typing import Any

import pytest

from bench.processes import CpuMeter, by_kind, cpu_s, descendants, kind_of, pss_mb


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"nicd h003\0\0\0", "nic"),
        (b"switchd p0-t1-2", "switch"),
        (b"mrc-worker h000", "worker"),
        (b"/usr/bin/python3\0-m\0bench", "orchestrator"),
        (b"", "orchestrator"),
    ],
)
def test_titles_tell_kinds(line: bytes, kind: str) -> None:
    assert kind_of(line) == kind


@pytest.mark.integration
def test_children_are_found_with_their_memory() -> None:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", "input(1)"], **pipes) as child:
        assert child.stdout is not None
        assert child.stdout.read(1) == b"1", "it runs, and no longer starts"
        assert child.pid in descendants(os.getpid())
        assert by_kind([child.pid]) == {"orchestrator": [child.pid]}
        assert pss_mb(child.pid) > 0.1
        assert cpu_s(child.pid) >= 0
        child.communicate(b"\n")
    assert child.pid not in descendants(os.getpid())
    assert pss_mb(child.pid) == cpu_s(child.pid) == 0


def test_cpu_is_shared_out() -> None:
    meter = CpuMeter(os.getpid())
    while (used := meter.used())[0] < 0.03:
        sum(range(100_000))
    assert sum(used[1].values()) == pytest.approx(1, abs=0.01)
