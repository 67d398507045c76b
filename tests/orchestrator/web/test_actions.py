"""What a page may break, and how it is healed."""

import json
from typing import Any

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.fabric import Fabric
from orchestrator.web import actions
from tests.orchestrator.running import DEADLINE_S, T1
from tests.support.wait import eventually

pytestmark = pytest.mark.integration
LINK = f"p0-t0-0~{T1}"


async def add(fabric: Fabric, **asked: Any) -> dict[str, Any]:
    return await actions.add(fabric, json.dumps(asked).encode())


async def test_faults_are_added_by_name_and_healed_by_id_or_by_name(fabric: Fabric) -> None:
    fabric.owner = "web"
    cut = await add(fabric, kind="link_down", targets=[LINK])
    lossy = await add(fabric, kind="loss", targets=[f"p0-t0-0>{T1}"], figures={"share_ppm": 500})
    port = await add(fabric, kind="nic_port_down", targets=["h000:1"], for_ns=10**12)
    assert cut["owner"] == "web"
    assert lossy["windows"][0][2] == {"share_ppm": 500, "burst_packets": 1}
    assert port["windows"][0][1] == port["windows"][0][0] + 10**12
    # A link is meant with both its directions, and by either end first.
    assert set(await actions.heal_at(fabric, f"{T1}~p0-t0-0")) == {cut["id"], lossy["id"]}
    assert await actions.heal_at(fabric, T1) == []
    assert await actions.heal(fabric, port["id"]) == [port["id"]]
    await eventually(lambda: fabric.faults() == [], DEADLINE_S)
    with pytest.raises(RefusedError):
        await actions.heal(fabric, port["id"])
    for asked, words in (
        ({}, "not understood"),
        ({"kind": "link_dwon", "targets": [LINK]}, "link_down"),
        ({"kind": "link_down", "targets": []}, "0 names"),
        ({"kind": "link_down", "targets": ["h000~p0-t1-0"]}, "no such link"),
        ({"kind": "loss", "targets": [LINK], "figures": {"share": 1}}, "share_ppm"),
        ({"kind": "loss", "targets": [LINK], "for_ns": 0}, "no length"),
        ({"kind": "loss", "targets": [LINK], "owner": "x"}, "not understood"),
    ):
        with pytest.raises(ConfigError, match=words):
            await add(fabric, **asked)
    with pytest.raises(ConfigError, match="not understood"):
        await actions.add(fabric, b'{"x":' + b"[" * 100_000)
    assert fabric.faults() == []
