"""A fabric of its owner alone: metrics and the live map answer to who has the token, and to nobody else."""

import http.client
import re
from pathlib import Path

import pytest

from orchestrator.process.run_folder import is_owners_alone
from tests.orchestrator.running import DEADLINE_S, SMALL_FLAGS, ask, fails, run, state_of

pytestmark = pytest.mark.integration


def status_of(port: int, path: str, headers: dict[str, str] | None = None) -> int:
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    try:
        asked.request("GET", path, headers=headers or {})
        return asked.getresponse().status
    finally:
        asked.close()


def test_strangers_see_nothing_of_a_fabric_that_is_its_owners_alone(tmp_path: Path) -> None:
    told = ask(tmp_path, "up", *SMALL_FLAGS, "--web", "--owner-only", "--detach")
    folder = tmp_path / "out" / "small"
    try:
        [(place, key)] = re.findall(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)", told)
        public, map_port = int(re.findall(r":(\d+)$", state_of(tmp_path)["http"])[0]), int(place)
        token = (folder / "read.token").read_text().strip()
        assert (folder / "read.token").stat().st_mode & 0o077 == 0
        for path in ("/metrics", "/status", "/sd", "/metrics/h000", "/nowhere"):
            for wrong in ({}, {"Authorization": "Bearer x"}, {"Authorization": f"Basic {token}"}):
                assert status_of(public, path, wrong) == 401
        assert status_of(public, "/metrics", {"Authorization": f"Bearer {token}"}) == 200
        for path in ("/api/fabric", "/api/history", "/api/stream", "/api/runs/report", "/api/fabric?token=x"):
            assert status_of(map_port, path) == 401
        assert status_of(map_port, "/") == 200, "the page itself tells nothing"
        assert status_of(map_port, "/api/fabric", {"X-Mrcfabric-Token": key}) == 200
        assert status_of(map_port, f"/api/fabric?token={key}") == 200
        assert "daemons run" in ask(tmp_path, "status")
        assert is_owners_alone(folder)
    finally:
        run(tmp_path, "down")
    assert not (folder / "read.token").exists()


def test_a_prometheus_beside_would_tell_everybody(tmp_path: Path) -> None:
    assert "answers to everybody here" in fails(tmp_path, "up", "--owner-only", "--with-prometheus")
