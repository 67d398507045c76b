"""A fabric that runs elsewhere answers as one's own does, refusals and mistakes included."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.api.fabric import AttachedFabric
from orchestrator.fabric import Fabric
from tests.orchestrator.running import DEADLINE_S, ROOT, SMALL, SMALL_FLAGS, T0, run
from tests.support.wait import eventually

pytestmark = pytest.mark.integration


@pytest.fixture
async def attached(served: Fabric) -> AsyncIterator[AttachedFabric]:
    async with Fabric.attach(run_dir=served.folder.path) as one:
        yield one


async def test_the_same_answers(served: Fabric, attached: AttachedFabric) -> None:
    assert attached.topology == served.topology
    assert (await attached.call("h001", "status"))["node"] == "h001"
    assert set(await attached.counters()) == set(SMALL.node_names())
    assert set(await attached.counters([T0, "h000"])) == {T0, "h000"}
    assert await attached.command("h000", "register_memory", {"va": 0, "length": 4096})
    assert f'node="{T0}"' in await attached.metrics(T0)
    assert (await attached.fidelity())["valid"]
    assert await attached.host_pairs() == []
    assert await attached.deaths() == []


async def test_time_is_in_one_hand_at_a_time(served: Fabric, attached: AttachedFabric) -> None:
    await eventually(lambda: served.time.state == "sleep" and served.time.page.all_idle(), DEADLINE_S)
    here = await attached.clock()
    assert (here.limit_ns, here.idle, here.state) == (None, True, "sleep")
    stop_ns = here.soon_ns + 100_000
    assert await attached.limit(stop_ns) == stop_ns
    with pytest.raises(RefusedError, match="two holds no lease: fabric time would stand still when it dies"):
        await attached.limit(stop_ns + 1, "two")
    async with Fabric.attach(run_dir=served.folder.path, owner="two") as other:
        with pytest.raises(RefusedError, match=f"in the hands of {attached.owner}"):
            await other.limit(stop_ns + 1)
    late = asyncio.create_task(
        served.command("h000", "register_memory", {"va": 0, "length": 4096}, stop_ns + 5, DEADLINE_S)
    )
    await eventually(lambda: served.time.standing, DEADLINE_S)
    standing = await attached.clock()
    assert (standing.now_ns, standing.limit_ns, standing.standing, standing.idle) == (stop_ns, stop_ns, True, False)
    assert not late.done()
    assert await attached.limit(None) is None
    await late
    assert (await attached.clock()).limit_ns is None


async def test_who_was_attached_to_an_earlier_launch_is_told_so(detached: Path) -> None:
    folder = detached / "out" / SMALL.name
    async with Fabric.attach(run_dir=folder, owner="two") as early:
        await early.add_fault("link_down", "h000~p0-t0-0")
        for arguments in (("down",), ("up", *SMALL_FLAGS, "--detach", "--pack", "cores")):
            assert (await asyncio.to_thread(run, detached, *arguments)).returncode == 0
        await asyncio.wait_for(early.ended, DEADLINE_S)
        for asked in (early.live_faults, lambda: early.add_fault("link_down", "h000~p0-t0-0")):
            with pytest.raises(RefusedError, match=r"to which two was attached has ended, .* attach anew"):
                await asked()
    async with Fabric.attach(run_dir=folder) as late:
        assert await late.live_faults() == []
        with pytest.raises(RefusedError, match=r"two holds no lease: .* ends with the launch .*: attach anew"):
            await late.limit((await late.clock()).soon_ns, "two")


async def test_mistakes_and_refusals_are_the_fabric_s(served: Fabric, attached: AttachedFabric, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nearest is p1-t1-1"):
        await attached.call("p1-t1-9", "status")
    with pytest.raises(ConfigError, match="h0/9: no such node"):
        await attached.metrics("h0/9")
    with pytest.raises(ConfigError, match="request: Object of type set is not JSON serializable"):
        await attached.call("h000", "status", {"nics": {1}})
    with pytest.raises(ConfigError, match="args: 3 is no table"):
        await attached.call("h000", "status", 3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="fault: 3 is none"):
        await attached.inject(3)  # type: ignore[arg-type]
    with pytest.raises(RefusedError, match="unknown op"):
        await attached.call("h000", "melt")
    with pytest.raises(ConfigError, match="is no whole number from 0"):
        await attached.post("/limit", at_ns=-1)
    with pytest.raises(ConfigError, match="program: 3 is no table"):
        await attached.post("/load", program=3)
    with pytest.raises(ConfigError, match="nodes: 'h000' is no list of texts"):
        await attached.post("/counters", nodes="h000")
    with pytest.raises(ConfigError, match="no fabric runs there"):
        async with Fabric.attach(run_dir=tmp_path / "nowhere"):
            pass


async def test_an_unasked_death_comes_with_its_last_words(served: Fabric, attached: AttachedFabric) -> None:
    child = served.daemons.members["h001"].child
    assert child is not None
    await served.daemons.end(child)
    await child.ended
    [death] = await attached.deaths()
    assert (death.node, death.how) == ("h001", "SIGKILL")
    assert any("ready" in line for line in death.log)


async def test_a_script_may_stop_its_own_work(served: Fabric, attached: AttachedFabric) -> None:
    endless = {"message_bytes": 1 << 16, "for_ns": 1 << 40}
    work = await attached.start("p2p", name="mine", figures=endless)
    async with Fabric.attach(run_dir=served.folder.path) as other:
        with pytest.raises(RefusedError, match="has no program mine"):
            await other.stop_work(work.program)
    await work.stop()
    assert await attached.call("h000", "progress") == {}
    await (await attached.start("p2p", name="mine", figures=endless)).stop()


BREAKS_AND_HOLDS = """
import asyncio, sys
from pathlib import Path
from orchestrator.fabric import Fabric

async def main():
    async with Fabric.attach(run_dir=Path(sys.argv[1]), owner="doomed") as fabric:
        async with fabric.held():
            await fabric.add_fault("link_down", "h000~p0-t0-0")
            print("ready", flush=True)
            await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_a_script_that_is_killed_leaves_no_fault_and_no_limit(served: Fabric, attached: AttachedFabric) -> None:
    script = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BREAKS_AND_HOLDS, str(served.folder.path), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert script.stdout is not None
    assert await script.stdout.readline() == b"ready\n"
    [fault] = await attached.live_faults()
    assert (fault.owner, served.limit_owner) == ("doomed", "doomed")
    with pytest.raises(RefusedError, match="doomed has a lease already"):
        async with Fabric.attach(run_dir=served.folder.path, owner="doomed"):
            pass
    script.kill()
    await script.wait()
    await eventually(lambda: served.limit_owner is None and not served.faults(), DEADLINE_S)
    assert (await attached.clock()).limit_ns is None
