"""A launched fabric under load: real daemons, real UDP, worker processes that write, and check every byte that comes.

Everything is the product's own: `orchestrator.fabric` launches, the `traffic` workers send rounds of numbered messages
of seeded bytes over the host API with WRITE_WITH_IMM and credits, and compare what arrives. Unthrottled: fabric time
goes as fast as the horizon rule lets it. The figures of a round are payload that was verified, over wall time from the
order to send until the last worker has reported, the first packet's way and the last look included.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from bench.measure import Figure, rounded
from bench.processes import CpuMeter
from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_S
from orchestrator.fabric import Fabric
from orchestrator.hosts.placement.layout import Pack
from orchestrator.runs.worker_placement import processes_of
from orchestrator.workers.group import Member, WorkerGroup, started_group
from orchestrator.workers.payload import CHECKED, SEEDED

T = TypeVar("T")

MESSAGE_BYTES = 1 << 18
DEPTH = 16
"""Messages on their way or waiting to be looked at, per flow."""
WARM_UP_MESSAGES = 48
ROUNDS = 5
ROUND_S = 1.5
"""What a measured round should take, by the speed of the warm-up; a round has a fixed number of messages."""
FLOW_MESSAGES_MIN = 32


@dataclass(frozen=True, slots=True)
class Flow:
    """Who sends to whom, by NIC number."""

    source: int
    target: int


@dataclass(slots=True)
class _Round:
    """What one round came to."""

    wall_s: float
    fabric_ns: int
    payload_bytes: int
    cpu_s: float
    """Of all processes of the fabric together."""
    shares: dict[str, float]

    @property
    def bytes_per_s(self) -> float:
        return self.payload_bytes / self.wall_s


def _members(fabric: Fabric, flows: Sequence[Flow]) -> list[Member]:
    """One worker per NIC that takes part; members are numbered in the order of the NICs' numbers."""
    nics = sorted({nic for flow in flows for nic in (flow.source, flow.target)})
    number = {nic: place for place, nic in enumerate(nics)}
    peers: dict[int, set[int]] = {nic: set() for nic in nics}
    for flow in flows:
        peers[flow.source].add(number[flow.target])
        peers[flow.target].add(number[flow.source])
    names = list(fabric.topology.nic_names())
    arguments = {"area_bytes": MESSAGE_BYTES * DEPTH, "size_max": MESSAGE_BYTES, "seed": "bench"}
    return [
        Member(names[nic], fabric.workers.verbs_path(names[nic]), "traffic", tuple(sorted(peers[nic])), arguments)
        for nic in nics
    ]


async def _round(fabric: Fabric, group: WorkerGroup, flows: Sequence[Flow], turn: int, messages: int) -> _Round:
    """Every flow carries `messages`. Raises RuntimeError when a byte is wrong or missing."""
    names = list(fabric.topology.nic_names())
    number = {member.name: place for place, member in enumerate(group.members)}
    to = {number[names[flow.source]]: number[names[flow.target]] for flow in flows}
    of = {target: source for source, target in to.items()}
    meter, fabric_ns, started_s = CpuMeter(os.getpid()), fabric.now_ns(), time.perf_counter()
    for place in range(len(group.members)):
        group.tell(
            place, "round", turn=turn, to=to.get(place), size=MESSAGE_BYTES, messages_out=messages,
            messages_in=messages, depth=DEPTH, source=SEEDED, sink=CHECKED, **{"from": of.get(place)},
        )  # fmt: skip
    reports = await group.hear_all("round")
    wall_s = time.perf_counter() - started_s
    received = sum(report["received"] for report in reports)
    wrong = sum(report["wrong"] for report in reports)
    if wrong or received != len(flows) * messages * MESSAGE_BYTES:
        raise RuntimeError(f"{wrong} wrong bytes, {received} received")
    return _Round(wall_s, fabric.now_ns() - fabric_ns, received, *meter.used())


async def _rounds(fabric: Fabric, flows: Sequence[Flow]) -> list[_Round]:
    async with started_group(_members(fabric, flows), processes_of(fabric.workers, "worker")) as group:
        warm = await _round(fabric, group, flows, 0, WARM_UP_MESSAGES)
        per_flow = warm.bytes_per_s * ROUND_S / MESSAGE_BYTES / len(flows)
        messages = max(FLOW_MESSAGES_MIN, round(per_flow))
        return [await _round(fabric, group, flows, 1 + turn, messages) for turn in range(ROUNDS)]


async def _measured(topology: Topology, flows: Sequence[Flow], pack: Pack) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="mrcfabric-bench-") as folder:
        async with Fabric.launch(topology, Path(folder) / "run", pack=pack) as fabric:
            rounds = await _rounds(fabric, flows)
            totals, fidelity = await fabric.totals(), await fabric.fidelity()
            processes = len(fabric.layout.processes)
    if not fidelity["valid"]:
        raise RuntimeError(f"the run is not valid: {fidelity}")
    return {**_figures(topology, flows, rounds), "processes": processes, "totals": totals, "fidelity": fidelity}


def _figures(topology: Topology, flows: Sequence[Flow], rounds: Sequence[_Round]) -> dict[str, Any]:
    """What the rounds come to; shares and dilation are those of the median round."""
    rate = Figure(tuple(one.bytes_per_s for one in rounds))
    middle = min(rounds, key=lambda one: abs(one.bytes_per_s - rate.median))
    pps = Figure(tuple(one.bytes_per_s / topology.mtu_bytes for one in rounds))
    line_rate_bytes = len({flow.source for flow in flows}) * topology.planes * topology.rate_bps / 8
    return {
        "pps": rounded(pps.median),
        "gbps": rounded(rate.median * 8 / 1e9),
        "dilation": rounded(middle.wall_s * NS_PER_S / middle.fabric_ns),
        "line_rate_share": rounded(middle.payload_bytes * NS_PER_S / middle.fabric_ns / line_rate_bytes),
        # Hardly depends on what else runs on the machine, as wall time does.
        "cpu_us_per_packet": rounded(middle.cpu_s * 1e6 * topology.mtu_bytes / middle.payload_bytes),
        "cpu_shares": middle.shares,
        "switches": topology.switches,
        "bytes_verified": sum(one.payload_bytes for one in rounds),
        "detail": {"pps": pps.record()},
    }


def measured(topology: Topology, flows: Sequence[Flow], pack: Pack) -> dict[str, Any]:
    """Launch the topology, run the flows, take it down; figures of the median round."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measured(topology, flows, pack))


def late_frames(result: Mapping[str, Any]) -> int:
    """Frames that came after their stamp had passed, of a result of `measured`."""
    fidelity = result["fidelity"]
    return round(float(fidelity["late_share"]) * int(fidelity["frames"]))
