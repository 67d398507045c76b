"""Entry functions for children of the fork server in tests."""

import os
import socket
import sys
import time
from typing import Any

import msgpack


def echo(arguments: Any, fds: list[int]) -> int:
    """Write the arguments, the own pid and the parent's to the first descriptor."""
    os.write(fds[0], msgpack.packb({"arguments": arguments, "pid": os.getpid(), "parent": os.getppid()}))
    return 0


def exit_with(code: int, _fds: list[int]) -> int:
    """End with the status asked for, after a last word."""
    print(f"leaving with {code}", file=sys.stderr)
    return code


def fail(_arguments: Any, _fds: list[int]) -> None:
    """Die of an exception."""
    raise RuntimeError("broken on purpose")


def wait_for_agent(alive_fd: int, fds: list[int]) -> int:
    """Say `ready` on the first descriptor, then wait until the agent's pipe closes, as daemons do."""
    os.write(fds[0], b"ready")
    os.read(alive_fd, 1)
    return 0


def obey(alive_fd: int, _fds: list[int]) -> None:
    """Do nothing until the agent's pipe closes."""
    os.read(alive_fd, 1)


def sleep(_arguments: Any, _fds: list[int]) -> None:
    """Ignore everything but SIGKILL's like."""
    time.sleep(600)


def echo_to(number: int, _fds: list[int]) -> None:
    """Write to a descriptor that the fork server holds."""
    os.write(number, b"held")


def fail_to_load() -> None:
    """A module function that the fork server calls before its first fork, and that fails."""
    raise RuntimeError("cannot be loaded on purpose")


def parrot(_arguments: Any, fds: list[int]) -> int:
    """Say whatever is heard on the channel, until that is closed."""
    with socket.socket(fileno=fds[0]) as channel:
        while packet := channel.recv(1 << 18):
            channel.send(packet)
    return 0


def chatter(count: int, fds: list[int]) -> int:
    """Say so many long packets on the channel, numbered, then die of a mistake."""
    with socket.socket(fileno=fds[0]) as channel:
        for number in range(count):
            channel.send(number.to_bytes(4, "big") + bytes(1 << 17))
            print(number, flush=True)
    raise RuntimeError("broken on purpose")


def shared_process(_settings: Any, fds: list[int]) -> None:
    """A process that children share: each does what its table says, and ends when that is asked."""
    with socket.socket(fileno=fds[-1]) as channel:
        while True:
            packet, bodies, _flags, _address = socket.recv_fds(channel, 1 << 16, 1)
            order = msgpack.unpackb(packet)
            if order["op"] == "end":
                channel.send(msgpack.packb({"life": order["life"], "status": 9}))
                continue
            for life, _log, table in msgpack.unpackb(os.pread(bodies[0], order["body_bytes"], 0)):
                if table["be"] == "fails":
                    raise RuntimeError("broken on purpose")
                if table["be"] == "refuses":
                    channel.send(msgpack.packb({"life": life, "status": 2 << 8}))
