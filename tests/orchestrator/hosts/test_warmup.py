"""The fork server's rehearsal: it ends by itself and leaves no socket behind."""

import gc
import os
import subprocess
import sys

import pytest

from orchestrator.hosts.warmup import warm_up
from tests.orchestrator.running import ROOT


def open_sockets() -> int:
    numbers = os.listdir("/proc/self/fd")
    links = [os.readlink(f"/proc/self/fd/{number}") for number in numbers if os.path.exists(f"/proc/self/fd/{number}")]
    return sum(link.startswith("socket:") for link in links)


@pytest.mark.integration
def test_both_daemons_live_and_end() -> None:
    gc.collect()
    before = open_sockets()
    warm_up()
    gc.collect()
    assert open_sockets() == before


@pytest.mark.integration
def test_nobody_takes_the_rehearsal_for_a_daemon() -> None:
    """Whoever kills the first `nicd` in the list of processes must not have killed the fork server."""
    program = (
        "import setproctitle\n"
        "from orchestrator.hosts import warmup\n"
        "seen = []\n"
        "setproctitle.setproctitle('the fork server')\n"
        "from mrcfabric import daemon_process\n"
        "daemon_process.setproctitle = seen.append\n"
        "warmup.warm_up()\n"
        "print(set(seen))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "{'the fork server'}\n"
