"""`mrcfabric ev profile`: profiles made, used and taken away."""

import asyncio
import json

import pytest

from mrcfabric.paths import ev_of
from orchestrator.fabric import Fabric
from tests.orchestrator.running import ask, fails

pytestmark = pytest.mark.integration

EVS = [f"0x{ev_of(plane, path, 0):08x}" for plane in range(2) for path in range(2)]


async def command(fabric: Fabric, *arguments: str) -> str:
    folder = fabric.folder.path
    return await asyncio.to_thread(ask, folder, *arguments, "--run-dir", str(folder))


async def test_a_profile_from_its_making_to_its_end(served: Fabric) -> None:
    assert "profile=0  state=online  mode=auto" in await command(served, "ev", "profile", "list", "h000")
    made = await command(served, "ev", "profile", "create", "h000", "--number", "3")
    assert "create_ev_profile: h000 profile=3 state=init" in made
    evs = [word for ev in EVS for word in ("--ev", ev)]
    await command(served, "ev", "profile", "modify", "h000", "3", "--mode", "explicit", *evs, "--state", "offline")
    online = await command(served, "ev", "profile", "modify", "h000", "3", "--state", "online", "--no-good-events")
    assert "state=online" in online
    assert "good_events=False" in online
    await served.command("h000", "create_qp", {"qpn": 9, "profile": 3})
    assert "UNKNOWN" in await command(served, "ev", "profile", "show", "h000", "3")
    await command(served, "ev", "profile", "deny", "h000", "3", EVS[0])
    rows = json.loads(await command(served, "ev", "profile", "show", "h000", "3", "--json"))
    assert (rows[0]["value"], rows[0]["state"]) == (f"{EVS[0]}@1", "DENIED")
    await command(served, "ev", "profile", "allow", "h000", "3", EVS[0])
    new = f"0x{ev_of(0, 0, 7):08x}"
    assert f"new={ev_of(0, 0, 7)}" in await command(served, "ev", "replace", "h000", "3", EVS[0], new)
    folder = served.folder.path
    at = ("--run-dir", str(folder))
    used = await asyncio.to_thread(
        fails, folder, "ev", "profile", "modify", "h000", "3", "--state", "offline", *at, code=1
    )
    assert "1 QPs are tied to it" in used
    await served.command("h000", "destroy_qp", {"qpn": 9})
    await command(served, "ev", "profile", "modify", "h000", "3", "--state", "offline")
    await command(served, "ev", "profile", "destroy", "h000", "3")
    (row,) = json.loads(await command(served, "ev", "profile", "list", "h000", "--json"))
    assert (row["profile"], row["users"]) == (0, 0)
    assert "holds no EVs" in await command(served, "ev", "profile", "show", "h000", "0")
