"""The processes of a running fabric as the kernel sees them: which kind, how much CPU, how much memory.

A process belongs to the fabric when it descends from the given one. Its kind is the first word of its title, which the
daemons set (`nicd h003`, `switchd p0-t1-2`; `fabricd core-0` has NICs and switches); whatever has none of ours is the
orchestrating side.
"""

import os
from collections.abc import Iterable
from pathlib import Path

KINDS = {"nicd": "nic", "switchd": "switch", "fabricd": "mixed", "mrc-worker": "worker"}
OTHERS = "orchestrator"
_PROC = Path("/proc")


def kind_of(command_line: bytes) -> str:
    """What kind of process a command line belongs to."""
    word = command_line.replace(b"\0", b" ").split(b" ", 1)[0].decode(errors="replace")
    return KINDS.get(word, OTHERS)


def descendants(root: int) -> list[int]:
    """Living processes below `root`, itself not included."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    pending = [root]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found


def _stat(pid: int) -> list[bytes]:
    """Fields of /proc/PID/stat from the state on; empty when the process is gone."""
    try:
        # The name may hold blanks and brackets; nothing after it does.
        return (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used; 0 when it is gone."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def by_kind(pids: Iterable[int]) -> dict[str, list[int]]:
    """The processes sorted by kind."""
    kinds: dict[str, list[int]] = {}
    for pid in pids:
        try:
            kinds.setdefault(kind_of((_PROC / str(pid) / "cmdline").read_bytes()), []).append(pid)
        except OSError:
            continue
    return kinds


class CpuMeter:
    """CPU seconds that each kind of process uses, from creation on."""

    def __init__(self, root: int) -> None:
        self._kinds = by_kind([root, *descendants(root)])
        self._before = self._seconds()

    def _seconds(self) -> dict[str, float]:
        seconds = dict.fromkeys(self._kinds, 0.0)
        for kind, pids in self._kinds.items():
            seconds[kind] += sum(map(cpu_s, pids))
        return seconds

    def used(self) -> tuple[float, dict[str, float]]:
        """CPU seconds that all kinds together have used, and the share of each in them."""
        used = {kind: seconds - self._before[kind] for kind, seconds in self._seconds().items()}
        total = sum(used.values())
        return total, {kind: round(used[kind] / (total or 1), 3) for kind in sorted(used)}


def pss_mb(pid: int) -> float:
    """Memory of a process in MB, shared pages divided among those who share them. 0 when it is gone."""
    try:
        rollup = (_PROC / str(pid) / "smaps_rollup").read_text()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) / 1024
