"""Interpreters as a bare host has them, wheels of almost nothing, and an index that offers them."""

import asyncio
import io
import sys
import venv
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import distribution
from pathlib import Path

from orchestrator.hosts.engines.wheel import Wheel
from tests.support.cluster import Host
from tests.support.wait import eventually_true

DEPENDENCY = "tinydependency"
INDEX_PORT = 8000
DEADLINE_S = 20.0


def interpreter(folder: Path, *, with_pip: bool) -> str:
    """A Python with no packages at all, or with pip alone."""
    venv.create(folder, symlinks=True, with_pip=False)
    if with_pip:
        [packages] = folder.glob("lib/python3*/site-packages")
        # To import pip would hand the standard library's distutils to whoever imports setuptools later.
        (packages / "pip").symlink_to(Path(str(distribution("pip").locate_file("pip"))))
    return str(folder / "bin/python")


def _files(name: str, version: str, code: dict[str, str], needs: tuple[str, ...] = ()) -> dict[str, bytes]:
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {text}\n" for text in needs)
    wheel = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    texts = {**code, f"{info}/METADATA": metadata, f"{info}/WHEEL": wheel}
    record = "".join(f"{path},,\n" for path in (*texts, f"{info}/RECORD"))
    return {path: text.encode() for path, text in {**texts, f"{info}/RECORD": record}.items()}


def zipped(files: dict[str, bytes]) -> bytes:
    """The files in one archive, compressed."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return made.getvalue()


def dependency(folder: Path, version: str = "1.4") -> Path:
    """Write a wheel of the dependency into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{DEPENDENCY}-{version}-py3-none-any.whl"
    path.write_bytes(zipped(_files(DEPENDENCY, version, {f"{DEPENDENCY}/__init__.py": "X = 1\n"})))
    return path


def application(version: str = "0.1.0", needs: tuple[str, ...] = (f"{DEPENDENCY}>=1.2,<2",)) -> Wheel:
    """A wheel of something called mrcfabric, with one empty package; as a rule it needs the dependency."""
    files = _files("mrcfabric", version, {"orchestrator/__init__.py": ""}, needs)
    return Wheel(f"mrcfabric-{version}-py3-none-any.whl", version, zipped(files), f"tiny{version}", needs)


def _offer(wheels: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    links = []
    for path in sorted(wheels.glob("*.whl")):
        (folder / path.name).symlink_to(path)
        links.append(f'<a href="{path.name}">{path.name}</a>')
    (folder / "index.html").write_text("".join(links))


@asynccontextmanager
async def index(host: Host, address: str, wheels: Path) -> AsyncIterator[str]:
    """A package index that the host offers at its address, with the wheels in the folder; its URL."""
    await asyncio.to_thread(_offer, wheels, host.folder / "index/simple" / DEPENDENCY)
    server = await asyncio.create_subprocess_exec(
        *host.entering(), sys.executable, "-m", "http.server", str(INDEX_PORT),
        "--bind", address, "--directory", "index",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip

    async def answers() -> bool:
        with host.network():
            try:
                _reader, writer = await asyncio.open_connection(address, INDEX_PORT)
            except OSError:
                return False
        writer.close()
        return True

    try:
        await eventually_true(answers, DEADLINE_S)
        shown = f"[{address}]" if ":" in address else address
        yield f"http://{shown}:{INDEX_PORT}/simple"
    finally:
        server.terminate()
        await server.wait()
