"""What `status` says of UET NICs."""

from dataclasses import replace
from typing import Any

from mrcfabric.glance import UetGlance
from mrcfabric.topology import Topology
from orchestrator.agent.uet_status import uet_status
from orchestrator.fabric.polling import Glances
from tests.orchestrator.live.said import SMALL, all_say, look, nic

UET = replace(SMALL, nic={"transport": "uet"}, switch={"forwarding": "ecmp"})


class Looked:
    """A fabric one NIC of which has something to tell."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.looks = 0

    async def glances(self) -> Glances:
        self.looks += 1
        head, ports, rest = nic(10_000)
        told = [head, ports, [*rest, [], [], [], list(UetGlance(3, 2, 48, 5, 0, 0, 1))]]
        return look(10_000, all_say(10_000, h000=told))

    async def live_faults(self) -> list[Any]:
        return []


async def test_the_sums_of_one_look() -> None:
    fabric: Any = Looked(UET)
    told = await uet_status(fabric)
    assert told == {
        "initiators": 3, "targets": 2, "drawn": 48, "resting": 5, "kept": 0, "frozen": 0, "planes_left": 1,
    }  # fmt: skip
    assert fabric.looks == 1


async def test_others_are_not_looked_at_for_it() -> None:
    fabric: Any = Looked(SMALL)
    assert (await uet_status(fabric), fabric.looks) == (None, 0)
