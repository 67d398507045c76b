"""What it takes to look at 608 busy daemons: one scrape of all metrics, `/status`, and a look of the live map.

The fabric is launched as a user does it and runs a permutation. Each figure is the median of a few looks: wall time,
and CPU of the agent and of whoever shows the map. Busy daemons use all the CPU that is left, looked at or not: what a
scrape takes of them is seen before the work begins (`scrape_at_rest`). `busy_share` is what daemons and others used of
all cores.
"""

import asyncio
import json
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

from bench.launch import mrcfabric
from bench.machine import Watch
from bench.measure import rounded
from bench.processes import cpu_s, pss_mb
from orchestrator.client.agent_fabric import AgentFabric
from orchestrator.live.live_view import LiveView
from orchestrator.web import messages

SHAPE = ("--planes", "8", "--t0", "32", "--t1", "12", "--nics-per-t0", "8")
DAEMONS = 608
PACKS = ("auto", "plane")
LOOKS = 5
SETTLE_S = 5.0
"""How long the work goes on before it is looked at."""


async def _measured(
    agent: int, daemons: Collection[int], work: Callable[[], Awaitable[int]], looks: int = LOOKS
) -> dict[str, Any]:
    """Medians over some looks. `work` returns what it got, in bytes or daemons."""
    wall, agent_s, daemons_s, own_s, got = [], [], [], [], 0
    watch = Watch()
    for _ in range(looks):
        began_s, before_s, own = time.monotonic(), cpu_s(agent), time.process_time()
        daemons_before_s = sum(map(cpu_s, daemons))
        got = await work()
        wall.append(time.monotonic() - began_s)
        agent_s.append(cpu_s(agent) - before_s)
        daemons_s.append(sum(map(cpu_s, daemons)) - daemons_before_s)
        own_s.append(time.process_time() - own)
    return {
        "wall_s": rounded(statistics.median(wall)),
        "wall_s_max": rounded(max(wall)),
        "agent_cpu_s": rounded(statistics.median(agent_s)),
        "daemons_cpu_s": rounded(statistics.median(daemons_s)),
        "viewer_cpu_s": rounded(statistics.median(own_s)),
        "got": got,
        "busy_share": watch.others()["busy_share"],
    }


async def _looked_at(run_dir: Path, state: dict[str, Any], *, busy: bool) -> dict[str, Any]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def fetch(path: str) -> bytes:
        with opener.open(state["http"] + path, timeout=60) as answer:
            body: bytes = answer.read()
        return body

    async def scrape() -> int:
        return (await asyncio.to_thread(fetch, "/metrics/all")).count(b"\nmrc_incarnation{")

    async def status() -> int:
        answer = json.loads(await asyncio.to_thread(fetch, "/status"))
        return int(answer["nodes"]) - len(answer["slow"]) - len(answer["silent"])

    async with AgentFabric.open(run_dir=run_dir) as fabric:
        view = LiveView(fabric)

        async def look() -> int:
            seen = await view.look()
            messages.snapshot(seen)
            states = [nic.state for nic in seen.nics.values()] + [switch.state for switch in seen.switches.values()]
            return len(states) - states.count("silent")

        agent, daemons = json.loads(fetch("/status"))["pid"], _pids(state)
        await look()
        scraped = await _measured(agent, daemons, scrape)
        if not busy:
            return {"scrape_at_rest": scraped}
        return {
            "scrape": scraped,
            "status": await _measured(agent, daemons, status),
            "look": await _measured(agent, daemons, look, 3 * LOOKS),
            "agent_mb": rounded(pss_mb(agent)),
        }


def _pids(state: dict[str, Any]) -> set[int]:
    return {node["pid"] for node in state["nodes"].values()}


def _of(pack: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="mrcbench-") as folder:
        run_dir = Path(folder) / "run"
        mrcfabric("up", "--detach", "--pack", pack, *SHAPE, "--run-dir", str(run_dir))
        try:
            state = json.loads((run_dir / "state.json").read_text())
            if len(state["nodes"]) != DAEMONS:
                raise RuntimeError(f"{len(state['nodes'])} daemons were ready, not {DAEMONS}")
            found = asyncio.run(_looked_at(run_dir, state, busy=False))
            mrcfabric("work", "start", "permutation", "--run-dir", str(run_dir))
            time.sleep(SETTLE_S)
            found |= asyncio.run(_looked_at(run_dir, state, busy=True))
            pids = _pids(state)
            return found | {"processes": len(pids), "daemons_mb": rounded(sum(map(pss_mb, pids)))}
        finally:
            mrcfabric("down", "--run-dir", str(run_dir))


def run() -> dict[str, Any]:
    """Section `crowd`: packed as `auto` does, and by plane."""
    packs = {pack: _of(pack) for pack in PACKS}
    best = packs[PACKS[0]]
    return {
        "scrape_wall_s": best["scrape"]["wall_s"],
        "scrape_agent_cpu_s": best["scrape"]["agent_cpu_s"],
        "scrape_daemons_cpu_s": best["scrape_at_rest"]["daemons_cpu_s"],
        "status_wall_s": best["status"]["wall_s"],
        "look_wall_s": best["look"]["wall_s"],
        "look_cpu_s": rounded(best["look"]["agent_cpu_s"] + best["look"]["viewer_cpu_s"]),
        **packs,
    }
