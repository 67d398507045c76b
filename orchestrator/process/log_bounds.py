"""Bounds every log in a run folder: a log that has grown too long keeps its end, and a line says how much went.

Owns the bound. A process that writes has opened its log to append, and notices nothing.
"""

import asyncio
import os
from pathlib import Path
from typing import Final

LOG_BYTES_MAX: Final = 8 << 20
"""The bound of one log, checked every `LOOK_WALL_S`."""
KEPT_BYTES: Final = 1 << 20
LOOK_WALL_S: Final = 1.0


def bounded(log: Path, most: int = LOG_BYTES_MAX, kept: int = KEPT_BYTES) -> int:
    """Shorten a log over `most` bytes to a line and its last `kept` bytes, in whole lines. Returns how many went.

    Loses what a process writes meanwhile. Leaves a log alone that cannot be read or written.
    """
    try:
        if log.stat().st_size <= most:
            return 0
        with log.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(size - kept)
            tail = file.read(kept)
            tail = tail[tail.find(b"\n") + 1 :]  # all of it, if it is a single line
            gone = size - len(tail)
            # Processes that append go on behind what is written here.
            file.truncate(0)
        with log.open("ab") as file:
            file.write(f"... {gone} bytes were here: a log keeps {kept} of more than {most} ...\n".encode() + tail)
    except OSError:
        return 0
    return gone


async def keep(folder: Path) -> None:
    """Shorten the logs in a folder again and again, until cancelled."""
    while True:
        await asyncio.sleep(LOOK_WALL_S)
        look_after(folder)


def look_after(folder: Path) -> None:
    """Shorten the logs in a folder that are too long."""
    for log in folder.glob("*.log"):
        bounded(log)
