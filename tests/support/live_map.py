"""A fabric that runs for real behind its command line, is at work, and has a live map: for tests and for a picture.

Owns the starting and ending of the fabric, of the work and of the map's server. Who opens the page is the browser's
side: `opened` gives it one that keeps what it complained of and whom it asked.
"""

import asyncio
import contextlib
import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from orchestrator.api.fabric import AttachedFabric
from tests.orchestrator.running import MRCFABRIC, ask, run

SCREENSHOTS: str = "MRCFABRIC_SCREENSHOTS"
"""Names the folder in which tests keep what pages looked like; without it that is the test's own."""
READY_S = 60.0


@contextlib.contextmanager
def detached(folder: Path, flags: Sequence[str]) -> Iterator[Path]:
    """`mrcfabric up FLAGS --detach` in a folder, and `down` at the end; the folder that it runs in."""
    said = ask(folder, "up", *flags, "--detach")
    found = re.search(r"^  folder +(\S+)", said, re.MULTILINE)
    assert found is not None, said
    try:
        yield folder / found[1]
    finally:
        run(folder, "down", "--run-dir", found[1])


@contextlib.contextmanager
def at_work(run_dir: Path, kind: str, figures: Mapping[str, Any]) -> Iterator[None]:
    """All NICs of a fabric run a program until the block ends."""
    begun, over = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()
    failed: list[BaseException] = []

    async def work() -> None:
        async with AttachedFabric.open(run_dir=run_dir) as fabric:
            await fabric.start(kind, figures=figures)
            begun.set()
            await over.wait()

    def live() -> None:
        try:
            loop.run_until_complete(work())
        except BaseException as error:
            failed.append(error)
            begun.set()

    thread = threading.Thread(target=live)
    thread.start()
    assert begun.wait(READY_S)
    try:
        if failed:
            raise failed[0]
        yield
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


@dataclass(frozen=True, slots=True)
class Served:
    """A map's server."""

    process: "subprocess.Popen[str]"
    url: str
    """Of the page, with the token."""

    @property
    def origin(self) -> str:
        """Without the token, and without the slash."""
        return self.url.split("/#")[0]

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.origin.rpartition(":")[2])


@contextlib.contextmanager
def served(run_dir: Path, *flags: str) -> Iterator[Served]:
    """`mrcfabric web` of a fabric; ended at the end, if it has not been before."""
    command = [MRCFABRIC, "web", "--run-dir", str(run_dir), *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Served(process, process.stdout.readline().split()[-1])
        finally:
            process.terminate()


@dataclass(slots=True)
class Opened:
    """A page of the map, and what went on in it."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    """Errors of the console, and exceptions that nobody caught."""
    asked: list[str] = field(default_factory=list)
    """Addresses of everything that it asked for."""

    def state_of(self, name: str, state: str) -> None:
        """Wait until a part of the picture is in a state."""
        expect(self.page.locator(f'[data-part="{name}"]')).to_have_attribute(
            "data-state", state, timeout=1000 * READY_S
        )

    def strangers(self, origin: str) -> list[str]:
        """What it asked for elsewhere than at its server."""
        own = (f"{origin}/", f"{origin.replace('http', 'ws', 1)}/", "data:", "blob:")
        return [url for url in self.asked if not url.startswith(own)]

    def picture(self, folder: Path, name: str) -> Path:
        """Keep what it looks like; the file."""
        path = Path(os.environ.get(SCREENSHOTS, folder)) / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path)
        return path


@contextlib.contextmanager
def opened(browser: Browser, url: str, width: int = 1280, height: int = 800, **look: Any) -> Iterator[Opened]:
    """The page at an address, live; `look` are settings of the browser as `color_scheme`."""
    page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce", **look)
    one = Opened(page)
    page.on("pageerror", lambda error: one.complaints.append(str(error)))
    page.on("console", lambda said: one.complaints.append(said.text) if said.type == "error" else None)
    page.on("request", lambda request: one.asked.append(request.url))
    page.on("websocket", lambda socket: one.asked.append(socket.url))
    try:
        page.goto(url)
        expect(page.locator("#link-state")).to_have_text("live", timeout=1000 * READY_S)
        yield one
    finally:
        page.close()


def click_cable(page: Page, name: str, share: float = 0.3) -> None:
    """Click a link at a share of its way up; at a third cables seldom cross."""
    x, y = page.evaluate(
        """([name, share]) => {
            const path = document.querySelector(`[data-part="${name}"]`);
            const point = path.getPointAtLength(path.getTotalLength() * share);
            const box = path.ownerSVGElement.getBoundingClientRect();
            return [box.left + point.x, box.top + point.y];
        }""",
        [name, share],
    )
    page.mouse.click(x, y)
