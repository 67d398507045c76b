"""The machine under the benchmark: what it is, and whether something else was using it.

A benchmark cannot make other programs go away. It can notice them and say so, which `Watch` does.
"""

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrcfabric.cores import CORES

BUSY_SHARE_MAX = 0.10
"""Share of all CPUs that others may use, or the hypervisor withhold, before the figures are called noisy."""


@dataclass(slots=True)
class _Cpu:
    """Clock ticks of all CPUs since boot."""

    total: int
    idle: int
    stolen: int


def _cpu() -> _Cpu:
    with open("/proc/stat") as stat:
        ticks = [int(field) for field in stat.readline().split()[1:9]]
    return _Cpu(sum(ticks), ticks[3] + ticks[4], ticks[7])


def _own_cpu_s() -> float:
    """CPU seconds of this process and of its children that have been waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Watch:
    """What others used of the machine while something of ours ran: create it before, ask it after."""

    def __init__(self) -> None:
        self._cpu = _cpu()
        self._own_s = _own_cpu_s()

    def others(self) -> dict[str, float]:
        """Shares of all CPUs since creation: `busy_share` for other programs, `stolen_share` for the hypervisor.

        Children of ours count as ours once they have been waited for.
        """
        now = _cpu()
        total = max(1, now.total - self._cpu.total)
        stolen = now.stolen - self._cpu.stolen
        busy = total - (now.idle - self._cpu.idle) - stolen
        own = (_own_cpu_s() - self._own_s) * os.sysconf("SC_CLK_TCK")
        return {"busy_share": round(max(0.0, (busy - own) / total), 3), "stolen_share": round(stolen / total, 3)}


def noise(others: dict[str, float]) -> str | None:
    """One sentence about a machine that was not ours alone, None for a quiet one."""
    for key, who in (("busy_share", "other programs used"), ("stolen_share", "the hypervisor withheld")):
        if others[key] > BUSY_SHARE_MAX:
            return f"{who} {others[key]:.0%} of the CPUs"
    return None


def idle_load(seconds: float = 0.5) -> dict[str, float]:
    """What others use while we do nothing for a moment."""
    watch = Watch()
    time.sleep(seconds)
    return watch.others()


def pin_to_one_cpu() -> int:
    """Keep this process on one of the CPUs it may use; returns which."""
    cpu = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpu})
    return cpu


def describe() -> dict[str, Any]:
    """What to print beside any figure, or it means nothing."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    model = next((line.split(":", 1)[1].strip() for line in cpuinfo.splitlines() if line.startswith("model name")), "")
    return {
        "cpu": model or platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "cores": CORES.line,
    }
