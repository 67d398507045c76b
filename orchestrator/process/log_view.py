"""Reads a node's log: its own file, or its lines in the file of the process that it shares.

Daemons write one line per event, the node's name first. Owns nothing but the reading; `run_folder` owns the files.
"""

import difflib
import os
from collections import deque
from pathlib import Path

from mrcfabric.errors import ConfigError
from mrcfabric.naming import parse_name, shown

TAIL_BYTES_MAX = 16 << 20
"""Older lines of a longer file are not read."""
HEAD_BYTES = 1 << 18
"""Every daemon of a shared process writes a line within the first so many bytes of its log."""


class LogView:
    """The log of one node in a run folder. Raises ConfigError when there is none."""

    def __init__(self, folder: Path, node: str) -> None:
        logs = folder / "logs"
        self._path = logs / f"{node}.log"
        self._prefix = ""
        parsed = parse_name(node)
        if parsed is not None and parsed.tier != "nic" and not self._path.exists():
            self._prefix = f"{node} "
            shared = (path for path in sorted(logs.glob(f"p{parsed.plane}*.log")) if _begins(path, self._prefix))
            self._path = next(shared, self._path)
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
        lines = [line.decode(errors="replace") for line in whole]
        return [line for line in lines if line.startswith(self._prefix)]


def _begins(path: Path, prefix: str) -> bool:
    """Whether one of the first lines begins with this."""
    with path.open("rb") as log:
        return any(line.startswith(prefix.encode()) for line in log.read(HEAD_BYTES).splitlines())


def _hint(node: str, logs: Path) -> str:
    found = sorted(path.stem for path in logs.glob("*.log")) if logs.is_dir() else []
    if not found:
        return "nothing has run there"
    near = difflib.get_close_matches(node, found, n=1)
    return f"nearest is {near[0]}" if near else f"there are logs of {found[0]} to {found[-1]}"
