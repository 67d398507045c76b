"""Commands, files and questions over one connection."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines.login import Patience, login
from orchestrator.hosts.engines.remote import Remote, command, last_words
from orchestrator.process.launcher import ProcessFailedError
from tests.support.cluster import Host, cluster
from tests.support.launches import DEADLINE_S, described

PATIENT = Patience(connect_wall_s=DEADLINE_S)
LOOK = {"do": "look", "run_dir": "mrc", "ports": []}


@asynccontextmanager
async def remote(python: str = "python3") -> AsyncIterator[tuple[Remote, Host]]:
    """A host, and us logged in to it."""
    async with cluster(hosts=1) as hosts:
        with hosts.home.network():
            host = described(hosts, hosts[0], python)
            connection, line = await login(host, PATIENT)
            async with connection:
                yield Remote(host, connection, line), hosts[0]


def test_words_are_quoted_for_a_shell() -> None:
    assert command(["python3", "-c", "print('it')"]) == """exec python3 -c 'print('"'"'it'"'"')'"""
    assert command(["~/my venv/python"]) == "exec \"$HOME\"/'my venv/python'"


def test_the_last_words_are_the_last_that_say_something() -> None:
    assert last_words("one\n two \n\n") == "two"
    assert last_words("\n") == "it said nothing"


@pytest.mark.integration
async def test_commands_run_with_what_they_are_given() -> None:
    async with remote() as (there, host):
        words = ["sh", "-c", 'cat; echo "$1" >&2; exit 3', "sh", "a  b"]
        assert await there.run(words, b"given\n") == (3, "given\na  b\n")
        assert await there.run(["sh", "-c", "kill -9 $$"]) == (-1, "")
        with pytest.raises(ProcessFailedError, match=r"host h1: sleep has not ended within 0\.05 s"):
            await there.run(["sleep", "5"], within_s=0.05)
        await host.kill()
        with pytest.raises(ProcessFailedError, match="host h1: the connection broke"):
            await there.run(["true"])


@pytest.mark.integration
async def test_files_are_copied_for_the_user_alone() -> None:
    async with remote() as (there, host):
        await there.put({f"{host.folder}/a b/c": b"one", f"{host.folder}/d": b"x" * 100_000})
        assert (host.folder / "a b/c").read_bytes() == b"one"
        assert (host.folder / "d").stat().st_size == 100_000
        assert (host.folder / "d").stat().st_mode & 0o777 == 0o600
        with pytest.raises(ConfigError, match="host h1: files cannot be copied below /proc/none"):
            await there.put({"/proc/none/x": b""})
        (await host.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(host.folder / "a b")])).well()
        with pytest.raises(ConfigError, match="is its disk full"):
            await there.put({f"{host.folder}/a b/large": bytes(100_000)})


@pytest.mark.integration
async def test_a_host_without_sftp_is_told() -> None:
    async with remote() as (_there, host):
        configuration = host.folder.parent / "h1.sshd"
        lines = configuration.read_text().splitlines()
        configuration.write_text("\n".join(line for line in lines if not line.startswith("Subsystem")))
        await host.kill()
        await host.boot()
        connection, line = await login(_there.host, PATIENT)
        async with connection:
            with pytest.raises(ConfigError, match="host h1: takes no files"):
                await Remote(_there.host, connection, line).put({f"{host.folder}/x": b""})


@pytest.mark.integration
async def test_the_python_of_the_host_looks_round() -> None:
    async with remote() as (there, host):
        found = await there.there(LOOK)
        assert found["run_dir"] == f"{host.folder}/mrc"
        assert found["user"] == "root"


@pytest.mark.integration
async def test_a_login_that_chatters_disturbs_nothing() -> None:
    async with remote("~/py") as (there, host):
        script = host.folder / "py"
        script.write_text('#!/bin/sh\necho welcome; echo -n "good day"; exec python3 "$@"\n')
        script.chmod(0o755)
        assert (await there.there(LOOK))["run_dir"] == f"{host.folder}/mrc"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("script", "error", "told"),
    [
        (None, ConfigError, "host h1: has no Python: `~/py` is not there (install Python 3.11 or newer, or "),
        ("exit 3", ProcessFailedError, "host h1: `~/py` failed there: it said nothing"),
        ("echo Segfault >&2; kill -9 $$", ProcessFailedError, "host h1: `~/py` failed there: Segfault"),
    ],
)
async def test_a_python_that_is_none_is_told(script: str | None, error: type[Exception], told: str) -> None:
    async with remote("~/py") as (there, host):
        if script is not None:
            (host.folder / "py").write_text(f"#!/bin/sh\n{script}\n")
            (host.folder / "py").chmod(0o755)
        with pytest.raises(error) as caught:
            await there.there(LOOK)
        assert str(caught.value).startswith(told)


@pytest.mark.integration
async def test_an_old_python_says_only_how_old_it_is() -> None:
    """The program that is sent begins with what any Python can read; here one that claims to be old."""
    async with remote("~/py") as (there, host):
        pretence = "import sys; sys.version_info = (3, 6, 8); exec(sys.argv.pop(1))"
        script = f'#!/bin/sh\nshift\nexec python3 -c "{pretence}" "$@"\n'
        (host.folder / "py").write_text(script)
        (host.folder / "py").chmod(0o755)
        assert await there.there(LOOK) == {"python": [3, 6, 8]}
        assert not (host.folder / "mrc").exists()
