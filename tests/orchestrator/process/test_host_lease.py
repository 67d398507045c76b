"""The lease: its defaults and its bounds, and who keeps it."""

import time
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.share_agent import ShareAgent
from orchestrator.process.host_lease import (
    HUNG_UP_S,
    LEASE_DETACHED_S,
    LEASE_S,
    LEASE_S_MAX,
    LEASE_S_MIN,
    beat_s,
    lease_of,
)
from orchestrator.process.keyed_stream import HUNG_UP
from tests.orchestrator.hosts.test_share_agent import launch


def test_who_is_left_alone_waits_longer() -> None:
    assert lease_of(None, detached=False) == LEASE_S
    assert lease_of(None, detached=True) == LEASE_DETACHED_S > LEASE_S
    assert lease_of(40.0, detached=False) == lease_of(40.0, detached=True) == 40.0


@pytest.mark.parametrize("asked_s", [0.0, -1.0, LEASE_S_MIN - 1, LEASE_S_MAX + 1, float("inf"), float("nan")])
def test_a_lease_has_bounds(asked_s: float) -> None:
    with pytest.raises(ConfigError, match="5s to 86400s of wall time"):
        lease_of(asked_s, detached=True)
    assert lease_of(LEASE_S_MIN, detached=True) == LEASE_S_MIN
    assert lease_of(LEASE_S_MAX, detached=False) == LEASE_S_MAX


def test_words_are_said_often_enough_for_any_lease() -> None:
    assert all(beat_s(lease_s) <= lease_s / 4 for lease_s in (LEASE_S_MIN, LEASE_S, LEASE_S_MAX))


async def test_a_lease_that_is_over_is_over_for_a_leader_that_comes_back(tmp_path: Path) -> None:
    agent = ShareAgent(launch(tmp_path, lease_s=LEASE_S))
    agent._heard_s = heard_s = time.monotonic() - LEASE_S - 1
    agent._hear()
    assert agent._heard_s == heard_s
    assert agent._end.result().startswith("the leader has not been heard for 1")


async def test_only_a_leader_that_closes_has_hung_up(tmp_path: Path) -> None:
    agent = ShareAgent(launch(tmp_path))
    for why in ("Connection timed out", HUNG_UP):
        agent._leader = agent._accept()
        agent._lost(agent._leader, why)
        assert agent._leader is None
        assert agent._hung_up == (why == HUNG_UP)


async def test_a_share_waits_for_a_silent_leader_and_not_for_one_whose_kernel_has_hung_up(tmp_path: Path) -> None:
    agent = ShareAgent(launch(tmp_path, lease_s=LEASE_DETACHED_S))
    agent._heard_s = time.monotonic() - HUNG_UP_S - 1
    assert agent._lives()
    agent._hung_up = True
    assert not agent._lives()
    assert agent._end.result().startswith("the leader has hung up, and not been heard for 1")
