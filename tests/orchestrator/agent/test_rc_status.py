"""What `status` says of RC NICs; `tests/orchestrator/cli/commands/test_pauses.py` has it of a fabric that runs."""

from dataclasses import replace
from typing import Any

from mrcfabric.topology import Topology
from orchestrator.agent.rc_status import rc_status
from orchestrator.fabric.polling import Glances
from tests.orchestrator.live.said import SMALL, all_say, look
from tests.orchestrator.live.test_rc_view import RC, rc_nic


class Looked:
    """A fabric that is looked at: 10 us of fabric time from look to look, unless it sleeps."""

    def __init__(self, topology: Topology, state: str = "run") -> None:
        self.topology = topology
        self.state = state
        self.looks = 0

    async def glances(self) -> Glances:
        self.looks += self.state == "run" or not self.looks
        now_ns = 10_000 * self.looks
        return look(now_ns, all_say(now_ns, h000=rc_nic(now_ns, cnps_sent=7 * self.looks)), state=self.state)

    async def live_faults(self) -> list[Any]:
        return []


async def test_rates_are_of_two_looks() -> None:
    fabric: Any = Looked(RC)
    told = await rc_status(fabric)
    assert told is not None
    assert (fabric.looks, told["span_ns"], told["paused"], told["states"]["rts"]) == (2, 10_000, 0, 2)
    assert told["cnps_sent_per_s"] == 700_000


async def test_a_fabric_that_sleeps_is_looked_at_once() -> None:
    fabric: Any = Looked(RC, "sleep")
    told = await rc_status(fabric)
    assert told is not None
    assert (fabric.looks, told["span_ns"], told["cnps_sent_per_s"]) == (1, 0, 0.0)


async def test_other_nics_are_not_asked() -> None:
    fabric: Any = Looked(replace(SMALL, nic={}))
    assert (await rc_status(fabric), fabric.looks) == (None, 0)
