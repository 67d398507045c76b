"""`mrcfabric` as a process of its own that need not import everything first: forked from one that has.

The tests run hundreds of commands, and an interpreter with our modules takes longer to come up than most of them need.
The warm process imports them once for each process of pytest, and forks for each command; arguments, folder,
environment and standard files are the caller's. What is tested about starting, signals or terminals starts the
installed program itself (`tests.orchestrator.running.MRCFABRIC`).

One request is one packet of JSON over a Unix SOCK_SEQPACKET pair, with three descriptors beside it: standard output,
standard error, and where to write the exit code. The warm process ends when the caller's end is closed.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from setproctitle import setproctitle

from orchestrator.cli.__main__ import GARBAGE_LOOKED_FOR_AFTER
from tests.support.warm_fork_server import FORKING

MRCFABRIC = str(Path(sys.executable).with_name("mrcfabric"))
PACKET_BYTES_MAX = 1 << 17
IMPORTED = (
    "asyncio", "aiohttp", "numpy", "rich.console", "rich.live", "uvloop", "yaml",
    "orchestrator.client.agent_client", "orchestrator.client.agent_fabric", "orchestrator.captures.capture",
    "orchestrator.fabric.launched", "orchestrator.measures.judge", "orchestrator.hosts.placement.inventory_file",
    "orchestrator.apps.perf",
    "orchestrator.runs.runner", "orchestrator.runs.backends", "orchestrator.scenario.resolve", "orchestrator.apps.send",
    "orchestrator.tracing.follower", "orchestrator.cli.up", "orchestrator.hosts.warmup",
)  # fmt: skip
"""What commands import when they run, beside what the command line itself does."""
_FAILED_BY_FLUSHING = 120


class WarmCommand:
    """The caller's end: one warm process for this one, started when first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._door: socket.socket | None = None
        self._owner = 0
        self._starting = threading.Lock()

    @property
    def pids(self) -> set[int]:
        """The warm process, once it is there."""
        return set() if self._process is None else {self._process.pid}

    def run(self, arguments: Sequence[str], folder: Path, wall_s: float) -> subprocess.CompletedProcess[str]:
        """`mrcfabric ARGUMENTS` in a folder, with nothing to read; raises TimeoutExpired after `wall_s`."""
        request = {"arguments": list(arguments), "folder": str(folder), "environment": dict(os.environ)}
        pipes = [os.pipe() for _ in range(3)]
        try:
            socket.send_fds(self._opened(), [json.dumps(request).encode()], [write for _, write in pipes])
        finally:
            for _, write in pipes:
                os.close(write)
        found = [b"", b"", b""]
        readers = [threading.Thread(target=_read, args=(found, at, read)) for at, (read, _) in enumerate(pipes)]
        for reader in readers:
            reader.start()
        readers[2].join(wall_s)
        told = json.loads(found[2]) if found[2] else None
        for reader in readers[:2]:
            reader.join(wall_s)
        if told is None or any(reader.is_alive() for reader in readers):
            raise subprocess.TimeoutExpired(["mrcfabric", *arguments], wall_s)
        out, err = (text.decode().replace("\r\n", "\n") for text in found[:2])
        return subprocess.CompletedProcess([MRCFABRIC, *arguments], told, out, err)

    def _opened(self) -> socket.socket:
        with self._starting:
            if self._door is None or self._owner != os.getpid():
                self._owner = os.getpid()
                self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    self._process = subprocess.Popen(
                        [sys.executable, "-m", __name__, str(theirs.fileno())],
                        cwd=Path(__file__).parents[2], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                        start_new_session=True,
                    )  # fmt: skip
                atexit.register(self.close)
            return self._door

    def close(self) -> None:
        """End the warm process."""
        if self._door is not None and self._process is not None and self._owner == os.getpid():
            self._door.close()
            self._process.wait()
            self._door = self._process = None


def _read(found: list[bytes], at: int, descriptor: int) -> None:
    with open(descriptor, "rb") as pipe:
        found[at] = pipe.read()


WARM = WarmCommand()


# In the warm process.


def serve(door: socket.socket) -> None:
    """Fork for every request, until the caller has gone."""
    while True:
        _bury()
        packet, fds, _flags, _address = socket.recv_fds(door, PACKET_BYTES_MAX, 3)
        if not packet:
            return
        for fd in fds:
            os.set_inheritable(fd, False)
        if os.fork() == 0:
            door.close()
            _stand_by(json.loads(packet), fds)
        for fd in fds:
            os.close(fd)


def _bury() -> None:
    """Those that have stood by to the end."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _stand_by(request: dict[str, Any], fds: list[int]) -> NoReturn:
    """Fork the command, and tell how it ended."""
    out, err, told = fds
    command = os.fork()
    if command == 0:
        os.close(told)
        _become(request, out, err)
    for fd in (out, err):
        os.close(fd)
    _, status = os.waitpid(command, 0)
    os.write(told, json.dumps(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(request: dict[str, Any], out: int, err: int) -> NoReturn:
    """What the script of the installed command does, and how an interpreter ends."""
    for source, target in ((out, 1), (err, 2)):
        os.dup2(source, target)
        os.close(source)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - a process has its standard files for life
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace")  # noqa: SIM115
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.modules["__main__"].__package__ = None  # by it the command line would call itself `python -m` something
    sys.argv = [MRCFABRIC, *request["arguments"]]
    gc.set_threshold(*GARBAGE_LOOKED_FOR_AFTER)
    gc.enable()
    code = 1
    try:
        from orchestrator.cli.main import main
        from orchestrator.process import launcher

        launcher.subprocess = FORKING  # type: ignore[assignment]
        code = main()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else 1 if done.code else 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            code = _FAILED_BY_FLUSHING
        os._exit(code)


def main() -> None:
    """`python -m tests.support.warm_command DESCRIPTOR`."""
    door = socket.socket(fileno=int(sys.argv[1]))
    door.set_inheritable(False)
    gc.disable()
    setproctitle("mrcfabric of tests")  # a command can name itself only if the memory of the name was found before
    commands = importlib.import_module("orchestrator.cli.commands")
    for module in pkgutil.iter_modules(commands.__path__):
        importlib.import_module(f"orchestrator.cli.commands.{module.name}")
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    serve(door)


if __name__ == "__main__":
    main()
