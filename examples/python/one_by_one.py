"""Take the ports of a NIC down one after the other, and see what is left of the goodput into it each time.

mrcfabric up --detach
python examples/python/one_by_one.py [RUN_DIR [NIC]]     the only fabric below out/, h000
"""

import asyncio
import sys
from pathlib import Path

from mrcfabric.errors import ConfigError
from orchestrator.fabric import Fabric
from orchestrator.fabric.verbs import Verbs

MESSAGE_BYTES, MESSAGES = 1 << 18, 24


async def goodput_bps(fabric: Verbs, peer: str, nic: str) -> float:
    """From the end of the first message to the end of the last."""
    figures = {"message_bytes": MESSAGE_BYTES, "messages": MESSAGES, "window": 8}
    result = await (await fabric.start("p2p", ranks=[peer, nic], figures=figures)).finished()
    flow = result.ranks[1].flows[peer]
    return (flow["bytes"] - MESSAGE_BYTES) * 8e9 / (flow["last_ns"] - flow["first_ns"])


async def main(run_dir: str = "", nic: str = "h000") -> None:
    async with Fabric.attach(run_dir=Path(run_dir) if run_dir else None) as fabric:
        peer = next(name for name in fabric.find_nodes(tier="nic") if name != nic)
        whole_bps = await goodput_bps(fabric, peer, nic)
        print(f"all ports up     {whole_bps / 1e9:6.1f} Gb/s")
        for port in fabric.find_ports(of=nic)[:-1]:
            fault = await fabric.add_fault("nic_port_down", port)
            await fabric.reached(fault.start_ns)
            left_bps = await goodput_bps(fabric, peer, nic)
            print(f"{port:8} down    {left_bps / 1e9:6.1f} Gb/s, {left_bps / whole_bps:.0%}")
        print(f"healed: {len(await fabric.heal_all())} faults")


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except ConfigError as error:
        sys.exit(str(error))
