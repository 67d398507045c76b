"""Short messages over a fabric that already has silent paths: nothing else keeps the acknowledgements' paths fresh."""

import pytest

from mrcfabric.topology import Topology
from tests.nicd.core.fabric import Fabric

MESSAGE_BYTES = 3_000
DEADLINE_NS = 20_000_000


@pytest.mark.parametrize("seed", ["d", "h", "k", "l"])
@pytest.mark.parametrize(
    ("planes", "dead"), [(1, "p0-t1-0"), (2, "p0-t1-0"), (2, "p0-t0-1"), (4, "p0-t1-0"), (4, "p0-t0-1")]
)
def test_one_short_message_completes_past_a_dead_switch(planes: int, seed: str, dead: str) -> None:
    topology = Topology(
        name="silent", planes=planes, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16,
        reserve_evs_per_qp=4, seed=seed,
    )  # fmt: skip
    fabric = Fabric(topology)
    for name in topology.nic_names():
        fabric.memory(name, MESSAGE_BYTES)
    fabric.connect("h000", "h001", 100, 200)
    fabric.simulator.crash(dead, 10)
    fabric.write_all(MESSAGE_BYTES, 1)
    assert fabric.finish(DEADLINE_NS)
    fabric.verify(MESSAGE_BYTES)
    assert fabric.errors() == []
