"""A thousand idle strangers at the doors of a fabric whose agent may open 1,024 files: its operator is served."""

import http.client
import os
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.orchestrator.running import DEADLINE_S, MRCFABRIC, SMALL_FLAGS, ask, run, state_of

pytestmark = [pytest.mark.integration, pytest.mark.slow]

STRANGERS, DESCRIPTORS = 1200, 1024


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """The folder of a fabric with a live map, and the address of that."""
    limited = (
        f"import os, resource, sys\nresource.setrlimit(resource.RLIMIT_NOFILE, ({DESCRIPTORS}, {DESCRIPTORS}))\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", limited, MRCFABRIC, "up", *SMALL_FLAGS, "--web", "--detach"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    [url] = re.findall(r"http://127\.0\.0\.1:\d+/#token=\S+", done.stdout)
    yield tmp_path, url
    run(tmp_path, "down")


@contextmanager
def strangers(*ports: int) -> Iterator[None]:
    """So many idle connections over all these ports, half of them with half a header."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < STRANGERS + 200:
        pytest.skip(f"this process may open {hard} files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with ExitStack() as stack:
            for number in range(STRANGERS):
                one = stack.enter_context(socket.socket())
                one.settimeout(DEADLINE_S)
                try:
                    one.connect(("127.0.0.1", ports[number % len(ports)]))
                    if number % 4 > 1:
                        one.sendall(b"GET /status HTTP/1.1\r\nHost: x\r\n")
                except ConnectionError:
                    continue  # sent away for those who came later
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_operator_is_served_beside_a_thousand_idle_strangers(crowded: tuple[Path, str]) -> None:
    folder, url = crowded
    map_port, public = (int(re.findall(r":(\d+)", text)[0]) for text in (url, state_of(folder)["http"]))
    (folder / "message").write_bytes(os.urandom(1000))
    with strangers(public, map_port):
        began = time.monotonic()
        assert "daemons run" in ask(folder, "status")
        ask(folder, "fault", "add", "link_down", "p0-t0-0~p0-t1-0", "--for", "10us")
        ask(folder, "send", "--name", "small", "message", "--out", "got", "--from", "h000", "--to", "h001")
        for port, path in ((map_port, "/api/fabric"), (public, "/metrics"), (public, "/status")):
            asked = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
            asked.request("GET", path)
            assert asked.getresponse().status == 200
            asked.close()
        assert time.monotonic() - began < DEADLINE_S
    assert (folder / "got").read_bytes() == (folder / "message").read_bytes()
    assert (folder / "out" / "small" / "logs" / "agent.log").stat().st_size < 10_000
