"""The hosts under a fabric: one of them by itself, and what becomes of the others when one cannot begin or ends."""

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.clock import ClockPage
from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import once
from orchestrator.hosts.cluster import Cluster
from orchestrator.hosts.host_start import Host
from orchestrator.hosts.placement.site import LEADER, Site, Sites
from orchestrator.process.launcher import ProcessFailedError
from tests.orchestrator.running import DEADLINE_S, is_gone, verified
from tests.orchestrator.running import SMALL as TINY
from tests.support.shares import Agent, Machine, everything, nothing_left, spread, start, tree
from tests.support.wait import eventually

LEASE_S = 10.0
NOBODYS = "198.51.100.1"
"""An address that no machine has."""
HOSTS = 3
LIFE_NS = 100_000_000


@pytest.mark.integration
async def test_a_fabric_on_one_host_has_its_own_share(fabric: Fabric) -> None:
    share = fabric.cluster.share(LEADER)
    assert share.folder == fabric.folder.path
    assert set(share.descriptors.doorbells) == set(TINY.node_names())
    assert fabric.cluster.whole


@pytest.mark.parametrize(
    ("trouble", "said"),
    [("fails", "host bad cannot be reached"), ("hangs", "host bad: what was started there has not ended in 0.1 s")],
)
async def test_an_engine_that_fails_at_the_end_is_told_when_all_others_have_ended(
    trouble: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.hosts.cluster.STOP_WALL_S", 0.1)
    stopped: list[str] = []

    class Engine:
        address = ("127.0.0.1", 1)

        def __init__(self, name: str) -> None:
            self.name = name
            self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def stop(self) -> None:
            await asyncio.sleep(0)
            stopped.append(self.name)
            if self.name == "bad" and trouble == "hangs":
                await asyncio.Event().wait()
            if self.name == "bad":
                raise ProcessFailedError("host bad cannot be reached")

    async def start(_launch: dict[str, Any]) -> Engine:
        raise NotImplementedError

    cluster = Cluster(Sites((Site("here"), Site("bad"), Site("good"))), [Host(start, "a"), Host(start, "b")])
    cluster._running = {1: Engine("bad"), 2: Engine("good")}
    with pytest.raises(ProcessFailedError, match=said):
        await cluster.close()
    assert stopped == ["bad", "good"]
    await cluster.close()


@pytest.mark.integration
@pytest.mark.slow
async def test_a_fabric_without_its_own_relay_is_broken(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 2, {"p1-t1-0": 1}, LEASE_S)
    async with Fabric.launch(TINY, tmp_path / "vm0", cluster=machine.cluster) as fabric:
        pids = everything()
        post = machine.cluster._post
        assert post is not None
        assert post.child is not None
        os.kill(post.child.pid, signal.SIGKILL)
        async with asyncio.timeout(DEADLINE_S):
            assert await fabric.broken == "the relay of host vm0 has ended: SIGKILL"
    assert nothing_left(tmp_path, machine, pids)


@pytest.mark.integration
@pytest.mark.slow
async def test_hosts_that_do_not_end_keep_nobody_from_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, cluster = Machine(tmp_path, 1, {}, LEASE_S), Cluster()
    closed = cluster.close

    async def closed_and_told() -> None:
        await closed()
        raise ProcessFailedError("host vm1 cannot be reached")

    monkeypatch.setattr(cluster, "close", closed_and_told)
    with pytest.raises(ProcessFailedError, match="host vm1 cannot be reached"):
        async with Fabric.launch(TINY, tmp_path / "vm0", cluster=cluster):
            pass
    assert nothing_left(tmp_path, machine, everything())


@pytest.mark.integration
@pytest.mark.slow
async def test_a_relay_that_ends_while_daemons_start_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, 2, spread(TINY, 2), LEASE_S)
    opened = machine.cluster.open

    async def opened_and_hurt(*arguments: Any) -> None:
        await opened(*arguments)
        post = machine.cluster._post
        assert post is not None
        assert post.child is not None
        os.kill(post.child.pid, signal.SIGKILL)

    monkeypatch.setattr(machine.cluster, "open", opened_and_hurt)
    # Not by the share, which would wait for the orders that nobody brings it, nor by the daemons's patience.
    monkeypatch.setattr("orchestrator.process.answer_wait.UNSEEN_WALL_S", 10 * DEADLINE_S)
    monkeypatch.setattr("orchestrator.process.answer_wait.SILENT_WALL_S", 10 * DEADLINE_S)
    with pytest.raises(ProcessFailedError, match="the relay of host vm0 has ended: SIGKILL"):
        async with Fabric.launch(TINY, tmp_path / "vm0", cluster=machine.cluster):
            pass
    assert nothing_left(tmp_path, machine, everything())


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["folder", "engine", "agent", "address"])
async def test_one_host_that_cannot_begin_is_named_and_the_others_are_given_back(tmp_path: Path, trouble: str) -> None:
    async def begin(launch: dict[str, Any]) -> Agent:
        if trouble == "engine":
            raise ConfigError("host vm2", "cannot be reached")
        agent = await machine.start(launch)
        if trouble == "agent":
            agent.process.kill()
        return agent

    machine = Machine(tmp_path, HOSTS, spread(TINY, HOSTS), LEASE_S, {2: begin})
    if trouble == "address":
        here, first, _second = machine.cluster.sites.sites
        machine.cluster.sites = replace(machine.cluster.sites, sites=(here, first, Site("vm2", data=NOBODYS)))
    if trouble == "folder":
        (tmp_path / "vm2" / "small").mkdir(parents=True)
        (tmp_path / "vm2" / "small" / "letters.txt").touch()
    said = {
        "folder": f"host vm2: run folder {tmp_path}/vm2/small.* holds files that are no fabric's",
        "engine": "host vm2.*cannot be reached",
        "agent": "host vm2 is lost: its agent has ended: exit code -9",
        "address": f"host vm2: has no address {NOBODYS}",
    }
    with pytest.raises((ConfigError, ProcessFailedError), match=said[trouble]):
        async with Fabric.launch(TINY, tmp_path / "vm0", cluster=machine.cluster):
            pass
    assert nothing_left(tmp_path / "vm0", machine, everything())
    assert nothing_left(tmp_path / "vm1", machine, [])


def page_of(agent: Agent) -> ClockPage:
    """The clock page of a share, as its agent has it."""
    descriptors = Path(f"/proc/{agent.pid}/fd").iterdir()
    found = next(path for path in descriptors if "mrcfabric-clock" in os.readlink(path))
    return ClockPage(os.open(found, os.O_RDWR))


def lives(page: ClockPage) -> list[tuple[int, ...]]:
    """Of every node its orders, state, horizon and counts, as a page has them."""
    return [(page.orders(node), page.slot_state(node), *page.reached(node)) for node in range(page.nodes)]


@pytest.mark.long
@pytest.mark.integration
async def test_a_share_that_was_killed_is_started_anew_and_knows_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = spread(TINY, HOSTS)
    machine = Machine(tmp_path, HOSTS, places, LEASE_S)
    cluster = machine.cluster
    gone = [node for node, host in places.items() if host == 1]
    async with Fabric.launch(TINY, tmp_path / "vm0", cluster=cluster) as fabric:
        assert await verified(fabric) == 1 << 20
        for refused in (cluster.kill_share(LEADER), cluster.start_share(LEADER), cluster.start_share(1)):
            with pytest.raises(RefusedError, match=r"leads the fabric|the share of host vm[01] runs"):
                await refused

        # Its daemons die at an instant of their own, then all the rest of it at once.
        at_ns = fabric.soon_ns()
        fabric.time.limit(at_ns - 1)  # until all have been told
        for node in gone:
            kind = "nic_crash" if node.startswith("h") else "switch_crash"
            await fabric.inject(once(kind, node, at_ns=at_ns, fault_id=f"crash-{node}"))
        fabric.time.limit(None)
        await eventually(lambda: not any(map(fabric.alive, gone)), DEADLINE_S)
        ends = {note["how"] for note in fabric.journal.after(0) if note["kind"] == "died"}
        assert ends == {"SIGKILL"}, "as on the leader's host: what it last logged is no cause"
        former = machine.agents[1]
        pids = tree(former.pid)
        await cluster.kill_share(1)
        assert await former.ended == "exit code -9"
        await eventually(lambda: all(map(is_gone, pids)), DEADLINE_S)
        with pytest.raises(ProcessFailedError, match="host vm1 is lost: it was killed, as asked"):
            await cluster.fetch_log(gone[0])
        await cluster.kill_share(1)

        # One that cannot be reached is ended again, and the host as lost as before.
        async def begin_deaf(launch: dict[str, Any]) -> Agent:
            agent = await start(launch, tmp_path / "deaf.log")
            agent.address = ("127.0.0.1", 1)
            return agent

        with monkeypatch.context() as impatient:
            impatient.setattr(machine, "start", begin_deaf)
            impatient.setattr("orchestrator.hosts.remote_share.OPEN_WALL_S", 0.3)
            impatient.setattr("tests.support.shares.STOP_WALL_S", 0.1)
            with pytest.raises(ConfigError, match=r"its share does not answer at 127\.0\.0\.1 port 1"):
                await cluster.start_share(1)
        assert machine.agents[1].ended.done()
        assert cluster.condition(1) == ("lost", "it was killed, as asked")

        # Meanwhile things change.
        fabric.time.limit(bound_ns := fabric.soon_ns() + 10 * LIFE_NS)
        starts = await asyncio.gather(cluster.start_share(1), cluster.start_share(1), return_exceptions=True)
        assert [type(one) for one in starts] == [type(None), RefusedError]
        assert machine.agents[1] is not former
        assert cluster.whole
        there, here = page_of(machine.agents[1]), fabric.time.page
        assert (there.limit, there.dilation, there.state) == (bound_ns, here.dilation, here.state)
        await eventually(lambda: lives(there) == lives(here), DEADLINE_S)
        there.close()
        fabric.time.limit(None)

        # They live again, in processes of the new share, and one of them after the other says so in the same log.
        for node in gone:
            await fabric.heal(f"crash-{node}", at_ns=fabric.soon_ns())
        await eventually(lambda: all(map(fabric.alive, gone)), DEADLINE_S)
        assert {fabric.state()["nodes"][node]["pid"] for node in gone} < {*tree(machine.agents[1].pid)}
        assert not fabric.unexpected_deaths()
        assert not [note for note in fabric.journal.after(0) if note["kind"] == "host_lost"]
        assert await verified(fabric) == 1 << 20
        log = tmp_path / "vm1" / "small" / "logs" / f"{gone[0]}.log"
        await eventually(lambda: log.read_text().count(" ready") == 2, DEADLINE_S)
    assert nothing_left(tmp_path, machine, pids)
