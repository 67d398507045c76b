"""Following packets of daemons on real UDP: the same journeys as in virtual time, and what cannot be followed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.choice import Choice
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.topology import Topology
from mrcfabric.wire.layout import PSN_MASK
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from orchestrator.tracing.follower import NEXT_PSNS, Follower, choice_of, chosen_psns
from tests.support.scripts import TOLD_NS, given, permutation
from tests.support.tracing import told
from tests.support.wait import eventually

REAL = Topology(name="followed-udp", planes=2, t0_per_plane=2, t1_per_plane=1, nics_per_t0=1, evs_per_qp=16,
                reserve_evs_per_qp=8)  # fmt: skip
BEGIN_NS = 400_000
FAULT = once("loss", "p0-t0-0~p0-t1-0", at_ns=BEGIN_NS + 2_000, until_ns=BEGIN_NS + 150_000, share_ppm=300_000)
SCRIPT = permutation(REAL, shift=1, size=1 << 17, pieces=4, start_ns=BEGIN_NS)
PACKETS = 2 * (1 << 17) // REAL.mtu_bytes


def test_psns_as_typed() -> None:
    assert chosen_psns(None, 7) == chosen_psns("next", 7) == (7, NEXT_PSNS)
    assert chosen_psns("9", 7) == (9, 1)
    assert chosen_psns("0x10-0x1f", 7) == (16, 16)
    assert chosen_psns("5-9", 7) == (5, 5), "part of it is still to come"
    assert chosen_psns("3", PSN_MASK + 1 + 2) == (3, 1)
    assert chosen_psns(f"{PSN_MASK}-1", PSN_MASK - 4) == (PSN_MASK, 3), "they go round"


@pytest.mark.parametrize("text", ["x", "-1", "9-5", str(PSN_MASK + 1), "1-2-3", ""])
def test_no_psns(text: str) -> None:
    with pytest.raises(ConfigError, match="is no PSN"):
        chosen_psns(text, 0)


def test_what_has_been_sent_cannot_be_followed() -> None:
    with pytest.raises(ConfigError, match=r"PSN 6 has been sent already \(the next one is 7\)"):
        chosen_psns("6", 7)


def virtual(until: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    fabric = SimulatedFabric(REAL, keep=0)
    fabric.follow(Choice())
    for step in SCRIPT:
        fabric.command(step.node, step.op, step.args, step.at_ns)
    fabric.inject(FAULT)
    fabric.run(until)
    return [one.record() for one in told(fabric)], {
        name: fabric.traces(name)[-1].summary() for name in REAL.node_names()
    }


@pytest.mark.integration
@pytest.mark.slow
async def test_real_udp_tells_the_stories_of_virtual_time(tmp_path: Path) -> None:
    async with Fabric.launch(REAL, tmp_path / "run", trace=True, limit_ns=TOLD_NS) as fabric:
        follower = Follower(fabric, Choice(), PACKETS, wall_s=60)
        following = asyncio.create_task(follower.follow())
        await eventually(lambda: follower.ready, deadline_s=20)
        with pytest.raises(RefusedError, match="one trace at a time"):
            await Follower(fabric, Choice(), 1, wall_s=1).follow()
        orders = await given(fabric, SCRIPT)
        await fabric.inject(FAULT)
        await fabric.limit(None)
        await asyncio.gather(*orders)
        journeys = await following
        await eventually(lambda: fabric.time.state == "sleep", deadline_s=60)
        traces = {name: await fabric.call(name, "trace") for name in REAL.node_names()}
        reached = max([(await fabric.call(name, "status"))["now_ns"] for name in REAL.node_names()])
        row = (await fabric.call("h000", "qp_table"))[0]
        choice = await choice_of(fabric, "h000", row["qpn"], None, 1)
        assert (choice.destination, choice.first) == (row["peer_index"], row["psn_next"] & PSN_MASK)
        with pytest.raises(ConfigError, match="h000 has no connected QP 5"):
            await choice_of(fabric, "h000", 5, None, 1)
    expected, digests = virtual(reached)
    assert traces == digests, "who follows packets changes nothing"
    assert follower.lost == 0
    found = [one.record() for one in journeys]
    for one in found:
        assert one.pop("source_qpn") is not None
    for one in expected:
        one.pop("source_qpn")
    assert len(found) == PACKETS
    assert found == expected
