"""Reads a log: that of a node, or of a process that nodes share.

Daemons write one line per event, the node's name first. Owns nothing but the reading; `run_folder` owns the files.
"""

import os
from collections import deque
from pathlib import Path

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from mrcfabric.nearest import nearest_hint

TAIL_BYTES_MAX = 16 << 20
"""Older lines of a longer file are not read."""


class LogView:
    """The log of one node in a run folder. Raises ConfigError when there is none."""

    def __init__(self, folder: Path, node: str) -> None:
        logs = folder / "logs"
        self._path = logs / f"{node}.log"
        if "/" in node or not self._path.exists():
            raise ConfigError(shown(node), f"has no log in {logs}", _hint(node, logs))
        self._offset = 0
        self._rest = b""

    def tail(self, count: int) -> list[str]:
        """The last `count` lines."""
        self._offset = max(0, self._path.stat().st_size - TAIL_BYTES_MAX)
        return list(deque(self.more(), maxlen=max(0, count)))

    def more(self) -> list[str]:
        """The whole lines that were added since the last call."""
        with self._path.open("rb") as log:
            if log.seek(0, os.SEEK_END) < self._offset:
                self._offset, self._rest = 0, b""  # it has been shortened (`orchestrator.process.log_bounds`)
            log.seek(self._offset)
            data = log.read()
        self._offset += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [line.decode(errors="replace") for line in whole]


def _hint(node: str, logs: Path) -> str:
    found = sorted(path.stem for path in logs.glob("*.log")) if logs.is_dir() else []
    if not found:
        return "nothing has run there"
    return nearest_hint(node, found, f"there are logs of {found[0]} to {found[-1]}")
