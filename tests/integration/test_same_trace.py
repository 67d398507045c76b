"""A scripted workload with a scripted crash gives the same trace, node by node, on real UDP and in virtual time.

Every transmitted byte, its arrival instant and every event of every node go into the digests. Nothing may depend on
how slowly the machine runs, so the same is asked while other programs burn every CPU.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.pause_spells import PauseBegun
from mrcfabric.topology import Topology
from mrcfabric.topology_file import with_system
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import once
from orchestrator.hosts.cluster import Cluster
from orchestrator.sim.fabric import SimulatedFabric
from tests.support.scripts import TOLD_NS, given, permutation
from tests.support.wait import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SMALL = Topology(name="same-trace", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16,
                 reserve_evs_per_qp=8)  # fmt: skip
BEGIN_NS = 300_000
CRASH_NS = BEGIN_NS + 40_000
RETURN_NS = CRASH_NS + 300_000
CUT_NS, HEAL_NS = BEGIN_NS + 60_000, BEGIN_NS + 350_000
PORT_DOWN_NS, PORT_UP_NS = BEGIN_NS + 90_000, BEGIN_NS + 260_000
FAULTS = (
    once("switch_crash", "p0-t1-1", at_ns=CRASH_NS, until_ns=RETURN_NS),
    once("link_down", "p1-t0-0~p1-t1-0", at_ns=CUT_NS, until_ns=HEAL_NS),
    once("loss", "p1-t1-1>p1-t0-1", at_ns=CUT_NS, until_ns=HEAL_NS, share_ppm=100_000),
    once("switch_freeze", "p1-t1-1", at_ns=PORT_DOWN_NS, until_ns=PORT_UP_NS),
    once("nic_port_down", "h001:1", at_ns=PORT_DOWN_NS, until_ns=PORT_UP_NS),
    once("delay", "p0-t0-1~p0-t1-1", at_ns=CUT_NS, until_ns=HEAL_NS, delay_ns=500, jitter_ns=1000),
    once("polarised_hash", "p0-t0-0", "p1-t0-1", at_ns=CUT_NS, until_ns=PORT_UP_NS),
    once("wrong_headroom", "p0-t0-0", "p0-t1-1", at_ns=CUT_NS, until_ns=HEAL_NS, headroom_bytes=0),
)
"""Two that overlap on one switch, two that meet a switch while it is away, two that need RoCE to do something."""
END_NS = HEAL_NS
"""The last of the script; the fabric goes to sleep some time later, when all paths are good again."""


def script() -> list[Any]:
    return permutation(SMALL, shift=2, size=1 << 20, pieces=8, start_ns=BEGIN_NS)


@contextmanager
def burning_cpus() -> Iterator[None]:
    """A program per CPU that does nothing but run."""
    program = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(program) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


async def real(run_dir: Path, cluster: Cluster | None = None, topology: Topology = SMALL) -> dict[str, Any]:
    """The traces of the daemons, and their fidelity."""
    async with Fabric.launch(topology, run_dir, cluster=cluster, trace=True, limit_ns=TOLD_NS) as fabric:
        told = await given(fabric, script())
        for fault in FAULTS:
            await fabric.inject(fault)
        await fabric.limit(None)
        await asyncio.gather(*told)
        await eventually(lambda: fabric.now_ns() > END_NS, deadline_s=90)
        await eventually(lambda: fabric.time.state == "sleep", deadline_s=60)
        answers = {name: await fabric.call(name, "trace") for name in SMALL.node_names()}
        reached = {name: (await fabric.call(name, "status"))["now_ns"] for name in SMALL.node_names()}
        fidelity = await fabric.fidelity()
        assert not fabric.lifecycle.unexpected
    return {"traces": answers, "reached": max(reached.values()), "fidelity": fidelity}


def virtual_fabric(until: int, topology: Topology = SMALL, keep: int = 0) -> SimulatedFabric:
    """The same fabric in virtual time, run up to an instant; `keep`: of how many events it tells."""
    fabric = SimulatedFabric(topology, keep=keep)
    for step in script():
        fabric.command(step.node, step.op, step.args, step.at_ns)
    for fault in FAULTS:
        fabric.inject(fault)
    fabric.run(until)
    return fabric


def virtual(until: int, topology: Topology = SMALL) -> dict[str, Any]:
    fabric = virtual_fabric(until, topology)
    assert fabric.counters("h000")["bytes_placed"] == 1 << 20
    assert any(sum(fabric.counters(name)["retransmits"].values()) for name in SMALL.nic_names())
    return {name: fabric.traces(name)[-1].summary() for name in SMALL.node_names()}


def assert_same(seen: dict[str, Any], topology: Topology = SMALL) -> None:
    """Nothing was late, and every node did what it does in virtual time."""
    fidelity = seen["fidelity"]
    assert (fidelity["late_share"], fidelity["late_commands"], fidelity["host_drops"]) == (0, 0, 0)
    expected = virtual(seen["reached"], topology)
    for name, trace in seen["traces"].items():
        assert trace == expected[name], name


@pytest.mark.parametrize("busy", [False, pytest.param(True, marks=pytest.mark.long)], ids=["calm", "busy"])
@pytest.mark.timeout(240)
async def test_real_udp_gives_the_trace_of_virtual_time(tmp_path: Path, busy: bool) -> None:
    if busy:
        with burning_cpus():
            seen = await real(tmp_path / "run")
    else:
        seen = await real(tmp_path / "run")
    assert_same(seen)


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_links_that_take_longer_one_way_than_back_change_nothing_of_that(tmp_path: Path) -> None:
    latency = {"nic_send_ns": 700, "nic_receive_ns": 90, "t0_ns": 250, "t1_ns": 1900}
    uneven = replace(SMALL, latency=latency, nic={"host_post_ns": 600, "host_complete_ns": 450})
    assert_same(await real(tmp_path / "run", topology=uneven), uneven)


ROCE: dict[str, Any] = {"forwarding": "ecmp", "trim": False, "ecn_last_hop": True}
PFC: dict[str, Any] = {"lossless": "pfc", "pfc_threshold": "static", "pfc_xoff_bytes": 6_000, "pfc_event_ns": 400}


@pytest.mark.long
@pytest.mark.parametrize(("switch", "pauses"), [(ROCE, False), ({**ROCE, **PFC}, True)], ids=["dropping", "pausing"])
@pytest.mark.timeout(240)
async def test_roce_gives_the_trace_of_virtual_time(tmp_path: Path, switch: dict[str, Any], pauses: bool) -> None:
    """Plain packets that switches hash, CNPs that slow senders, go-back-N after the crash, pauses hop by hop."""
    roce = replace(SMALL, nic={"transport": "rc", "cc": "dcqcn", "rc_timeout": 5}, switch=switch)
    assert_same(await real(tmp_path / "run", topology=roce), roce)
    fabric = virtual_fabric(END_NS, roce, keep=1_000)
    told = [event for name in SMALL.node_names() for event in fabric.traces(name)[-1].events]
    assert any(isinstance(event, PauseBegun) for event in told) == pauses
    frames = [port.get("control_frames", 0) for name in SMALL.switch_names()
              for port in fabric.counters(name)["ports"].values()]  # fmt: skip
    assert any(frames) == pauses


@pytest.mark.long
@pytest.mark.parametrize(
    ("system", "changed"),
    [
        ("uet", {}), ("uet-rccc", {}), ("uet-reps", {}), ("uet-both", {}), ("uet", {"uet_mode": "rod"}),
        ("uet", {"uet_responses_max": 2}), ("uet-rccc", {"uet_occc": True}),
    ],
)  # fmt: skip
@pytest.mark.timeout(240)
async def test_uet_gives_the_trace_of_virtual_time(tmp_path: Path, system: str, changed: dict[str, Any]) -> None:
    """Contexts that open with the first packet, entropies that switches hash, retransmissions after the crash."""
    bundle = with_system(SMALL, system)
    uet = replace(bundle, nic={**bundle.nic, **changed})
    assert_same(await real(tmp_path / "run", topology=uet), uet)


IB_NIC: dict[str, Any] = {"transport": "rc", "rc_path": "lid", "cc": "none", "rc_timeout": 5}
IB: dict[str, Any] = {"forwarding": "lft", "lossless": "credits", "shield": True, "shield_ns": 30_000, "flfn": True,
                      "vl_blocks": 130}  # fmt: skip


def infiniband(adaptive: str, nic: dict[str, Any] | None = None) -> Topology:
    """The same fabric of InfiniBand, with room for two packets in each buffer."""
    congestion = {"arn": adaptive != "off", "arn_bytes": 5_000}
    switch = {**IB, "adaptive": adaptive, "flowlet_ns": 2_000, **congestion}
    return replace(SMALL, nic={**IB_NIC, **(nic or {})}, switch=switch)


@pytest.mark.parametrize(
    ("adaptive", "nic"),
    [
        ("off", {"apm": True, "lid_lmc": 1}),
        pytest.param("flowlet", {"lid_sl": 1}, marks=pytest.mark.long),
        pytest.param("packet", {"rc_recovery": "out_of_order"}, marks=pytest.mark.long),
    ],
    ids=["tables", "flowlets", "packets"],
)
@pytest.mark.timeout(240)
async def test_infiniband_gives_the_trace_of_virtual_time(tmp_path: Path, adaptive: str, nic: dict[str, Any]) -> None:
    """Packets by LID, flow control packets, VLs, SHIELD, recovery after the crash, paths that migrate."""
    ib = infiniband(adaptive, nic)
    assert_same(await real(tmp_path / "run", topology=ib), ib)
    fabric = virtual_fabric(END_NS, ib)
    for name in SMALL.switch_names():
        ports = fabric.counters(name)["ports"].values()
        assert any(port["flow_packets"] for port in ports), name
    # The T1 whose link to a T0 was cut has told the other one, and one that is dead tells nobody.
    assert fabric.counters("p1-t1-0")["notices"]["sent"]["lost"]
    assert fabric.counters("p1-t0-1")["notices"]["heard"]["lost"]


TOPOLOGIES = {"mrc": SMALL, "ib": infiniband("off", {"apm": True, "lid_lmc": 1})}
"""For tests that compare the two kinds of cores."""
