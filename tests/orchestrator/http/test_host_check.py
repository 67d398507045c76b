"""The agent's public server answers to its address, and to no name but localhost."""

import pytest

from orchestrator.http.host_check import HostCheck


@pytest.mark.parametrize(
    ("here", "host", "known"),
    [
        ("127.0.0.1", "127.0.0.1:9", True),
        ("127.0.0.1", "LocalHost:9", True),
        ("127.0.0.1", "[::1]:9", True),
        ("127.0.0.1", "127.0.0.1:8", False),
        ("127.0.0.1", "127.0.0.1", False),
        ("127.0.0.1", "evil.example:9", False),
        ("127.0.0.1", "10.0.0.1:9", False),
        ("127.0.0.1", "", False),
        ("10.0.0.1", "10.0.0.1:9", True),
        ("10.0.0.1", "localhost:9", False),
        ("10.0.0.1", "127.0.0.1:9", False),
        ("fd00::1", "[fd00::1]:9", True),
        ("fd00::1", "fabric.example:9", False),
    ],
)
def test_only_addresses_of_the_endpoint_pass(here: str, host: str, known: bool) -> None:
    assert HostCheck(here, 9).knows(host) is known
