"""The terminal of `mrcfabric top`: a screen that follows its size and three keys, or plain lines where there is none.

Owns the terminal's state, which is given back however the block ends. What is shown is `top_view`'s.
"""

import asyncio
import contextlib
import os
import sys
import termios
import tty
from collections.abc import AsyncIterator, Iterator
from typing import Final

from rich.console import Console
from rich.live import Live

from orchestrator.api.verbs import Verbs
from orchestrator.lookout.lookout import Lookout
from orchestrator.lookout.snapshot import Snapshot
from orchestrator.lookout.top_view import ORDERS, plain, screen

PLAIN_EVERY_S: Final = 1.0


class Keys:
    """What was typed, and what it means."""

    def __init__(self) -> None:
        self.order = ORDERS[0]
        self.paused = False
        self.quit = asyncio.Event()
        self.pressed = asyncio.Event()

    def press(self, key: str) -> None:
        """One key; any other than `q`, `s`, `p` and space is nothing."""
        if key in ("q", "Q", "\x1b"):
            self.quit.set()
        elif key in ("s", "S"):
            self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        elif key in ("p", "P", " "):
            self.paused = not self.paused
        self.pressed.set()


async def run(fabric: Verbs, period_s: float, looks: int | None) -> None:
    """Look every `period_s` until `q`, or `looks` times. Raises RefusedError when the fabric has gone."""
    console = Console()
    lookout = Lookout(fabric)
    if console.is_terminal and sys.stdin.isatty():
        await _live(fabric, lookout, console, period_s, looks)
    else:
        async for shot in _looks(lookout, max(period_s, PLAIN_EVERY_S), looks):
            print(plain(shot), flush=True)


async def _looks(lookout: Lookout, period_s: float, looks: int | None) -> AsyncIterator[Snapshot]:
    number = 0
    while looks is None or number < looks:
        if number:
            await asyncio.sleep(period_s)
        yield await lookout.look()
        number += 1


async def _live(fabric: Verbs, lookout: Lookout, console: Console, period_s: float, looks: int | None) -> None:
    topology = fabric.topology
    line_bps = float(topology.nics * topology.rate_bps)
    keys, shot, number = Keys(), await lookout.look(), 1
    with _keyboard(keys), Live(console=console, screen=True, auto_refresh=False) as live:
        while not keys.quit.is_set():
            size = console.size
            view = screen(topology.name, shot, line_bps, size.width, size.height, keys.order, keys.paused)
            live.update(view, refresh=True)
            if looks is not None and number >= looks:
                return
            keys.pressed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(period_s):
                    await keys.pressed.wait()
                    continue
            if not keys.paused:
                shot, number = await lookout.look(), number + 1


@contextlib.contextmanager
def _keyboard(keys: Keys) -> Iterator[None]:
    """Keys one by one, without an echo."""
    fd, loop = sys.stdin.fileno(), asyncio.get_running_loop()

    def read() -> None:
        for key in os.read(fd, 64).decode(errors="replace"):
            keys.press(key)

    before = termios.tcgetattr(fd)
    tty.setcbreak(fd)
    loop.add_reader(fd, read)
    try:
        yield
    finally:
        loop.remove_reader(fd)
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
