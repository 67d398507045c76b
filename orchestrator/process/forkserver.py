"""The fork server: a small process that has imported what every daemon needs, and forks one child per request.

It owns the births and deaths of a fabric's processes and nothing else. The agent (through
`orchestrator.process.launcher`) says what to start with which descriptors, and hears of every death with its status.
The agent starts it as a new interpreter, before any thread or event loop, so that forking is safe and all children
share its pages.

Nothing outlives the agent, however it ends. The kernel kills the fork server with the agent (PR_SET_PDEATHSIG), and
every child with the fork server, stopped ones too. The fork server also ends when the agent's socket is closed.

The protocol: one Unix SOCK_SEQPACKET pair, one msgpack map per packet, descriptors beside it (SCM_RIGHTS).
    hold    {id} + descriptors to keep for all children -> {id, fds: their numbers here}
    release {id, fds}: close held descriptors -> {id}
    preload {id, modules}: import for children to come -> {id}
    spawn   {id, entry, log, body_bytes} + the argument (a memfd with msgpack), then the child's own -> {id, pid}
    kill    {id, pid, signal}: to a child that has not been reaped -> {id, alive}
and, unasked, {died: pid, status: wait status}. A failed request is answered {id, error}.

A child that several daemons share (`mrcfabric.shared_process`) is spawned with {shared: true}: the last of its own
descriptors is its end of a channel. Then
    pass    {id, pid, order} + descriptors of the order -> {id, alive}
hands an order to it, and what it says comes unasked as {said: pid, ...}; its death comes after all that it has said.
"""

import contextlib
import ctypes
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import msgpack
from setproctitle import setproctitle

from orchestrator.process.memory_holes import fill_holes

PACKET_BYTES_MAX = 64 * 1024
"""Longest request. Longer data travels in a memfd."""
FDS_MAX = 250
"""Most descriptors beside one packet; the kernel's limit is 253."""

_PR_SET_PDEATHSIG = 1
# Looked up before any fork: doing so in a child would make it copy 2 MB of shared pages.
_prctl = ctypes.CDLL(None).prctl
_EXIT_FAILED = 1
_FILLING: list[list[object]] = []
"""What fills the holes between the objects of this process."""


def die_with_parent(parent_pid: int) -> None:
    """Ask the kernel to kill this process when its parent dies. Exits at once if the parent is dead already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(_EXIT_FAILED)


class ForkServer:
    """The server's loop and its children."""

    def __init__(self, agent: socket.socket) -> None:
        self._agent = agent
        self._children: set[int] = set()
        self._channels: dict[int, socket.socket] = {}
        """Child that daemons share -> our end of its channel."""
        self._selector = selectors.DefaultSelector()
        self._held: set[int] = set()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._ops: dict[str, Callable[[dict[str, Any], list[int]], dict[str, Any]]] = {
            "hold": self._hold,
            "release": self._release,
            "preload": self._preload,
            "spawn": self._spawn,
            "kill": self._kill,
            "pass": self._pass,
        }

    def serve(self) -> None:
        """Answer until the agent closes its end. Then kill and reap all children."""
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        with self._selector as selector:
            selector.register(self._agent, selectors.EVENT_READ)
            selector.register(self._wake_read, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj: key.data for key, _ in selector.select()}
                if self._wake_read in ready:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_read, 4096)
                    self._reap()
                for pid in ready.values():
                    if pid is not None:
                        self._listen(pid)
                if self._agent in ready and not self._answer():
                    break
        self._kill_all()

    def _answer(self) -> bool:
        """Carry out one request. Returns False when the agent is gone."""
        try:
            packet, fds, _flags, _address = socket.recv_fds(self._agent, PACKET_BYTES_MAX, FDS_MAX)
        except ConnectionError:
            return False
        if not packet:
            return False
        request = msgpack.unpackb(packet)
        try:
            answer = self._ops[request["op"]](request, fds)
        except (OSError, ImportError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
            if isinstance(error, OSError):
                answer["errno"] = error.errno
        return self._tell(answer | {"id": request["id"]})

    def _tell(self, message: dict[str, Any]) -> bool:
        try:
            self._agent.sendall(msgpack.packb(message))
        except ConnectionError:
            return False
        return True

    def _hold(self, _request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        self._held.update(fds)
        return {"fds": fds}

    def _release(self, request: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        for fd in request["fds"]:
            self._held.remove(fd)
            os.close(fd)
        return {}

    def _preload(self, request: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        preload(request["modules"])
        return {}

    def _spawn(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        self_pid = os.getpid()
        try:
            # Not in the child: that could tell nobody why it has no log.
            log = os.open(request["log"] or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError:
            for fd in fds:
                os.close(fd)
            raise
        bound_read, bound_write = os.pipe()
        channel = None
        if request.get("shared"):
            channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            channel.setblocking(False)
            fds = [*fds, theirs.detach()]
        pid = os.fork()
        if pid == 0:
            if channel is not None:
                channel.close()
            self._become(request, fds, self_pid, (bound_read, bound_write), log)
        self._children.add(pid)
        if channel is not None:
            self._channels[pid] = channel
            self._selector.register(channel, selectors.EVENT_READ, pid)
        for fd in (*fds, bound_write, log):
            os.close(fd)
        # A child that is stopped before it has called `die_with_parent` would outlive us: wait until it has.
        os.read(bound_read, 1)
        os.close(bound_read)
        return {"pid": pid}

    def _become(
        self, request: dict[str, Any], fds: list[int], parent_pid: int, bound: tuple[int, int], log: int
    ) -> NoReturn:
        """In the child: set up its signals and its log, then run the entry function. Never returns."""
        status = _EXIT_FAILED
        try:
            die_with_parent(parent_pid)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for fd in (self._agent.fileno(), self._wake_read, self._wake_write, *bound):
                os.close(fd)
            for channel in self._channels.values():
                channel.close()
            _redirect(log)
            module, _, name = request["entry"].partition(":")
            body, *own = fds
            arguments = msgpack.unpackb(os.pread(body, request["body_bytes"], 0), strict_map_key=False)
            os.close(body)
            gc.enable()
            entry = getattr(importlib.import_module(module), name)
            result = entry(arguments, own)
            status = result if isinstance(result, int) else 0
        except SystemExit as done:
            status = done.code if isinstance(done.code, int) else _EXIT_FAILED if done.code else 0
        except KeyboardInterrupt:
            status = 128 + signal.SIGINT
        except BaseException:  # nothing may escape into the server's own loop
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def _kill(self, request: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        alive = request["pid"] in self._children
        if alive:
            os.kill(request["pid"], request["signal"])
        return {"alive": alive}

    def _pass(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        channel = self._channels.get(request["pid"])
        try:
            if channel is not None:
                socket.send_fds(channel, [msgpack.packb(request["order"])], fds)
        except (BrokenPipeError, ConnectionError):
            channel = None  # it has just died, and will be reaped
        finally:
            for fd in fds:
                os.close(fd)
        return {"alive": channel is not None}

    def _listen(self, pid: int) -> None:
        """Pass on what a child that daemons share has said, up to its end."""
        channel = self._channels.get(pid)
        while channel is not None:
            try:
                packet = channel.recv(PACKET_BYTES_MAX)
            except BlockingIOError:
                return
            except ConnectionError:
                packet = b""
            if not packet:
                self._selector.unregister(channel)
                channel.close()
                del self._channels[pid]
                return
            self._tell({**msgpack.unpackb(packet), "said": pid})

    def _reap(self) -> None:
        while self._children:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._children.discard(pid)
            self._listen(pid)
            self._tell({"died": pid, "status": status})

    def _kill_all(self) -> None:
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
        for pid in self._children:
            os.waitpid(pid, 0)


def preload(modules: list[str]) -> None:
    """Import modules for later children, and let these copy few of their pages.

    The garbage collector never touches them, and new objects do not go between those that are there.

    `module:function` is also called.
    """
    for name in modules:
        module, _, function = name.partition(":")
        loaded = importlib.import_module(module)
        if function:
            getattr(loaded, function)()
    gc.collect()
    _FILLING.extend(fill_holes())
    gc.freeze()


def _redirect(log: int) -> None:
    """Read standard input from /dev/null; append both outputs to the log file."""
    nowhere = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nowhere), (1, log), (2, log)):
        os.dup2(source, target)
    for fd in (nowhere, log):
        os.close(fd)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - a process has its standard files for life
    sys.stdout = open(1, "w", closefd=False, buffering=1)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115


def main() -> None:
    """`python -m orchestrator.process.forkserver SOCKET_FD AGENT_PID TITLE MODULE...`: the modules are preloaded."""
    agent = socket.socket(fileno=int(sys.argv[1]))
    agent.set_inheritable(False)
    die_with_parent(int(sys.argv[2]))
    gc.disable()
    # A fork has none of the threads that libraries start here. The one of NumPy's BLAS waits at its start by spinning.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    setproctitle(sys.argv[3])
    preload(sys.argv[4:])
    ForkServer(agent).serve()


if __name__ == "__main__":
    main()
