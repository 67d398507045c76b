"""`mrcfabric ev` and `mrcfabric events`: EVs barred and allowed, and what happened where."""

import asyncio
import json

import pytest

from orchestrator.fabric import Fabric
from tests.orchestrator.running import T1, ask, connect, fails

pytestmark = pytest.mark.integration


async def command(fabric: Fabric, *arguments: str) -> str:
    folder = fabric.folder.path
    return await asyncio.to_thread(ask, folder, *arguments, "--run-dir", str(folder))


async def test_evs_are_listed_barred_and_allowed(served: Fabric) -> None:
    assert "h000: no EVs" in await command(served, "ev", "list", "h000")
    await connect(served)
    listed = await command(served, "ev", "list", "h000")
    assert listed.splitlines()[-1] == "20 EVs: 20 good"
    rows = json.loads(await command(served, "ev", "list", "h000", "--qpn", "5", "--json"))
    assert {row["plane"] for row in rows} == {0, 1}
    assert {row["qpn"] for row in rows} == {5}
    ev = f"0x{rows[0]['ev']:08x}"
    assert f"deny: h000 QP 5 EV {ev} at" in await command(served, "ev", "deny", "h000", "5", ev)
    denied = json.loads(await command(served, "ev", "list", "h000", "--state", "denied", "--json"))
    assert [row["ev"] for row in denied] == [rows[0]["ev"]]
    await command(served, "ev", "allow", "h000", "5", ev)
    assert await command(served, "ev", "list", "h000", "--state", "denied") == "h000: no EVs in that state\n"


async def test_events_of_a_node_and_of_the_agent(served: Fabric) -> None:
    await connect(served)
    await served.nic_port("h001", 1, up=False)
    events = [json.loads(line) for line in (await command(served, "events", "h001", "--json")).splitlines()]
    kinds = [event["kind"] for event in events]
    assert kinds[:3] == ["qp_change"] * 3
    assert "port_change" in kinds
    later = await command(served, "events", "h001", "--json", "--since", str(events[-1]["n"]))
    assert later == ""
    assert "ready  daemons=10 processes=10" in await command(served, "events")
    assert (await command(served, "events", "-n", "1")).count("\n") == 1


async def test_mistakes_and_refusals_are_one_line(served: Fabric) -> None:
    folder = served.folder.path
    at = ("--run-dir", str(folder))
    assert "is no EV" in await asyncio.to_thread(fails, folder, "ev", "deny", "h000", "5", "path", *at)
    assert "QP 5" in await asyncio.to_thread(fails, folder, "ev", "deny", "h000", "5", "0x1", *at, code=1)
    assert "nearest is h001" in await asyncio.to_thread(fails, folder, "ev", "list", "h009", *at)
    assert "no such state" in await asyncio.to_thread(fails, folder, "ev", "list", "h000", "--state", "well", *at)
    for words in (("list", T1), ("deny", T1, "5", "0x1")):
        assert "where a NIC is wanted" in await asyncio.to_thread(fails, folder, "ev", *words, *at)
