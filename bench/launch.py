"""From the command to every daemon ready, and what the daemons weigh: `mrcfabric up --detach` of the demo's fabric.

The time is that of the command as a user types it, interpreter and imports included: it returns when every daemon is
ready. Then every node's metrics are fetched once, as Prometheus would, and the kernel is asked for memory, shared pages
divided among those who share them. `mrcfabric down` must leave no process. Fabrics of 100 and of 512 daemons are only
started and ended, in the packing that `auto` takes for them.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from bench.measure import Figure, rounded
from bench.processes import by_kind, pss_mb

RUNS = 3
LARGE_RUNS = 2
LARGE = {
    100: {"planes": 8, "t0": 4, "t1": 4, "nics-per-t0": 9},
    512: {"planes": 8, "t0": 16, "t1": 16, "nics-per-t0": 16},
}
"""Options of `up` for so many daemons."""
GONE_WALL_S = 10.0
COMMAND = Path(sys.executable).with_name("mrcfabric")


def mrcfabric(*arguments: str) -> None:
    """Run the command. Raises RuntimeError with its last words when it fails."""
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"mrcfabric {arguments[0]}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")


def _scrape(url: str) -> int:
    """Fetch one page; returns its bytes."""
    # Straight to loopback: a proxy of the environment is not asked.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as answer:
        return len(answer.read())


def _weigh(state: dict[str, Any]) -> dict[str, float]:
    """MB per kind of daemon, the median, after every node was scraped once."""
    started_s = time.monotonic()
    page_bytes = [_scrape(f"{state['http']}/metrics/{node}") for node in state["nodes"]]
    scrape_s = time.monotonic() - started_s
    kinds = by_kind({node["pid"] for node in state["nodes"].values()})
    found = {f"pss_mb_per_{kind}": statistics.median(map(pss_mb, pids)) for kind, pids in kinds.items()}
    found["pss_mb_all_daemons"] = sum(pss_mb(pid) for pids in kinds.values() for pid in pids)
    return {**found, "scrape_all_s": scrape_s, "scrape_bytes": sum(page_bytes)}


def _gone(pids: set[int]) -> bool:
    deadline = time.monotonic() + GONE_WALL_S
    while time.monotonic() < deadline:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.01)
    return False


def launched(pack: str, *shape: str, weigh: bool = True) -> dict[str, float]:
    """Up, scrape, weigh, down, once; `shape`: options of `up`, by default the demo's fabric."""
    with tempfile.TemporaryDirectory(prefix="mrcbench-") as folder:
        run_dir = Path(folder) / "run"
        started_s = time.monotonic()
        mrcfabric("up", "--detach", "--pack", pack, *shape, "--run-dir", str(run_dir))
        seconds = time.monotonic() - started_s
        try:
            state = json.loads((run_dir / "state.json").read_text())
            found = {"seconds": seconds, "daemons": len(state["nodes"]), **(_weigh(state) if weigh else {})}
        finally:
            started_s = time.monotonic()
            mrcfabric("down", "--run-dir", str(run_dir))
        found["down_seconds"] = time.monotonic() - started_s
        pids = {node["pid"] for node in state["nodes"].values()}
        if not _gone(pids):
            raise RuntimeError("down left processes behind")
    return found


def _large(daemons: int) -> Figure:
    """Seconds until so many daemons are ready. Raises RuntimeError if the shape has another number of them."""
    shape = [word for name, count in LARGE[daemons].items() for word in (f"--{name}", str(count))]
    runs = [launched("auto", *shape, weigh=False) for _ in range(LARGE_RUNS)]
    if {round(one["daemons"]) for one in runs} != {daemons}:
        raise RuntimeError(f"{runs[0]['daemons']:.0f} daemons were ready, not {daemons}")
    return Figure(tuple(one["seconds"] for one in runs))


def run() -> dict[str, Any]:
    """Section `launch`: a process per daemon, once packed by plane and by cores, and many daemons."""
    runs = [launched("none") for _ in range(RUNS)]
    figures = {name: Figure(tuple(one[name] for one in runs)) for name in runs[0]}
    packed, cores = launched("plane"), launched("cores")
    large = {f"seconds_{daemons}": _large(daemons) for daemons in LARGE}
    figures |= large
    return {
        **{name: rounded(figure.median) for name, figure in figures.items()},
        "seconds_packed": rounded(packed["seconds"]),
        "pss_mb_all_daemons_packed": rounded(packed["pss_mb_all_daemons"]),
        "seconds_cores": rounded(cores["seconds"]),
        "pss_mb_all_daemons_cores": rounded(cores["pss_mb_all_daemons"]),
        "detail": {name: figure.record() for name, figure in figures.items()},
    }
