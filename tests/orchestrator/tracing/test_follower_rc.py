"""Following packets of RoCE through lossless daemons on real UDP: the journeys of virtual time, and of a capture."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.choice import Choice
from mrcfabric.packet_filter import PacketFilter
from mrcfabric.topology import Topology
from mrcfabric.units import serialization_ns
from mrcfabric.wire.layout import PSN_MASK
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import parse
from orchestrator.captures.taps import FabricTaps, Heard
from orchestrator.captures.wires import links_meant, wires_of
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from orchestrator.tracing.follower import Follower, choice_of
from orchestrator.tracing.journey import Hop, Journey
from tests.support.scripts import TOLD_NS, given, incast
from tests.support.tracing import PAUSING, told
from tests.support.wait import eventually, eventually_true

REAL = Topology.from_dict(
    {**PAUSING.to_dict(), "name": "followed-roce", "t1_per_plane": 2, "nics_per_t0": 2,
     "switch": {**PAUSING.switch, "pfc_xoff_bytes": 20_000}}
)  # fmt: skip
BEGIN_NS = 400_000
STORM = BEGIN_NS + 9_000, BEGIN_NS + 59_000
FAULT = once("pause_storm", "h000:0", at_ns=STORM[0], until_ns=STORM[1])
FRAME_NS = serialization_ns(64 + 20, REAL.rate_bps) + REAL.ports("h000")[0].delay_ns
SCRIPT = incast(REAL, 1 << 16, start_ns=BEGIN_NS)
PACKETS = 3 * (1 << 16) // REAL.mtu_bytes

WIRES = wires_of(REAL, links_meant(REAL, (), "both", ()))


def virtual(until: int) -> tuple[list[Journey], dict[str, Any]]:
    fabric = SimulatedFabric(REAL, keep=0)
    fabric.follow(Choice())
    for step in SCRIPT:
        fabric.command(step.node, step.op, step.args, step.at_ns)
    fabric.inject(FAULT)
    fabric.run(until)
    return told(fabric), {name: fabric.traces(name)[-1].summary() for name in REAL.node_names()}


async def everything(taps: FabricTaps) -> list[Heard]:
    """All packets that the taps have kept; a node that is slow to answer is asked again."""
    heard: list[Heard] = []

    async def told_all() -> bool:
        heard.extend(await taps.look())
        return not taps.silent

    await eventually_true(told_all, deadline_s=30)
    return [*heard, *taps.rest()]


def hops(journeys: list[Journey], node: str) -> list[Hop]:
    return [hop for one in journeys for attempt in one.attempts for hop in attempt.way.hops if hop.node == node]


def check_pauses(journeys: list[Journey], heard: list[Heard]) -> None:
    """The storm held back what waited for h000, for exactly as long as its frames said, and so on up to the NICs."""
    bounds = STORM[0] + FRAME_NS, STORM[1] + FRAME_NS
    last = [hop for hop in hops(journeys, "p0-t0-0") if hop.port == 0]
    held = [hop for hop in last if hop.pauses]
    assert held
    for hop in last:
        assert hop.start_ns is not None
        waited = max(hop.at_ns, bounds[0]), min(hop.start_ns, bounds[1])
        assert [(one.since_ns, one.until_ns) for one in hop.pauses] == ([waited] if waited[0] < waited[1] else [])
        assert {(cause.node, cause.why) for one in hop.pauses for cause in one.causes} <= {("h000", "storm")}
    far = [pause for hop in hops(journeys, "p0-t1-0") + hops(journeys, "p0-t1-1") for pause in hop.pauses]
    assert far
    assert any([cause.node for cause in pause.causes] == ["p0-t0-0", "h000"] for pause in far)
    frames = [(one.at_ns, parse(one.data)) for one in heard if isinstance(one.data, ControlFrame)]
    ends = {at_ns for at_ns, frame in frames if frame is not None and frame.quanta[3] == 0}
    begins = {at_ns for at_ns, frame in frames if frame is not None and frame.quanta[3]}
    for pause in far:
        assert pause.until_ns in ends, "the capture has the frame that let it go on"
    assert bounds[0] in begins
    assert bounds[1] in ends


def check_hops(journeys: list[Journey], heard: list[Heard]) -> None:
    """Every hop of every way is a packet of the capture, at that instant."""
    packets = {
        (WIRES[one.wire].sender, WIRES[one.wire].port, one.at_ns)
        for one in heard
        if not isinstance(one.data, ControlFrame)
    }
    for journey in journeys:
        for attempt in journey.attempts:
            for way in (attempt.way, *attempt.answers):
                assert {(hop.node, hop.port, hop.arrival_ns) for hop in way.hops} <= packets


@pytest.mark.integration
@pytest.mark.slow
async def test_real_udp_tells_the_stories_of_virtual_time_and_of_the_capture(tmp_path: Path) -> None:
    async with Fabric.launch(REAL, tmp_path / "run", trace=True, limit_ns=TOLD_NS) as fabric:
        taps = FabricTaps(fabric, WIRES, PacketFilter(), 256)
        await taps.begin()
        follower = Follower(fabric, Choice(), PACKETS, wall_s=60)
        following = asyncio.create_task(follower.follow())
        await eventually(lambda: follower.ready, deadline_s=20)
        orders = await given(fabric, SCRIPT)
        await fabric.inject(FAULT)
        await fabric.limit(None)
        await asyncio.gather(*orders)
        journeys = await following
        await eventually(lambda: fabric.time.state == "sleep", deadline_s=60)
        heard = await everything(taps)
        await taps.end()
        traces = {name: await fabric.call(name, "trace") for name in REAL.node_names()}
        reached = max([(await fabric.call(name, "status"))["now_ns"] for name in REAL.node_names()])
        assert (await fabric.fidelity())["valid"]
        (row,) = [row for row in await fabric.call("h001", "qp_table") if row["qpn"] == 101]
        choice = await choice_of(fabric, "h001", 101, None, 1)
        assert (choice.destination, choice.destination_qpn) == (row["peer_index"], row["peer_qpn"])
        assert choice.first == row["psn_next"] & PSN_MASK
    expected, digests = virtual(reached)
    assert traces == digests, "who follows packets changes nothing"
    assert (follower.lost, follower.left_out) == (0, (0, 0))
    assert len(journeys) == PACKETS
    found = [one.record() for one in journeys]
    for one in found:
        assert one.pop("source_qpn") is not None
    foretold = [one.record() for one in expected]
    for one in foretold:
        one.pop("source_qpn")
    assert found == foretold
    check_pauses(journeys, heard)
    check_hops(journeys, heard)
