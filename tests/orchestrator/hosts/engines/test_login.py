"""Logging in to real hosts, and the one line that says why not."""

import asyncio
import dataclasses
from pathlib import Path

import asyncssh
import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines.login import Patience, login
from orchestrator.hosts.placement.inventory import Host
from tests.support import namespaces
from tests.support.cluster import Cluster, Family, cluster
from tests.support.launches import DEADLINE_S, described
from tests.support.packages import program
from tests.support.wait import eventually

pytestmark = pytest.mark.integration

PATIENT = Patience(connect_wall_s=DEADLINE_S)


def changed(host: Host, **access: object) -> Host:
    return dataclasses.replace(host, ssh=dataclasses.replace(host.ssh, **access))  # type: ignore[arg-type]


async def refusal(host: Host, patience: Patience = PATIENT) -> str:
    """What the operator is told."""
    with pytest.raises(ConfigError) as told:
        await login(host, patience)
    text = str(told.value)
    assert text.startswith("host h1: ")
    assert "\n" not in text
    return text.removeprefix("host h1: ")


def fingerprint(hosts: Cluster) -> str:
    return asyncssh.read_public_key(hosts.folder / "h1.key.pub").get_fingerprint()


@pytest.mark.parametrize("family", [4, 6])
async def test_a_known_host_lets_us_in_and_its_death_is_seen(family: Family) -> None:
    async with cluster(hosts=1, family=family) as hosts:
        with hosts.home.network():
            connection, line = await login(described(hosts, hosts[0], "python3"), PATIENT)
            assert (await connection.run("hostname", check=True)).stdout == "h1\n"
            await hosts[0].kill()
            await asyncio.wait_for(connection.wait_closed(), DEADLINE_S)
            assert line.lost != "closed"


async def test_a_key_that_is_not_known_or_another_is_shown_and_never_trusted() -> None:
    async with cluster(hosts=1) as hosts:
        host = described(hosts, hosts[0], "python3")
        good = hosts.known_hosts.read_text()
        with hosts.home.network():
            hosts.known_hosts.write_text("")
            told = await refusal(host)
            assert told.startswith(f"{hosts[0].address} is not in {hosts.known_hosts}; its key is ssh-ed25519 SHA256:")
            assert fingerprint(hosts) in told
            assert told.endswith(f": ssh-keyscan -p 22 {hosts[0].address} >> {hosts.known_hosts})")
            other = (hosts.folder / "home.key.pub").read_text()
            hosts.known_hosts.write_text(f"{hosts[0].address} {other}")
            told = await refusal(host)
            assert f"shows another key than the one in {hosts.known_hosts}: ssh-ed25519 {fingerprint(hosts)}" in told
            assert f"ssh-keygen -R '{hosts[0].address}' -f {hosts.known_hosts}" in told
            hosts.known_hosts.write_text(f"@revoked {good.splitlines()[0]}")
            assert "its key is refused" in await refusal(host)
            assert "cannot be read" in await refusal(changed(host, known_hosts=str(hosts.folder / "none")))


async def test_a_user_who_is_not_let_in_is_told_by_which_key(tmp_path: Path) -> None:
    stranger = tmp_path / "key"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(stranger)
    async with cluster(hosts=1) as hosts:
        locked = tmp_path / "locked"
        words = [str(program("ssh-keygen")), "-q", "-t", "ed25519", "-N", "open sesame", "-f", str(locked)]
        (await namespaces.run(words)).well()
        host = described(hosts, hosts[0], "python3")
        with hosts.home.network():
            told = await refusal(changed(host, key=str(stranger)))
            assert told.startswith(f"does not let root in with {stranger} (put the public key into ~root/.ssh/auth")
            assert "does not let nosuchuser in" in await refusal(changed(host, user="nosuchuser"))
            assert f"its key {tmp_path}/none cannot be read" in await refusal(changed(host, key=f"{tmp_path}/none"))
            told = await refusal(changed(host, key=str(locked)))
            assert told.startswith(f"its key {locked} cannot be used: ")
            assert told.endswith(f"(leave `key` out and let the agent have it: ssh-add {locked})")


async def test_a_key_that_the_agent_has_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    socket = tmp_path / "agent"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
    agent = await asyncio.create_subprocess_exec(
        program("ssh-agent"), "-D", "-a", str(socket), stdout=asyncio.subprocess.DEVNULL
    )
    try:
        await eventually(socket.is_socket, DEADLINE_S)
        async with cluster(hosts=1) as hosts:
            host = changed(described(hosts, hosts[0], "python3"), key="")
            with hosts.home.network():
                assert "does not let root in with any key of ours or of the agent" in await refusal(host)
                (await namespaces.run([str(program("ssh-add")), "-q", str(hosts.user_key)])).well()
                connection, _line = await login(host, PATIENT)
                connection.close()
                await connection.wait_closed()
    finally:
        agent.terminate()
        await agent.wait()


async def test_a_host_that_cannot_be_reached_is_told_apart() -> None:
    async with cluster(hosts=1) as hosts:
        host = described(hosts, hosts[0], "python3")
        with hosts.home.network():
            told = await refusal(changed(host, port=23))
            assert told == f"nobody listens at {hosts[0].address} port 23 (start sshd there, or name its `port`)"
            assert "cannot be reached: Network is unreachable" in await refusal(changed(host, address="192.0.2.1"))
            await hosts[0].cut()
            told = await refusal(host, Patience(connect_wall_s=0.2))
            assert told.startswith(f"{hosts[0].address} port 22 does not answer within 0.2 s")


async def test_a_cut_cable_is_noticed() -> None:
    async with cluster(hosts=1) as hosts:
        with hosts.home.network():
            patience = Patience(DEADLINE_S, keepalive_s=0.05, keepalive_misses=2)
            connection, line = await login(described(hosts, hosts[0], "python3"), patience)
            await hosts[0].cut()
            await eventually(connection.is_closed, DEADLINE_S)
            await connection.wait_closed()
            assert "keepalive" in line.lost.lower()


async def test_a_port_without_ssh_is_told(tmp_path: Path) -> None:
    async def talk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    known = tmp_path / "known"
    known.write_text("")
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    host = changed(Host.at("h1", "127.0.0.1"), port=port, known_hosts=str(known))
    async with server:
        told = await refusal(host)
    assert told.startswith(f"no SSH with 127.0.0.1 port {port}: ")
