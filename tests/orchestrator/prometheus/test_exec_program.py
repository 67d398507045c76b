"""A child that becomes another program: its title, its folder, and none of our descriptors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, sys
from orchestrator.prometheus.exec_program import become
end = os.memfd_create("ours", 0)  # not closed on exec
arguments = {"program": sys.executable, "title": "mrcfabric lab other", "directory": sys.argv[1],
             "arguments": ["-c", sys.argv[2]]}
become(arguments, [end])
"""
LOOK = """
import os
print(os.getcwd())
print(open("/proc/self/cmdline").read().split("\\0")[0])
print(sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if int(fd) > 2
             and os.path.lexists(f"/proc/self/fd/{fd}")))
"""


@pytest.mark.slow
def test_nothing_of_ours_comes_along(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), LOOK]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines() == [str(tmp_path), "mrcfabric lab other", "[]"]
