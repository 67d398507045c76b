"""Every log in a run folder has a bound: one that has grown beyond it keeps its end, and a line says what went.

Owns the bound. Whoever writes has opened its log to append, and notices nothing.
"""

import asyncio
import os
from pathlib import Path
from typing import Final

LOG_BYTES_MAX: Final = 8 << 20
"""Of one log; looked at once in `LOOK_WALL_S`."""
KEPT_BYTES: Final = 1 << 20
LOOK_WALL_S: Final = 1.0


def bounded(log: Path, most: int = LOG_BYTES_MAX, kept: int = KEPT_BYTES) -> int:
    """Shorten a log that is longer than `most` to a line and its last `kept` bytes, whole lines; how many went.

    What is written in between is lost. A log that cannot be read or written stays as it is.
    """
    try:
        if log.stat().st_size <= most:
            return 0
        with log.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(size - kept)
            tail = file.read(kept)
            tail = tail[tail.find(b"\n") + 1 :]  # all of it, when it is one line
            gone = size - len(tail)
            # Those who append go on behind what is written here.
            file.truncate(0)
        with log.open("ab") as file:
            file.write(f"... {gone} bytes were here: a log keeps {kept} of more than {most} ...\n".encode() + tail)
    except OSError:
        return 0
    return gone


async def keep(folder: Path) -> None:
    """Look after all logs in a folder; until cancelled."""
    while True:
        await asyncio.sleep(LOOK_WALL_S)
        look_after(folder)


def look_after(folder: Path) -> None:
    """One look at all logs in a folder."""
    for log in folder.glob("*.log"):
        bounded(log)
