"""What is asked of the doors for runs is checked before the fabric hears of it."""

from typing import Any, cast

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from nicd.programs.program import Program
from orchestrator.agent.faults import FaultRequests
from orchestrator.agent.runs import RunRequests
from orchestrator.fabric import Fabric

UNHEARD = cast("Fabric", None)
"""A request that reached the fabric would fail on this."""


@pytest.mark.parametrize(
    ("endpoint", "body", "complaint"),
    [
        ("limit", {"at_ns": "soon"}, "is no whole number from 0"),
        ("limit", {"at_ns": True}, "is no whole number from 0"),
        ("limit", {"at_ns": 5, "owner": 7}, "is no text"),
        ("load", {}, "program: is missing"),
        ("load", {"program": {"name": "x"}}, "program.kind"),
        ("claim", {"owner": "run"}, "program: is missing"),
        ("counters", {"nodes": [1]}, "is no list of texts"),
    ],
)
async def test_mistakes_are_named(endpoint: str, body: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        await getattr(RunRequests(UNHEARD, FaultRequests(UNHEARD)), endpoint)(body)


async def test_only_who_holds_a_lease_may_claim() -> None:
    program = Program("x", "p2p", 0, (0, 1), 1, "seed").settings()
    requests = RunRequests(UNHEARD, FaultRequests(UNHEARD))
    for endpoint in (requests.claim, requests.load):
        with pytest.raises(RefusedError, match="run holds no lease: its programs would go on"):
            await endpoint({"program": program, "owner": "run"})


async def test_only_whose_program_it_is_may_stop_it() -> None:
    program = Program("x", "p2p", 0, (0, 1), 1, "seed").settings()
    with pytest.raises(RefusedError, match="run has no program x"):
        await RunRequests(UNHEARD, FaultRequests(UNHEARD)).stop_work({"program": program, "owner": "run"})
