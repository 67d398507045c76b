"""Programs on daemons: the same trace and the same results as in virtual time, everything checked."""

from pathlib import Path

import pytest

from mrcfabric.topology import Topology
from orchestrator.fabric import Fabric
from tests.support.hosted import Hosted, program
from tests.support.wait import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SMALL = Topology(name="programs", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16,
                 reserve_evs_per_qp=8, dilation=2_000)  # fmt: skip
TOLD_NS = 300_000
"""After the commands have reached their daemons."""
BEGIN_NS = 310_000
TRAINING = {"steps": 2, "buckets": 2, "bucket_bytes": 40_000, "compute_ns": 5_000, "jitter_ns": 900}
WORK = (
    program("training", 4, TRAINING, begin_ns=BEGIN_NS),
    program("incast", 4, {"message_bytes": 20_000, "messages": 5}, begin_ns=BEGIN_NS, name="incast", number=2),
)


@pytest.mark.timeout(120)
async def test_daemons_run_programs_as_virtual_time_does(tmp_path: Path) -> None:
    async with Fabric.launch(SMALL, tmp_path / "run", trace=True) as fabric:
        for work in WORK:
            await fabric.load(work, at_ns=TOLD_NS)
        await eventually(lambda: fabric.now_ns() > BEGIN_NS and fabric.time.state == "sleep", deadline_s=60)
        nics = SMALL.nic_names()
        traces = {name: await fabric.call(name, "trace") for name in SMALL.node_names()}
        records = [record for nic in nics for record in await fabric.call(nic, "programs")]
        progress = await fabric.call("h001", "progress")
        reached = max([(await fabric.call(name, "status"))["now_ns"] for name in SMALL.node_names()])
        fidelity = await fabric.fidelity()
    assert (fidelity["late_share"], fidelity["late_commands"], fidelity["host_drops"]) == (0, 0, 0)
    assert [record["state"] for record in records] == ["done"] * 8
    assert not any(record["bytes_wrong"] for record in records)
    assert progress["work"]["steps"] == 2
    virtual = Hosted(*WORK, topology=SMALL, told_ns=TOLD_NS, keep=0)
    virtual.fabric.run(reached)
    assert [record for index in range(4) for record in virtual.host(index).records()] == records
    for name, trace in traces.items():
        assert trace == virtual.fabric.traces(name)[-1].summary(), name
