"""A watch and a check over daemons that really run: one at a time, and both can be ended."""

import asyncio

import pytest

from mrcfabric.errors import RefusedError
from orchestrator.fabric import Fabric
from orchestrator.mapper.link_testing import LinkTesting
from tests.orchestrator.running import DEADLINE_S, SMALL
from tests.support.wait import eventually

pytestmark = pytest.mark.integration
PERIOD_NS = 20_000
UP_LINK = "p0-t0-0~p0-t1-1"


async def test_a_watch_denies_while_it_lasts(fabric: Fabric, links: LinkTesting) -> None:
    await fabric.add_fault("loss", UP_LINK, figures={"share_ppm": 400_000})
    mapping = await links.watch(PERIOD_NS, deny=True)
    with pytest.raises(RefusedError, match="a watch over the links is on"):
        await links.check()
    with pytest.raises(RefusedError, match="on already"):
        await links.watch()
    watch = mapping.watch
    to_probe, loops, to_deny = 2, 2, 2
    await eventually(lambda: mapping.carried_out >= to_probe + loops + to_deny, DEADLINE_S)
    assert watch.plan.rules == [UP_LINK]
    lists = {nic: await fabric.call(nic, "denied_paths") for nic in SMALL.nic_names()}
    assert lists["h000"] == [{"plane": 0, "path": 1, "peer_index": None}]
    assert lists["h001"] == [{"plane": 0, "path": 1, "peer_index": 0}]
    assert any(note["kind"] == "links" and UP_LINK in note["bad"] for note in fabric.journal.after(0))
    last = await links.stop()
    assert last is not None
    assert last.bad == [UP_LINK]
    assert [await fabric.call(nic, "denied_paths") for nic in SMALL.nic_names()] == [[], []]
    assert await links.stop() is None
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)


async def test_one_check_at_a_time_and_it_can_be_ended(fabric: Fabric, links: LinkTesting) -> None:
    check = asyncio.create_task(links.check(rounds=100_000, period_ns=PERIOD_NS))
    await eventually(lambda: fabric.time.state != "sleep", DEADLINE_S)
    with pytest.raises(RefusedError, match="under way"):
        await links.check()
    with pytest.raises(RefusedError, match="under way"):
        await links.watch()
    assert await links.stop() is None
    with pytest.raises(RefusedError, match="was ended"):
        await check
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    assert (await links.check(rounds=20, period_ns=PERIOD_NS)).all_good
