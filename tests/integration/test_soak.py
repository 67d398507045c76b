"""A small fabric under work, faults and looks for long: nothing grows without end, nothing comes late or is lost.

The length is that of `MRCFABRIC_SOAK_S`, in seconds of wall time; twenty without it. `pytest -s` shows figures.
"""

import asyncio
import itertools
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bench.processes import pss_mb
from mrcfabric.topology import Topology
from orchestrator.agent.scrape import page_of_all
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import Fault, Window
from tests.orchestrator.running import DEADLINE_S
from tests.support.wait import eventually

pytestmark = [pytest.mark.integration, pytest.mark.long(22)]

SOAK_S = float(os.environ.get("MRCFABRIC_SOAK_S", "20"))
SHAPE = Topology(name="soak", planes=4, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1)
FAULTS: tuple[tuple[str, str, dict[str, int]], ...] = (
    ("link_down", "p0-t0-0~p0-t1-1", {}),
    ("loss", "p1-t0-0~p1-t1-0", {"share_ppm": 20_000}),
    ("delay", "p2-t0-1~p2-t1-1", {"delay_ns": 5_000}),
    ("gray", "p3-t0-0~p3-t1-1", {}),
    ("nic_port_down", "h001:1", {}),
)
LASTS_NS = 60_000
GROWTH = 1.05


async def again_and_again(work: Callable[[], Awaitable[Any]], pause_s: float) -> None:
    while True:
        await work()
        await asyncio.sleep(pause_s)


def memory_of(fabric: Fabric) -> dict[int, float]:
    """MB by process."""
    children = {member.child.pid for member in fabric.daemons.members.values() if member.child is not None}
    return {pid: pss_mb(pid) for pid in children}


@pytest.mark.parametrize("pack", ["none", "cores"])
async def test_nothing_grows_and_nothing_is_lost(tmp_path: Path, pack: str) -> None:
    async with Fabric.launch(SHAPE, tmp_path / "run", pack=pack) as fabric:  # type: ignore[arg-type]
        await fabric.start("permutation")
        looking = [
            asyncio.create_task(again_and_again(lambda: page_of_all(fabric), 2.0)),
            asyncio.create_task(again_and_again(fabric.glances, 0.2)),
        ]
        begun_s, half = time.monotonic(), dict[int, float]()
        for turn, (kind, target, figures) in enumerate(itertools.cycle(FAULTS)):
            gone_s = time.monotonic() - begun_s
            if gone_s >= SOAK_S:
                break
            if not half and gone_s >= SOAK_S / 2:
                half = memory_of(fabric)
            name = f"f{turn % 7}"

            def beginning(
                at_ns: int, name: str = name, kind: str = kind, target: str = target, figures: Any = figures
            ) -> Fault:
                return Fault(name, kind, (target,), (Window(at_ns, at_ns + LASTS_NS, figures),))

            fault = await fabric.inject_soon(beginning)
            await eventually(lambda end_ns=fault.end_ns: fabric.now_ns() >= end_ns, DEADLINE_S)
        end = memory_of(fabric)
        begun = ", ".join(f"{half[pid]:.1f} to {mb:.1f}" for pid, mb in end.items() if pid in half)
        print(f"{SOAK_S:.0f} s, {turn} faults, {fabric.now_ns()} ns; MB at half time and at the end: {begun}")
        for task in looking:
            task.cancel()
        counters = await fabric.counters(parts=("fidelity",))
        fidelity = await fabric.fidelity()
    assert fidelity["valid"], fidelity
    wrong = {
        (node, name): found["fidelity"][name]
        for node, found in counters.items()
        for name in ("late_commands", "late_frames", "host_drops", "bad_frames", "refused_frames")
        if found["fidelity"][name]
    }
    assert not wrong
    assert end.keys() == half.keys(), "nobody has died"
    # A daemon that has a process of its own adds at most what its bounded tables may still hold.
    room_mb = {pid: mb * GROWTH + 1.0 for pid, mb in half.items()}
    grown = {pid: (half[pid], end[pid]) for pid in end if end[pid] > room_mb[pid]}
    assert not grown, "MB at half time and at the end"
