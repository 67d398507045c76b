"""The fork server of a fabric without its imports: a copy of a process that has made them.

`WARM_FORK_SERVER` stands in the launcher of a process of pytest, `FORKING` in that of a command of
`tests.support.warm_command`, which has made all imports itself and is copied.

Hundreds of tests launch a fabric, and to bring up the new interpreter of its fork server costs more than the launch of
ten daemons. So one warm process for each process of pytest imports what the fork server preloads, and makes a copy of
itself for each launch. The copy is a child of whoever asked (CLONE_PARENT), as the fork server of the launcher is, and
gets its descriptors, arguments, folder, environment and limits; from there on it is the fork server itself.

The tests of the fork server and of the launcher, and every command that runs as installed, start the interpreter.

One request is one packet of JSON over a Unix SOCK_SEQPACKET pair, with two descriptors beside it: the agent's socket
and the log. The answer is the pid. The warm process ends when the caller's end is closed.
"""

import atexit
import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

MODULE: Final = "orchestrator.process.forkserver"
PACKET_BYTES_MAX: Final = 1 << 17
POLL_S: Final = 0.002
_CLONE3: Final = 435
"""The number of the system call, the same on every machine."""
_CLONE_PARENT: Final = 0x8000
_CLONE_ARGS_WORDS: Final = 8


class Started:
    """A fork server, as the launcher knows a `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                assert timeout is not None
                raise subprocess.TimeoutExpired(MODULE, timeout)
            time.sleep(POLL_S)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class WarmForkServer:
    """What stands in the launcher for the module `subprocess`."""

    DEVNULL = subprocess.DEVNULL
    TimeoutExpired = subprocess.TimeoutExpired

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._door: socket.socket | None = None
        self._owner = 0
        self._network = ""
        self._starting = threading.Lock()

    @property
    def pids(self) -> set[int]:
        """The warm process, once it is there."""
        return set() if self._process is None else {self._process.pid}

    def Popen(self, command: Sequence[str], **how: Any) -> Any:  # noqa: N802 - the name that it stands for
        """A copy for the command of a fork server; anything else, and what no copy can be, is started as it is."""
        if MODULE in command and threading.current_thread() is threading.main_thread():
            with self._starting:
                pid = self._copy(list(command), how)
            if pid:
                return Started(pid)
        return subprocess.Popen(command, **how)

    def _copy(self, command: list[str], how: dict[str, Any]) -> int:
        """The pid of the copy; 0 where there can be none."""
        door = self._opened()
        if self._network != _network():
            return 0
        request = {
            "command": command,
            "folder": os.getcwd(),
            "environment": dict(os.environ),
            "files": resource.getrlimit(resource.RLIMIT_NOFILE),
            "cpus": sorted(os.sched_getaffinity(0)),
        }
        output = how["stdout"]
        with open(os.devnull, "wb") if output is None else contextlib.nullcontext(output) as log:
            socket.send_fds(door, [json.dumps(request).encode()], [how["pass_fds"][0], log.fileno()])
        return int(door.recv(PACKET_BYTES_MAX))

    def _opened(self) -> socket.socket:
        if self._door is None or self._owner != os.getpid():
            self._owner, self._network = os.getpid(), _network()
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


def _network() -> str:
    """The network that this thread is in: some tests go into another one, and the warm process does not."""
    return os.readlink("/proc/thread-self/ns/net")


WARM_FORK_SERVER = WarmForkServer()


class Forking:
    """The same in a process that has made all imports itself."""

    DEVNULL = subprocess.DEVNULL
    TimeoutExpired = subprocess.TimeoutExpired

    def Popen(self, command: Sequence[str], **how: Any) -> Any:  # noqa: N802 - the name that it stands for
        """This process forked, for the command of a fork server; anything else is started as it is."""
        if MODULE not in command or threading.active_count() > 1:
            return subprocess.Popen(command, **how)
        pid = os.fork()
        if pid == 0:
            _in_the_copy(command, how["pass_fds"][0], how["stdout"])
        return Started(pid)


def _in_the_copy(command: Sequence[str], agent: int, output: Any) -> NoReturn:
    """Leave behind all that belongs to the command, and become the fork server."""
    log = os.open(os.devnull, os.O_WRONLY) if output is None else output.fileno()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in (1, 2, agent, log, nothing):
            # Not closed: an object of the command closes its own number some day, which may have another meaning then.
            with contextlib.suppress(OSError):
                os.dup2(nothing, number, inheritable=False)
    os.close(nothing)
    _become(command, agent, log)


FORKING = Forking()


# In the warm process.


def serve(door: socket.socket) -> None:
    """Make a copy for every request, until the caller has gone."""
    kernel = ctypes.CDLL(None, use_errno=True)
    how = (ctypes.c_uint64 * _CLONE_ARGS_WORDS)(_CLONE_PARENT)
    while True:
        packet, fds, _flags, _address = socket.recv_fds(door, PACKET_BYTES_MAX, 2)
        if not packet:
            return
        pid = kernel.syscall(_CLONE3, ctypes.byref(how), ctypes.sizeof(how))
        if pid == 0:
            door.close()
            request = json.loads(packet)
            os.chdir(request["folder"])
            os.environ.clear()
            os.environ.update(request["environment"])
            resource.setrlimit(resource.RLIMIT_NOFILE, request["files"])
            os.sched_setaffinity(0, request["cpus"])
            _become(request["command"], *fds)
        door.send(str(max(0, pid)).encode())
        for fd in fds:
            os.close(fd)


def _become(command: Sequence[str], agent: int, log: int) -> NoReturn:
    """The fork server, as its own interpreter would be it."""
    from orchestrator.process import forkserver

    os.setsid()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for target in (1, 2):
        os.dup2(log, target)
    os.close(log)
    sys.argv = [MODULE, str(agent), *command[command.index(MODULE) + 2 :]]
    code = 1
    try:
        forkserver.main()
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def main() -> None:
    """`python -m tests.support.warm_fork_server DESCRIPTOR`."""
    from orchestrator.hosts.placement.layout import PRELOADED
    from orchestrator.process import forkserver

    door = socket.socket(fileno=int(sys.argv[1]))
    door.set_inheritable(False)
    forkserver.preload(list(PRELOADED))
    serve(door)


if __name__ == "__main__":
    main()
