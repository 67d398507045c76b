"""The terminal of `mrcfabric top`: a screen that follows its size and three keys, or plain lines without a terminal.

Owns the terminal's state, which it restores however the block ends. `top_view` makes the contents.
"""

import asyncio
import contextlib
import os
import signal
import sys
import termios
import time
import tty
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from rich.console import Console
from rich.live import Live

from orchestrator.cli.top_view import BY_PAUSE, ORDERS, plain, screen
from orchestrator.fabric.verbs import Verbs
from orchestrator.live.live_view import LiveView
from orchestrator.live.snapshot import Snapshot
from orchestrator.planning.abilities import has_evs, lossless

PLAIN_EVERY_S: Final = 1.0
LATE_WALL_S: Final = 1.0
"""After this time a look without an answer is reported as late."""
QUIT: Final = "q"


class Keys:
    """The typed keys, and the state that they have set."""

    def __init__(self, pauses: bool = False) -> None:
        """`pauses`: whether links can be sorted by them."""
        self._orders = (*ORDERS, BY_PAUSE) if pauses else ORDERS
        self.order = self._orders[0]
        self.paused = False
        self.quit = asyncio.Event()
        self.pressed = asyncio.Event()

    def press(self, key: str) -> None:
        """Take one key; ignores any but `q`, Escape, `s`, `p` and space."""
        if key in ("q", "Q", "\x1b"):
            self.quit.set()
        elif key in ("s", "S"):
            self.order = self._orders[(self._orders.index(self.order) + 1) % len(self._orders)]
        elif key in ("p", "P", " "):
            self.paused = not self.paused
        self.pressed.set()

    async def wait_with(self, other: "asyncio.Task[Any] | None", wall_s: float) -> None:
        """Wait until a key is pressed, another task is done, or `wall_s` have passed."""
        pressed = asyncio.create_task(self.pressed.wait())
        await asyncio.wait([pressed] if other is None else [pressed, other], timeout=wall_s,
                           return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
        pressed.cancel()
        self.pressed.clear()


async def run(fabric: Verbs, period_s: float, looks: int | None) -> None:
    """Look every `period_s` until `q`, or `looks` times. Raises RefusedError when the fabric has gone."""
    console = Console()
    live_view = LiveView(fabric)
    if console.is_terminal and not console.is_dumb_terminal and sys.stdin.isatty():
        await _live(fabric, live_view, console, period_s, looks)
    else:
        async for shot in _looks(live_view, max(period_s, PLAIN_EVERY_S), looks):
            print(plain(shot, has_evs(fabric.topology)), flush=True)


async def _looks(live_view: LiveView, period_s: float, looks: int | None) -> AsyncIterator[Snapshot]:
    number = 0
    while looks is None or number < looks:
        if number:
            await asyncio.sleep(period_s)
        yield await live_view.look()
        number += 1


async def _live(fabric: Verbs, live_view: LiveView, console: Console, period_s: float, looks: int | None) -> None:
    topology = fabric.topology
    line_bps = float(topology.nics * topology.rate_bps)
    title = f"{topology.name} ({topology.system_name})"
    keys, shot, number = Keys(lossless(topology)), await live_view.look(), 1
    looking: asyncio.Task[Snapshot] | None = None
    asked_s = time.monotonic()
    drawn: tuple[int, int, int, str, str] | None = None
    with _keyboard(keys), Live(console=console, screen=True, auto_refresh=False) as live:
        while not keys.quit.is_set():
            late = looking is not None and time.monotonic() - asked_s >= LATE_WALL_S
            size, state = console.size, "NO ANSWER" if late else "PAUSED" if keys.paused else ""
            # Draw only changes: drawing costs more than looking.
            if drawn != (picture := (number, size.width, size.height, keys.order, state)):
                drawn, view = picture, screen(title, shot, line_bps, *picture[1:], has_evs(topology))
                live.update(view, refresh=True)
            if looks is not None and number >= looks:
                return
            left_s = asked_s + period_s - time.monotonic()
            if looking is None and left_s <= 0 and not keys.paused:
                looking, asked_s = asyncio.create_task(live_view.look()), time.monotonic()
            # Keys and the size of the terminal are handled even while the agent does not answer.
            await keys.wait_with(looking, LATE_WALL_S if looking is not None or left_s <= 0 else left_s)
            if looking is not None and looking.done():
                shot, number, looking = looking.result(), number + 1, None
    if looking is not None:
        looking.cancel()


@contextlib.contextmanager
def _keyboard(keys: Keys) -> Iterator[None]:
    """Read keys one by one, without an echo. SIGTERM, and a terminal that has gone, count as the key that quits."""
    fd, loop = sys.stdin.fileno(), asyncio.get_running_loop()

    def read() -> None:
        try:
            typed = os.read(fd, 64).decode(errors="replace")
        except OSError:
            typed = ""
        for key in typed or QUIT:
            keys.press(key)

    before = termios.tcgetattr(fd)
    tty.setcbreak(fd)
    loop.add_reader(fd, read)
    loop.add_signal_handler(signal.SIGTERM, keys.press, QUIT)
    loop.add_signal_handler(signal.SIGWINCH, keys.pressed.set)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        loop.remove_signal_handler(signal.SIGWINCH)
        loop.remove_reader(fd)
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
