"""The hosts that other tests run on: they reach each other and nobody else, break as told, and leave nothing."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import asyncssh
import pytest

from tests.checks.source import ROOT
from tests.support import namespaces
from tests.support.cluster import SSH_PORT, USER, Cluster, Family, Host, can_be_made, cluster
from tests.support.wait import eventually, eventually_blocking

pytestmark = pytest.mark.integration

SILENCE_S = 0.2
"""How long nobody answers who is expected not to; an answer takes a hundredth of it."""
DEADLINE_S = 20.0
# A test process that makes hosts, says which processes and which folder they have, and never ends by itself.
VICTIM = """
import asyncio
from tests.support.cluster import cluster
async def main():
    async with cluster(hosts=2) as hosts:
        print(hosts.folder, hosts.hub, *(pid for host in hosts for pid in host.pids()), flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


async def login(hosts: Cluster, host: Host) -> asyncssh.SSHClientConnection:
    """A connection from the orchestrator's host, with the host's key checked."""
    with hosts.home.network():
        return await asyncssh.connect(
            host.address, SSH_PORT, username=USER, client_keys=[str(hosts.user_key)],
            known_hosts=str(hosts.known_hosts), config=None, keepalive_interval=1, keepalive_count_max=3,
        )  # fmt: skip


@pytest.mark.parametrize(("family", "mtu"), [(4, 1500), (6, 9000), (46, 1500)])
async def test_hosts_reach_each_other_with_packets_up_to_the_mtu(family: Family, mtu: int) -> None:
    async with cluster(hosts=3, family=family, mtu=mtu) as hosts:
        every = [*hosts, hosts.home]
        for host in every:
            for peer in every:
                for address in peer.addresses:
                    assert await host.reaches(address, mtu)
        assert not await hosts[0].reaches(hosts[1].address, mtu + 1)


async def test_a_host_has_a_name_processes_and_a_folder_of_its_own() -> None:
    async with cluster(hosts=2) as hosts:
        said = [(await host.run(["sh", "-c", "hostname; pwd; cd; pwd; echo $PPID"])).well() for host in hosts]
        assert said == [f"h{number}\n{hosts.folder}/h{number}\n{hosts.folder}/h{number}\n0\n" for number in (1, 2)]
        assert [len(host.pids()) for host in hosts] == [1, 1]
        assert hosts[0].init in hosts[0].pids()


async def test_a_host_reaches_nothing_outside() -> None:
    async with cluster(hosts=1) as hosts:
        routes = (await hosts[0].run(["ip", "route", "show", "table", "all"])).well()
        assert "default" not in routes
        assert not await hosts[0].reaches("192.0.2.1", within_s=SILENCE_S)


@pytest.mark.parametrize("family", [4, 6])
async def test_ssh_lets_in_with_the_key_and_knows_the_host(family: Family) -> None:
    async with cluster(hosts=3, family=family) as hosts:
        for host in hosts:
            async with await login(hosts, host) as connection:
                done = await connection.run("hostname; echo $HOME", check=True)
                assert done.stdout == f"{host.name}\n{host.folder}\n"
        hosts.known_hosts.write_text("")
        with pytest.raises(asyncssh.HostKeyNotVerifiable):
            await login(hosts, hosts[0])


async def test_a_kill_ends_all_of_a_host_and_a_boot_brings_it_back_with_its_disk() -> None:
    async with cluster(hosts=2) as hosts:
        first, second = hosts
        (await first.run(["sh", "-c", "echo kept > file"])).well()
        async with await login(hosts, first) as connection:
            sleeper = await connection.create_process("exec sleep 1000")
            await eventually(lambda: "sleep" in _names(first.pids()), DEADLINE_S)
            pids = first.pids()
            await first.kill()
            await connection.wait_closed()
            assert not namespaces.living(pids)
            await sleeper.wait_closed()
        assert not await second.reaches(first.address, within_s=SILENCE_S)
        await first.boot()
        assert await second.reaches(first.address)
        assert (await first.run(["cat", "file"])).well() == "kept\n"
        async with await login(hosts, first) as connection:
            assert (await connection.run("hostname", check=True)).stdout == "h1\n"


async def test_a_cut_cable_is_silence_until_it_is_mended() -> None:
    async with cluster(hosts=3) as hosts:
        first, second, third = hosts
        async with await login(hosts, first) as connection:
            await first.cut()
            assert not await second.reaches(first.address, within_s=SILENCE_S)
            assert not await first.reaches(second.address, within_s=SILENCE_S)
            assert await second.reaches(third.address)
            # Nobody says goodbye over a cut cable: it is silence that ends the connection.
            await asyncio.wait_for(connection.wait_closed(), DEADLINE_S)
        await first.mend()
        assert await second.reaches(first.address)


async def test_a_host_that_dies_quietly_says_no_goodbye() -> None:
    async with cluster(hosts=1) as hosts, await login(hosts, hosts[0]) as connection:
        await hosts[0].kill(quietly=True)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connection.wait_closed(), SILENCE_S)
        connection.abort()


@pytest.mark.parametrize("family", [4, 6])
async def test_a_partition_stands_between_two_hosts_alone(family: Family) -> None:
    async with cluster(hosts=3, family=family) as hosts:
        first, second, third = hosts
        assert await first.reaches(second.address)
        await hosts.partition(first, second)
        assert not await first.reaches(second.address, within_s=SILENCE_S)
        assert not await second.reaches(first.address, within_s=SILENCE_S)
        for host in (first, second):
            assert await host.reaches(third.address)
            assert await hosts.home.reaches(host.address)
        await hosts.reunite(first, second)
        assert await first.reaches(second.address)


async def test_nothing_is_left_after_the_block() -> None:
    before = _networks()
    async with cluster(hosts=2) as hosts:
        pids = [hosts.hub, *(pid for host in hosts for pid in host.pids())]
        stray = await asyncio.create_subprocess_exec(*hosts[0].entering(), "sleep", "1000")
        assert len(_networks() - before) >= 1
    assert await stray.wait()
    assert not namespaces.living(pids)
    assert not hosts.folder.exists()


def test_nothing_is_left_of_a_test_process_that_is_killed() -> None:
    can_be_made()
    with subprocess.Popen([sys.executable, "-c", VICTIM], cwd=ROOT, stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        left, *numbers = victim.stdout.readline().split()
        folder = Path(left)
        pids = [int(number) for number in numbers]
        assert len(pids) == 3
        victim.send_signal(signal.SIGKILL)
    eventually_blocking(lambda: not namespaces.living(pids), DEADLINE_S)
    assert folder.parent == Path(tempfile.gettempdir())
    asyncio.run(_another())
    assert not folder.exists()


async def _another() -> None:
    async with cluster(hosts=0):
        pass


def _networks() -> set[str]:
    """The networks that any process of the machine is in."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.add(os.readlink(entry / "ns/net"))
            except OSError:
                continue
    return found


def _names(pids: list[int]) -> list[str]:
    """What the processes are called, of those that still live."""
    return [path.read_text().strip() for pid in pids if (path := Path(f"/proc/{pid}/comm")).exists()]
