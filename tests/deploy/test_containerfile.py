"""deploy/Containerfile, built for real on a base of this machine's own Python, and what runs in the image."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.cli.commands import manifests
from orchestrator.hosts.cluster_key import write_new
from orchestrator.kubernetes.pods import FILE_MODE, FILES_DIR, USER
from orchestrator.process.ports import command_of
from tests.checks.source import ROOT
from tests.support import base_image
from tests.support.cluster import Host, cluster
from tests.support.namespaces import entering, identity, pids_within, privileged, run
from tests.support.packages import program

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

TAG = "localhost/mrcfabric"
DEADLINE_S = 60.0
SCENARIO = """\
name: boxed
fabric: {planes: 2, t0_per_plane: 1, t1_per_plane: 1, nics_per_t0: 2, link_delay_ns: 20us, mtu_bytes: 1024}
workload:
  - {name: pair, kind: p2p, ranks: [h000, h001], messages: 4, message_bytes: 64KiB}
expect:
  - {measure: bytes_wrong, at_most: 0}
"""


@dataclass(frozen=True)
class Store:
    """A place for images and containers that goes with the test."""

    folder: Path

    def words(self, verb: str, *rest: str) -> list[str]:
        place = [f"--root={self.folder / 'images'}", f"--runroot={self.folder / 'state'}", "--storage-driver=overlay"]
        return [str(program("buildah")), *place, verb, *rest]

    def do(self, verb: str, *rest: str) -> str:
        """Carry out one step to its end; it must go well."""
        done = subprocess.run(self.words(verb, *rest), capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout.strip()

    def build(self, containerfile: Path, tag: str, context: Path, *rest: str) -> None:
        chosen = ("--isolation=chroot", "--format=docker", f"--file={containerfile}", f"--tag={tag}")
        self.do("build", *chosen, *rest, str(context))


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    program("buildah")
    privileged()
    folder = Path(tempfile.mkdtemp(prefix="mrcfabric-image-"))
    try:
        made = Store(folder)
        yield made
        made.do("rm", "--all")
    finally:
        subprocess.run([program("umount"), "--recursive", "--lazy", folder / "images/overlay"], check=False)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def image(store: Store) -> str:
    """The name of the image."""
    base = store.folder / "Containerfile"
    base.write_text(base_image.plant(store.folder / "base"))
    store.build(base, "localhost/base", store.folder / "base")
    store.build(ROOT / "deploy/Containerfile", TAG, ROOT, "--build-arg=BASE=localhost/base")
    return TAG


@pytest.fixture(scope="module")
def container(store: Store, image: str) -> str:
    return store.do("from", image)


def inside(store: Store, container: str, files: Path, *words: str) -> list[str]:
    """A command of ours in the container; `files` are to be seen below FILES_DIR."""
    return store.words(
        "run", "--isolation=chroot", f"--volume={files}:{FILES_DIR}:ro", container, "--", "mrcfabric", *words
    )


def test_the_image_says_how_it_is_run(store: Store, image: str) -> None:
    told: dict[str, Any] = json.loads(store.do("inspect", "--type=image", image))["Docker"]["config"]
    assert (told["User"], told["Entrypoint"], told["Cmd"]) == (f"{USER}:{USER}", ["mrcfabric"], ["--help"])
    assert (told["WorkingDir"], list(told["ExposedPorts"])) == ("/run/mrcfabric", ["4790/tcp"])
    assert told["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert told["Healthcheck"]["Test"][0] == "CMD"


async def test_it_carries_the_command_and_nothing_of_the_source(store: Store, container: str, tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    os.chmod(tmp_path, 0o755)
    told = (await run(inside(store, container, tmp_path, "--version"))).well()
    # The base of this image has neither compiler nor mypy.
    assert told.startswith(f"mrcfabric {version('mrcfabric')}\ncores: pure Python (")
    assert (await run(inside(store, container, tmp_path, "validate", f"{FILES_DIR}/scenario.yaml"))).well()
    mounted = Path(store.do("mount", container))
    assert not (mounted / "source").exists()
    assert not (mounted / "wheels").exists()
    assert (mounted / "run/mrcfabric").stat().st_uid == USER


async def test_the_pods_of_the_manifests_carry_a_fabric(store: Store, image: str, tmp_path: Path) -> None:
    """Two hosts run the command of their share's pod in the image, a third the job's: every byte arrives, all ends."""
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    write_new(tmp_path / "cluster.key")
    async with cluster(hosts=2) as hosts:
        (tmp_path / "hosts.yaml").write_text(json.dumps({"hosts": {host.name: host.address for host in hosts}}))
        manifests.manifests(tmp_path / "hosts.yaml", tmp_path / "out", run=tmp_path / "scenario.yaml")
        files = projected(tmp_path / "out")

        def words(host: Host, arguments: list[str]) -> list[str]:
            return [*entering(host.init, "net"), *inside(store, store.do("from", image), files, *arguments)]

        async with AsyncExitStack() as stack:
            arguments = arguments_of(tmp_path / "out/shares.yaml")
            pods = [words(host, its) for host, its in zip(hosts, arguments, strict=True)]
            shares = [await stack.enter_async_context(_share(pod)) for pod in pods]
            (leading,) = arguments_of(tmp_path / "out/orchestrator.yaml")
            assert "verdict: HELD" in (await run(words(hosts.home, leading))).well()
            for host in hosts:
                os.kill(_service_on(host), signal.SIGTERM)
            assert [await asyncio.wait_for(share.wait(), DEADLINE_S) for share in shares] == [0, 0]


def arguments_of(manifest: Path) -> list[list[str]]:
    """What the containers of a file's workloads are told."""
    objects = yaml.safe_load_all(manifest.read_text())
    return [one["spec"]["template"]["spec"]["containers"][0]["args"] for one in objects]


def projected(manifests: Path) -> Path:
    """The files of the pods, of whom they are and for whom as a cluster has it."""
    found = Path(shutil.copytree(manifests / "files", manifests.parent / "projected"))
    shutil.copy(manifests / "secret/cluster.key", found)
    for file in found.iterdir():
        os.chown(file, 0, USER)
        file.chmod(FILE_MODE)
    for folder in (found, manifests.parent):
        folder.chmod(0o755)
    return found


@asynccontextmanager
async def _share(words: list[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """A service that can be called. With buildah the kernel ends what it runs."""
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), DEADLINE_S)
        assert b"shares this machine at" in line
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _service_on(host: Host) -> int:
    """The process of the service, of all that use the network of its host."""
    there = pids_within("net", identity(host.init, "net"))
    (found,) = (pid for pid in there if command_of(pid).startswith("mrcfabric share service"))
    return found
