"""The dialogue with a Slurm task before it becomes the program: orders go out, answers come back.

Owns the frames of that dialogue, over the pipes of srun. For `orchestrator.hosts.engines.payload` this is what a login
is under SSH. The engine decides what a broken line means. `orchestrator.hosts.engines.slurm_bootstrap` runs in the
task.
"""

import asyncio
import base64
import contextlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines import remote_script, slurm_bootstrap
from orchestrator.hosts.engines.host_facts import OLDEST_PYTHON
from orchestrator.hosts.placement.inventory import Host
from orchestrator.process.launcher import ProcessFailedError

ANSWER_WALL_S: Final = 60.0
"""How long one order may take."""
ANSWER_BYTES_MAX: Final = 1 << 20
# Any Python 3 can read this, so that an old one says that it is too old. The task ends when its input ends.
TASK: Final = f"""import os, sys
def take():
    size = b""
    while size[-1:] != b"\\n":
        size += os.read(0, 1) or sys.exit(1)
    body = bytearray()
    while len(body) < int(size):
        body += os.read(0, int(size) - len(body)) or sys.exit(1)
    return bytes(body)
if sys.version_info < {OLDEST_PYTHON}:
    sys.stdout.write('\\n{slurm_bootstrap.MARK}{{"python": [%d, %d, %d]}}\\n' % sys.version_info[:3])
else:
    exec(compile(take(), "doorstep", "exec"), {{"take": take}})
"""
"""What the task runs with `-c`."""


class LineBrokenError(Exception):
    """The task has ended, or cannot be heard."""


class NodeLine:
    """The dialogue with one task."""

    def __init__(self, host: Host, process: asyncio.subprocess.Process, on_line: Callable[[str], None]) -> None:
        """`process`: its standard input and output are the task's; its reader takes lines of ANSWER_BYTES_MAX."""
        self.host = host
        self.process = process
        self._on_line = on_line

    async def greet(self, within_s: float) -> dict[str, Any]:
        """The task's first answer: `python`, and, if that is new enough, `step` and `pid`, or `failed`.

        Raises LineBrokenError, TimeoutError.
        """
        self._write(inspect.getsource(slurm_bootstrap).encode())
        return await self._answer(within_s)

    async def order(self, order: Mapping[str, Any], within_s: float = ANSWER_WALL_S) -> dict[str, Any]:
        """Send an order and return the answer. Raises LineBrokenError, TimeoutError."""
        self._write(json.dumps(order).encode())
        return await self._answer(within_s)

    async def there(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an order of `remote_script` in the Python there. Raises what `order` raises, ProcessFailedError."""
        answer = await self.order({"do": "there", "script": inspect.getsource(remote_script), "order": dict(order)})
        if "failed" in answer:
            raise ProcessFailedError(f"host {self.host.name}: {answer['failed']}")
        found: dict[str, Any] = answer["answer"]
        return found

    async def put(self, files: Mapping[str, bytes]) -> None:
        """Write files: path -> content; only the user can read them. Raises ConfigError, and what `order` raises."""
        for path, content in files.items():
            answer = await self.order({"do": "put", "path": path, "content": base64.b64encode(content).decode()})
            if "failed" in answer:
                what = f"files cannot be copied there: {answer['failed']}"
                raise ConfigError(f"host {self.host.name}", what, "is its disk full?")

    async def run(self, words: Sequence[str], within_s: float = ANSWER_WALL_S) -> tuple[int, str]:
        """Run a command to its end. Returns its exit code (negative: a signal) and the end of its output."""
        answer = await self.order({"do": "run", "words": list(words)}, within_s)
        if "failed" in answer:
            raise ProcessFailedError(f"host {self.host.name}: {words[0]}: {answer['failed']}")
        return int(answer["code"]), str(answer["output"])

    def become(self, folder: str, modules: Sequence[str], arguments: Sequence[str], message: bytes) -> None:
        """Turn the task into the program, with the message on its standard input. Then only the program answers."""
        held = [f"{one}/{remote_script.HELD}" for one in modules]
        order = {"do": "become", "folder": folder, "modules": list(modules), "held": held, "arguments": list(arguments)}
        self._write(json.dumps(order).encode())
        self._send(message)

    def _write(self, body: bytes) -> None:
        self._send(b"%d\n" % len(body) + body)

    def _send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(ConnectionError, RuntimeError):  # it has ended already; its output says why
            self.process.stdin.write(data)

    async def _answer(self, within_s: float) -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(within_s):
            while line := await self.process.stdout.readline():
                text = line.decode(errors="replace").rstrip()
                if text.startswith(slurm_bootstrap.MARK):
                    answer: dict[str, Any] = json.loads(text.removeprefix(slurm_bootstrap.MARK))
                    return answer
                if text:  # a line that the cluster prints for every task
                    self._on_line(text)
        raise LineBrokenError
