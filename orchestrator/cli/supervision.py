"""Tells the supervisor that started this process that it is ready, alive, or about to end.

Owns the protocol of `sd_notify(3)`, datagrams of text to a Unix socket that the environment names. Without a supervisor
nothing happens.
"""

import asyncio
import contextlib
import os
import socket
from typing import Final

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
_ALIVE: Final = "WATCHDOG=1"


def tell(*assignments: str) -> None:
    """Send assignments such as READY. Errors are ignored: only the supervisor misses the message."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notices,
        contextlib.suppress(OSError),
    ):
        notices.setblocking(False)
        notices.sendto("\n".join(assignments).encode(), address)


def watchdog_s() -> float | None:
    """How long we may be silent before the supervisor takes us for hung; None when it does not watch us."""
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    watched = os.environ.get("WATCHDOG_PID", str(os.getpid()))
    if not microseconds.isdecimal() or watched != str(os.getpid()):
        return None
    return int(microseconds) / 1e6 or None


async def stay_watched() -> None:
    """Tell the supervisor that the loop runs, as often as it asks for; returns at once if it does not watch us."""
    while (within_s := watchdog_s()) is not None:
        tell(_ALIVE)
        await asyncio.sleep(within_s / 2)
