"""The fork server's rehearsal: it ends by itself and leaves no socket behind."""

import gc
import os

import pytest

from orchestrator.warmup import warm_up


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
