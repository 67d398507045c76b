"""What is asked of the endpoint for transfers is checked before the fabric hears of it."""

from typing import Any, cast

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.agent.faults import FaultRequests
from orchestrator.agent.send import SendRequests
from orchestrator.fabric import Fabric

UNHEARD = cast("Fabric", None)
"""A request that reached the fabric would fail on this."""
WHOLE = {"file": "/in", "from": "h000", "to": "h001", "owner": "me"}


@pytest.mark.parametrize("key", [*WHOLE, "out"])
async def test_mistakes_are_named(key: str) -> None:
    body: dict[str, Any] = WHOLE | {key: 7}
    with pytest.raises(ConfigError, match=f"{key}: 7 is no text"):
        await SendRequests(UNHEARD, FaultRequests(UNHEARD)).send(body)


async def test_only_who_holds_a_lease_may_send() -> None:
    with pytest.raises(RefusedError, match="me holds no lease: the transfer would go on when it dies"):
        await SendRequests(UNHEARD, FaultRequests(UNHEARD)).send(WHOLE)


async def test_an_owner_who_sends_nothing_may_go() -> None:
    await SendRequests(UNHEARD, FaultRequests(UNHEARD)).end_of("me")
