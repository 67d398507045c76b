"""What an error of the system asks of the operator."""

import errno
from pathlib import Path

from orchestrator.process.remedies import memory_kills, remedy


def test_errors_of_the_system_have_remedies() -> None:
    assert "ulimit" in remedy(errno.EMFILE)
    assert "memory" in remedy(errno.ENOMEM)
    assert remedy(None) == remedy(errno.EPERM) == ""


def test_what_the_kernel_killed_for_want_of_memory_is_counted() -> None:
    counted = next(line for line in Path("/proc/vmstat").read_text().splitlines() if line.startswith("oom_kill "))
    assert memory_kills() == int(counted.split()[1])
