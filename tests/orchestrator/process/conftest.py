"""Here a fork server is an interpreter of its own, as users have it (`tests.support.warm_fork_server`)."""

import subprocess

import pytest

from orchestrator.process import launcher


@pytest.fixture(autouse=True)
def no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "subprocess", subprocess)
