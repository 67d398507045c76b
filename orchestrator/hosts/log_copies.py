"""Copies the logs of other hosts into the leader's run folder, where people read logs.

Owns how much of each log has been copied. `orchestrator.hosts.cluster` decides when to copy.
"""

import asyncio
from collections import defaultdict
from pathlib import Path

from orchestrator.hosts.remote_share import RemoteShare

COPIED_BYTES_MAX = 16 << 20
"""The first copy of a longer log takes its end only. Later copies take everything that was added."""
PART_BYTES = 1 << 20


class LogCopies:
    """The copies of one fabric, in the folder of its logs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copied: dict[Path, int] = {}
        self._turns: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def fetch(self, share: RemoteShare, process: str, name: str) -> None:
        """Append to the copy `name` what was added to the log of `process` since the last copy.

        Raises ConfigError (there is none), ProcessFailedError (the host is lost), OSError (the copy cannot be written).
        """
        path = self._folder / f"{name}.log"
        async with self._turns[path]:
            _part, size = await share.read(f"logs/{process}.log", 0, 0)
            if path not in self._copied:
                self._copied[path] = max(0, size - COPIED_BYTES_MAX)
            elif size < self._copied[path]:
                self._copied[path] = 0  # the log is shorter than its copy: its host has lost what it had
            while True:
                part, size = await share.read(f"logs/{process}.log", self._copied[path], PART_BYTES)
                if not part:
                    return
                with path.open("ab") as copy:
                    copy.write(part)
                self._copied[path] += len(part)
