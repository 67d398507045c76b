"""Every kind of link fault, a standstill and a wrong threshold: the same trace on real UDP and in virtual time.

Some links hold packets back for longer than a link delay, also towards a switch that crashes and comes back in the
meantime. One daemon is cut off from its control channel while all this goes on.
"""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from mrcfabric.impairment import TOUCHES, Impairment
from mrcfabric.topology import Topology
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from tests.support.scripts import TOLD_NS, Step, given, permutation
from tests.support.wait import eventually

pytestmark = pytest.mark.integration

SMALL: Final = Topology(name="same-effects", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16,
                        reserve_evs_per_qp=8)  # fmt: skip
SIZE: Final = 1 << 19
BEGIN_NS: Final = 300_000
BREAK_NS, HEAL_NS = BEGIN_NS + 1_000, BEGIN_NS + 90_000
CRASH: Final = once("switch_reboot", "p0-t1-1", at_ns=BEGIN_NS + 15_000, until_ns=BEGIN_NS + 35_000)
END_NS: Final = BEGIN_NS + 100_000
IMPAIRED: Final = {
    ("h000", 0): Impairment(duplication_ppm=100_000, jitter_ns=700),
    ("h000", 1): Impairment(corruption_ppm=50_000, rate_bps=40_000_000_000),
    ("h001", 0): Impairment(reordering_ppm=200_000, reordering_ns=3_000),
    ("p0-t0-0", 1): Impairment(loss_ppm=50_000, loss_burst_packets=4),
    ("p0-t0-1", 0): Impairment(retry_ppm=100_000, retry_ns=900),
    # Towards the switch that crashes.
    ("p0-t0-0", 2): Impairment(delay_ns=30_000, delay_ppm=500_000),
    ("p0-t0-1", 2): Impairment(delay_ns=15_000, jitter_ns=10_000),
    ("p1-t0-0", 2): Impairment(gray_ppm=300_000),
    ("p1-t0-1", 1): Impairment(black_hole_usids=(SMALL.own_usid("p1-t0-0"),)),
}


def script() -> list[Step]:
    found = permutation(SMALL, shift=1, size=SIZE, pieces=4, start_ns=BEGIN_NS)
    for (node, port), impairment in IMPAIRED.items():
        for at_ns, settings in ((BREAK_NS, impairment.settings()), (HEAL_NS, {})):
            found.append(Step(at_ns, node, "set_impairment", {"port": port, "impairment": settings}))
    found += [Step(HEAL_NS - 30_000 + 10_000 * on, "p1-t1-1", "set_forwarding", {"on": on}) for on in (False, True)]
    found += [Step(BREAK_NS, "p1-t0-1", "set_ecn", {"on": None, "min_bytes": 0, "max_bytes": 0})]
    return found


async def real(run_dir: Path) -> dict[str, Any]:
    """The traces of the daemons, and their fidelity."""
    async with Fabric.launch(SMALL, run_dir, trace=True, limit_ns=TOLD_NS) as fabric:
        told = await given(fabric, script())
        await fabric.inject(CRASH)
        await fabric.call("p1-t0-0", "cut_control", {"windows": [[BREAK_NS - 1, END_NS]]})
        await fabric.limit(None)
        await asyncio.gather(*told)
        await eventually(lambda: fabric.now_ns() > END_NS, deadline_s=60)
        await eventually(lambda: fabric.time.state == "sleep", deadline_s=60)
        traces = {name: await fabric.call(name, "trace") for name in SMALL.node_names()}
        reached = [(await fabric.call(name, "status"))["now_ns"] for name in SMALL.node_names()]
        return {"traces": traces, "reached": max(reached), "fidelity": await fabric.fidelity()}


def virtual(until: int) -> SimulatedFabric:
    fabric = SimulatedFabric(SMALL, keep=0)
    for step in script():
        fabric.command(step.node, step.op, step.args, step.at_ns)
    fabric.inject(CRASH)
    fabric.run(until)
    return fabric


@pytest.mark.long
@pytest.mark.timeout(120)
async def test_faults_do_the_same_on_real_udp_as_in_virtual_time(tmp_path: Path) -> None:
    seen = await real(tmp_path / "run")
    fidelity = seen["fidelity"]
    assert (fidelity["late_share"], fidelity["late_commands"], fidelity["host_drops"]) == (0, 0, 0)
    expected = virtual(seen["reached"])
    for name, trace in seen["traces"].items():
        assert trace == expected.traces(name)[-1].summary(), name
    for nic in SMALL.nic_names():
        assert expected.counters(nic)["bytes_placed"] == SIZE
    assert expected.counters("h001")["drops"]["icrc"] > 0
    assert expected.counters("p1-t1-1")["drops"]["frozen"] > 0
    ports = [[*expected.counters(node)["ports"].values()][port] for node, port in IMPAIRED]
    assert all(sum(port["touched"][what] for port in ports) for what in TOUCHES)
    assert all(sum(port["drops"][what] for port in ports) for what in ("loss", "gray", "black_hole"))
