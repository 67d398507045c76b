"""`mrcfabric web` as the user meets it."""

import contextlib
import json
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mrcfabric.errors import ConfigError
from orchestrator.cli.main import build_app
from tests.orchestrator.running import DEADLINE_S, MRCFABRIC, ask, state_of
from tests.support.wait import eventually_blocking


@pytest.mark.integration
def test_it_prints_its_address_and_ends_with_an_interrupt(detached: Path) -> None:
    with subprocess.Popen([MRCFABRIC, "web", "--rate", "10"], cwd=detached, stdout=subprocess.PIPE, text=True) as web:
        assert web.stdout is not None
        line = web.stdout.readline()
        assert line.startswith("live map of small: http://127.0.0.1:")
        address, _, token = line.split()[-1].partition("#token=")
        assert len(token) >= 32
        with urllib.request.urlopen(address + "api/fabric", timeout=10) as answer:
            assert json.load(answer)["look_hz"] == 10
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert "text/html" in answer.headers["Content-Type"]
        eventually_blocking(lambda: f"  live map  {line.split()[-1]}\n" in ask(detached, "status"), DEADLINE_S)
        with urllib.request.urlopen(state_of(detached)["http"] + "/status", timeout=10) as answer:
            assert json.load(answer)["maps"] == [address], "who may only read gets no token"
        web.send_signal(signal.SIGINT)
        assert web.wait(timeout=10) == 0
    eventually_blocking(lambda: "live map" not in ask(detached, "status"), DEADLINE_S)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "none runs below"),
        (["--name", "nobody"], "no fabric runs there"),
        (["--rate", "1000"], "--rate 1000: will not do (0.2 to 20)"),
        (["--port", "70000"], "--port 70000: is no port"),
        (["--scenarios", "nowhere"], "--scenarios nowhere: is no folder"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, arguments: list[str], words: str) -> None:
    with contextlib.chdir(tmp_path):
        done = CliRunner().invoke(build_app(), ["web", *arguments])
    assert isinstance(done.exception, ConfigError)
    assert words in str(done.exception)
