"""What to do about an error of the system, by its number.

Owns the words. `orchestrator.hosts.doctor` checks what a fabric needs of the machine.
"""

import errno
from typing import Final

_REMEDIES: Final = {
    errno.ENOMEM: "free memory, or take a smaller fabric; `mrcfabric doctor` says what it needs",
    errno.EAGAIN: "raise the limit of processes (`ulimit -u`, or pids.max of the cgroup)",
    errno.EMFILE: "raise the limit of open files (`ulimit -Hn`); `mrcfabric doctor` says what it needs",
    errno.ENFILE: "raise fs.file-max with sysctl",
    errno.EADDRNOTAVAIL: "ip link set lo up",
}


def remedy(number: int | None) -> str:
    """One clause; "" if no remedy is known."""
    return _REMEDIES.get(number or 0, "")
