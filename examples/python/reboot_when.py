"""Attach to a running fabric, train on it, and reboot a T1 as soon as the first steps are done: nobody should notice.

mrcfabric up --detach
python examples/python/reboot_when.py [RUN_DIR]     the only fabric below out/
"""

import asyncio
import sys
from pathlib import Path

from mrcfabric.errors import ConfigError
from orchestrator.fabric import Fabric

STEPS = 20
AWAY_NS = 200_000


async def main(run_dir: str = "") -> None:
    async with Fabric.attach(run_dir=Path(run_dir) if run_dir else None) as fabric:
        watch = await fabric.watch()
        training = await fabric.start("training", figures={"steps": STEPS, "buckets": 2, "bucket_bytes": 1 << 18})
        await watch.until("steps", of=training.program.name, at_least=3)
        [t1] = fabric.find_nodes(tier="t1", mode="one")
        async with fabric.held():
            fault = await fabric.add_fault("switch_reboot", t1, for_ns=AWAY_NS, title="maintenance, unannounced")
        print(f"{t1} is away from {fault.start_ns / 1000:.0f} to {fault.end_ns / 1000:.0f} us")
        result = await training.finished()
        await watch.look()
        step_ns = watch.figure("step_time", of=training.program.name, reduce="p50")
        print(f"{len(result.ranks)} ranks, {STEPS} steps, the median took {(step_ns or 0) / 1000:.1f} us")
        assert watch.finding("qp_errors", at_most=0).held
        assert sum(rank.bytes_wrong for rank in result.ranks) == 0


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except ConfigError as error:
        sys.exit(str(error))
