"""Fabrics that really run, for tests: a small one as an object or behind the command line, and ways to look at it."""

import contextlib
import re
import subprocess
from pathlib import Path
from typing import Any

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.topology import Topology
from orchestrator.api.work import Work
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import once
from orchestrator.process import ports, run_folder
from tests.support.wait import eventually, eventually_true
from tests.support.warm_command import MRCFABRIC, WARM

__all__ = ["MRCFABRIC"]  # beside what is defined here

ROOT = Path(__file__).parents[2]
DEADLINE_S = 30.0
SMALL = Topology(
    name="small", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16, reserve_evs_per_qp=4,
    dilation=500,
)  # fmt: skip
"""Slower than it could go: these tests wait for processes mostly, and a fabric at work takes the CPU from them."""
SMALL_FLAGS = ["--planes", "2", "--t0", "2", "--t1", "2", "--nics-per-t0", "1", "--name", "small"]
T0, T1 = "p1-t0-0", "p0-t1-1"
MESSAGE_BYTES = 1 << 20
COMMAND_WALL_S = 60.0


def is_gone(pid: int) -> bool:
    """Whether a process has ended (a zombie that its parent has not reaped counts)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def given_back(count: int, base: int, pids: list[int]) -> bool:
    """Whether a block of ports is free again, or has been taken by a process that is none of `pids`.

    Tests run side by side, and the next one may have been faster.
    """
    try:
        ports.allocate(count, base).close()
    except ConfigError as refused:
        taken = taken_by(str(refused))
        return taken is not None and taken not in pids
    return True


def taken_by(refusal: str) -> int | None:
    """The process that, as a refusal of ports says, has reserved them or is bound to one of them."""
    named = re.search(r"(?:are reserved|is in use) by pid (\d+)", refusal)
    return None if named is None else int(named[1])


# As an object.


def pids_of(fabric: Fabric) -> list[int]:
    """Every process of the fabric, the fork server last."""
    pids = [member.child.pid for member in fabric.daemons.members.values() if member.child is not None]
    return [*pids, fabric.state()["forkserver_pid"]]


async def carrier(fabric: Fabric, nic: str, plane: int) -> int:
    """1 when the NIC sees carrier on a port, 0 when not."""
    counters = await fabric.call(nic, "counters")
    return int(counters["core"]["ports"][str(plane)]["carrier"])


async def broken(fabric: Fabric, kind: str, target: str, **figures: Any) -> str:
    """Have a fault happen as soon as it can, and wait until it has; its id."""
    fault = await fabric.inject_soon(lambda at_ns: once(kind, target, at_ns=at_ns, **figures))
    await eventually(lambda: fabric.now_ns() >= fault.start_ns, DEADLINE_S)
    return fault.id


async def healed(fabric: Fabric, fault_id: str) -> None:
    """End a fault, and wait until that has happened."""
    rest = await fabric.heal(fault_id)
    await eventually(lambda: rest is None or fabric.now_ns() >= rest.end_ns, DEADLINE_S)


async def connect(fabric: Fabric) -> dict[str, Any]:
    """One QP from h000 to h001; returns the arguments of a write over it, but for the `wr_id`."""
    regions = {}
    for nic, peer_index in (("h000", 1), ("h001", 0)):
        regions[nic] = await fabric.command(nic, "register_memory", {"va": 0, "length": MESSAGE_BYTES})
        await fabric.command(nic, "create_qp", {"qpn": 5})
        peer = {"qpn": 5, "peer_index": peer_index, "peer_qpn": 5, "psn_send": 0, "psn_receive": 0}
        await fabric.command(nic, "connect_qp", peer)
    for nic in ("h000", "h001"):
        await fabric.command(nic, "modify_qp", {"qpn": 5, "state": "rts"})
    region, r_key = regions["h000"]["region_id"], regions["h001"]["r_key"]
    return {"qpn": 5, "local_region": region, "local_va": 0, "length": MESSAGE_BYTES, "remote_va": 0, "r_key": r_key}


async def idle_totals(fabric: Fabric) -> dict[str, int]:
    """The totals once nothing is pending: everything delivered, every path good again."""
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    return await fabric.totals()


async def totals_when_placed(fabric: Fabric, size: int) -> dict[str, int]:
    """The totals once so many bytes have arrived; bad paths may still be probed."""

    async def placed() -> bool:
        return (await fabric.totals())["bytes_placed"] >= size

    await eventually_true(placed, DEADLINE_S)
    return await fabric.totals()


async def verified(fabric: Fabric) -> int:
    """How many bytes have come from one NIC to the other and are right, of a message that it sends now."""
    work: Work | None = None
    while work is None:
        with contextlib.suppress(RefusedError):  # it went on faster than it was seen to do, and nobody could be in time
            work = await fabric.start("p2p", ranks="all", figures={"messages": 1})
    ranks = (await work.finished()).ranks
    assert sum(rank.bytes_wrong for rank in ranks) == 0
    return sum(rank.bytes_verified for rank in ranks)


# Behind the command line.


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`mrcfabric ARGUMENTS` in a folder, as a process of its own that has nothing to import."""
    return WARM.run(arguments, folder, COMMAND_WALL_S)


def ask(folder: Path, *arguments: str) -> str:
    """What a command that succeeds prints."""
    done = run(folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fails(folder: Path, *arguments: str, code: int = 2) -> str:
    """What a command that fails says: one line."""
    done = run(folder, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def state_of(folder: Path) -> dict[str, Any]:
    """The state of the small fabric that runs in a folder."""
    state = run_folder.read_state(folder / "out" / "small")
    assert state is not None
    return state


def processes_of(folder: Path) -> list[int]:
    """Its processes: the agent, the fork server, the daemons."""
    state = state_of(folder)
    agent = run_folder.holder_pid(folder / "out" / "small")
    assert agent is not None
    return [agent, state["forkserver_pid"], *(node["pid"] for node in state["nodes"].values())]
