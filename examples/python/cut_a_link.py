"""Launch a small fabric, all-reduce over it, cut a link meanwhile, and see that not a byte was lost.

python examples/python/cut_a_link.py [RUN_DIR]
"""

import asyncio
import sys
from pathlib import Path

from mrcfabric.topology import Topology
from orchestrator.fabric import Fabric

SHAPE = Topology(
    name="cut-a-link", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=32, reserve_evs_per_qp=8
)


async def main(run_dir: Path | None = None) -> None:
    async with Fabric.launch(SHAPE, run_dir) as fabric:
        work = await fabric.start("ring_all_reduce", figures={"bucket_bytes": 1 << 20, "steps": 8})
        [link] = fabric.find_links(tier="t0-t1", mode="one")
        async with fabric.fault("link_down", link) as fault:
            print(f"{link} is down from {fault.start_ns / 1000:.0f} us on")
            result = await work.finished()
        totals = await fabric.totals()
        verified = sum(rank.bytes_verified for rank in result.ranks)
        print(f"{verified} bytes verified, {totals['retransmits']} packets sent again")
        assert totals["qp_errors"] == 0
        assert sum(rank.bytes_wrong for rank in result.ranks) == 0


if __name__ == "__main__":
    asyncio.run(main(*map(Path, sys.argv[1:])))
