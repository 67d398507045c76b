"""What to do about an error of the system, by its number; and whether the kernel kills processes for want of memory.

Owns the words. `orchestrator.hosts.doctor` checks what a fabric needs of the machine.
"""

import errno
import re
from pathlib import Path
from typing import Final

_REMEDIES: Final = {
    errno.ENOMEM: "free memory, or take a smaller fabric; `mrcfabric doctor` says what it needs",
    errno.EAGAIN: "raise the limit of processes (`ulimit -u`, or pids.max of the cgroup)",
    errno.EMFILE: "raise the limit of open files (`ulimit -Hn`); `mrcfabric doctor` says what it needs",
    errno.ENFILE: "raise fs.file-max with sysctl",
    errno.ENOSPC: "make room on that disk",
    errno.EADDRNOTAVAIL: "ip link set lo up",
}


def remedy(number: int | None) -> str:
    """One clause; "" if no remedy is known."""
    return _REMEDIES.get(number or 0, "")


def memory_kills() -> int:
    """How many processes of this machine the kernel has killed for want of memory since it booted; 0 if unknown."""
    try:
        found = re.search(r"^oom_kill (\d+)$", Path("/proc/vmstat").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0
