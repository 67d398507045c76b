"""What is brought to a host, and what is not."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines import payload
from orchestrator.hosts.engines.host_facts import HostFacts
from orchestrator.hosts.engines.login import Patience, login
from orchestrator.hosts.engines.payload import Wheelhouse
from orchestrator.hosts.engines.remote import Remote
from orchestrator.hosts.engines.wheel import Wheel
from tests.support import bare
from tests.support.bare import DEPENDENCY, application
from tests.support.cluster import Cluster, Host, cluster
from tests.support.launches import DEADLINE_S, described

pytestmark = pytest.mark.integration

VERSION = f"from importlib.metadata import version; print(version('mrcfabric'), version('{DEPENDENCY}'))"
WHEEL = application()


class Yard:
    """One host whose Python has no packages, and us logged in to it."""

    def __init__(self, hosts: Cluster, remote: Remote) -> None:
        self.hosts = hosts
        self.host: Host = hosts[0]
        self.remote = remote

    async def findings(self, wheel: Wheel = WHEEL, wheelhouse: Wheelhouse | None = None) -> HostFacts:
        order = {"do": "look", "run_dir": "mrc", "ports": []}
        order |= payload.order(wheel.requirements, wheel.digest, wheelhouse)
        return HostFacts("h1", "python", await self.remote.there(order))

    async def deliver(self, wheel: Wheel = WHEEL, wheelhouse: Wheelhouse | None = None) -> list[str]:
        return await payload.deliver(self.remote, await self.findings(wheel, wheelhouse), wheel, wheelhouse)

    async def versions(self, modules: list[str]) -> str:
        """What the host's Python finds of us and of the dependency."""
        words = ["env", f"PYTHONPATH={':'.join(modules)}", self.remote.host.python, "-c", VERSION]
        code, output = await self.remote.run(words)
        assert code == 0, output
        return output.strip()

    def configure_pip(self, *lines: str) -> None:
        folder = self.host.folder / ".config/pip"
        folder.mkdir(parents=True)
        (folder / "pip.conf").write_text("\n".join(("[global]", "retries = 0", *lines, "")))

    def written(self) -> set[tuple[str, int]]:
        """Every file in the run folder, with the moment at which it was written."""
        found = (path for path in (self.host.folder / "mrc").rglob("*") if path.is_file() and path.name != "held")
        return {(str(path), path.stat().st_mtime_ns) for path in found}


@asynccontextmanager
async def yard(*, with_pip: bool = False) -> AsyncIterator[Yard]:
    async with cluster(hosts=1) as hosts:
        python = await asyncio.to_thread(bare.interpreter, hosts[0].folder / "python", with_pip=with_pip)
        with hosts.home.network():
            host = described(hosts, hosts[0], python)
            connection, line = await login(host, Patience(DEADLINE_S))
            async with connection:
                yield Yard(hosts, Remote(host, connection, line))


@pytest.mark.long
async def test_packages_that_the_python_has_are_used_and_code_is_copied_once() -> None:
    async with yard() as made:
        [packages] = (made.host.folder / "python").glob("lib/python3*/site-packages")
        wheel = bare.dependency(made.host.folder)
        await made.host.run(["python3", "-m", "zipfile", "-e", str(wheel), str(packages)])
        modules = await made.deliver()
        assert modules == [f"{made.host.folder}/mrc/code/{WHEEL.digest}"]
        assert await made.versions(modules) == "0.1.0 1.4"
        before = made.written()
        assert await made.deliver() == modules
        assert made.written() == before


@pytest.mark.long
async def test_pip_of_the_host_takes_what_is_missing_from_its_own_index(tmp_path: Path) -> None:
    async with yard(with_pip=True) as made:
        bare.dependency(tmp_path / "wheels")
        home = made.hosts.home
        async with bare.index(home, home.address, tmp_path / "wheels") as url:
            made.configure_pip(f"index-url = {url}", f"trusted-host = {home.address}")
            assert (await made.findings()).has_pip
            modules = await made.deliver()
        assert await made.versions(modules) == "0.1.0 1.4"
        before = made.written()
        # The index is gone: what was installed is found again.
        assert await made.deliver() == modules
        assert made.written() == before


async def test_a_wheelhouse_and_our_pip_are_carried_to_a_host_that_has_neither(tmp_path: Path) -> None:
    bare.dependency(tmp_path)
    wheelhouse = Wheelhouse.read(tmp_path)
    async with yard() as made:
        findings = await made.findings()
        assert not findings.has_pip
        assert findings.missing == [f"{DEPENDENCY}>=1.2,<2"]
        modules = await made.deliver(wheelhouse=wheelhouse)
        assert await made.versions(modules) == "0.1.0 1.4"
        before = made.written()
        assert await made.deliver(wheelhouse=wheelhouse) == modules
        assert made.written() == before
        # Other code with the same needs: only the code is new.
        other = dataclasses.replace(application("0.2.0"), requirements=WHEEL.requirements)
        again = await made.deliver(other, wheelhouse)
        assert await made.versions(again) == "0.2.0 1.4"
        assert again[1] == modules[1]


@pytest.mark.long
async def test_packages_that_cannot_be_had_are_named(tmp_path: Path) -> None:
    bare.dependency(tmp_path, "3.0")
    async with yard() as made:
        made.configure_pip("index-url = http://127.0.0.1:9/simple")
        with pytest.raises(ConfigError) as told:
            await made.deliver()
        assert str(told.value).startswith(f"host h1: its Python lacks {DEPENDENCY}>=1.2,<2, and pip fails: ERROR: No m")
        assert str(told.value).endswith("(carry the packages with --wheelhouse, or install them there)")
        with pytest.raises(ConfigError, match="add the wheels that are missing to the wheelhouse"):
            await made.deliver(wheelhouse=Wheelhouse.read(tmp_path))


@pytest.mark.long
async def test_a_disk_that_is_full_is_told_and_nothing_is_left_on_it() -> None:
    large = dataclasses.replace(WHEEL, content=bare.zipped({"orchestrator/large": bytes(400_000)}), requirements=())
    async with yard() as made:
        disk = made.host.folder / "mrc"
        disk.mkdir()
        (await made.host.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)])).well()
        with pytest.raises(ConfigError) as told:
            await made.deliver(large)
        assert str(told.value) == (
            f"host h1: {disk}/code/{WHEEL.digest} cannot be written: No space left on device "
            "(make room, or name another `run_dir`)"
        )
        assert (await made.host.run(["find", "mrc", "-type", "f"])).well() == ""


@pytest.mark.long
def test_a_wheelhouse_has_wheels(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no wheel in it"):
        Wheelhouse.read(tmp_path)


@pytest.mark.long
def test_our_own_wheel_is_made_once() -> None:
    assert payload.our_wheel() is payload.our_wheel()
