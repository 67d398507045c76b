"""A few kinds of fault on real daemons: told in advance, in force at their instants, gone at their ends."""

import asyncio
from typing import Any

import pytest

from mrcfabric.control import NoAnswerError
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import once
from tests.orchestrator.running import (
    DEADLINE_S,
    MESSAGE_BYTES,
    SMALL,
    T1,
    broken,
    connect,
    healed,
    idle_totals,
    totals_when_placed,
)
from tests.support.wait import eventually

pytestmark = pytest.mark.integration
FAR_NS = 10_000_000


async def core(fabric: Fabric, node: str) -> dict[str, Any]:
    answer: dict[str, Any] = (await fabric.call(node, "counters"))["core"]
    return answer


async def test_a_message_crosses_what_is_lossy_frozen_and_wrong(fabric: Fabric) -> None:
    write = await connect(fabric)
    # Fabric time would go on while daemons are told of one after the other.
    async with fabric.held() as held_ns:
        at_ns, end_ns = held_ns + 1, held_ns + FAR_NS
        faults = (
            once("loss", f"p0-t0-0>{T1}", at_ns=at_ns, until_ns=end_ns, share_ppm=300_000, burst_packets=4),
            once("duplication", f"p0-t0-0>{T1}", at_ns=at_ns, until_ns=end_ns, share_ppm=300_000),
            once("switch_freeze", "p1-t1-0", at_ns=at_ns, until_ns=end_ns),
            once("ecn_misconfigured", "p1-t0-0", at_ns=at_ns, until_ns=end_ns, min_bytes=0, max_bytes=1),
            once("trimming_off", "p0-t0-0", at_ns=at_ns, until_ns=end_ns),
        )
        await asyncio.gather(*map(fabric.inject, faults))
        assert len(fabric.faults()) == len(faults)
    # They are in force once the first node is there; the last one comes later.
    await eventually(lambda: fabric.now_ns() >= at_ns, DEADLINE_S)
    assert len(fabric.active_faults()) == len(faults)
    assert (await core(fabric, "p1-t1-0"))["forwarding"] == 0
    await fabric.command("h000", "post_write", {**write, "wr_id": 1})
    await totals_when_placed(fabric, MESSAGE_BYTES)
    async with fabric.held() as held_ns:
        for fault in fabric.faults():
            await fabric.heal(fault.id, held_ns + 1)
    await eventually(lambda: fabric.faults() == [], DEADLINE_S)
    totals = await idle_totals(fabric)
    assert totals["bytes_placed"] == MESSAGE_BYTES
    assert totals["qp_errors"] == 0
    port = next(end.port for end in SMALL.ports("p0-t0-0") if end.peer == T1)
    uplink = (await core(fabric, "p0-t0-0"))["ports"]
    assert uplink[port]["drops"]["loss"] > 0
    frozen = await core(fabric, "p1-t1-0")
    assert frozen["drops"]["frozen"] > 0
    assert frozen["forwarding"] == 1
    assert fabric.faults() == []
    assert (await fabric.fidelity())["late_commands"] == 0


async def test_a_daemon_that_is_cut_off_hears_nobody_but_whoever_heals_it(fabric: Fabric) -> None:
    fault = await broken(fabric, "control_cut", "h000")
    with pytest.raises(NoAnswerError):
        await fabric.call("h000", "status", timeout_s=0.3)
    await broken(fabric, "nic_port_down", "h000:1")
    await healed(fabric, fault)
    assert (await core(fabric, "h000"))["ports"]["1"]["carrier"] == 0
