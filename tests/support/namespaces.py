"""Processes in namespaces of their own on this machine: how they are entered, found and counted.

Nothing here has a name on the machine: a namespace lives as long as a process in it, so the kernel takes all of it away
when the last one ends. `tests.support.cluster` makes hosts of it.
"""

import asyncio
import contextlib
import ctypes
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.packages import NEEDS_ROOT, program

_CLONE_NEWNET = 0x4000_0000
_PROC = Path("/proc")


def privileged() -> None:
    """Skip the test, or fail it in CI, where namespaces cannot be made."""
    if os.geteuid() == 0:
        return
    if os.environ.get("CI"):
        pytest.fail(f"{NEEDS_ROOT}: makes namespaces; CI runs the tests as root")
    pytest.skip(f"{NEEDS_ROOT}: makes namespaces")


@dataclass(frozen=True, slots=True)
class Finished:
    """What a command in a namespace said before it ended; `code` is minus the signal where one ended it."""

    code: int
    out: str
    err: str

    def well(self) -> str:
        """What it printed; it must have ended well."""
        assert self.code == 0, f"exit code {self.code}: {self.out}{self.err}"
        return self.out


def entering(pid: int, *kinds: str) -> list[str]:
    """The beginning of a command that runs what follows in the process's namespaces: `net`, `uts`, `mount`, `pid`."""
    return [str(program("nsenter")), f"--target={pid}", *(f"--{kind}" for kind in kinds), "--"]


async def run(argv: Sequence[str], environment: Mapping[str, str] | None = None, given: bytes = b"") -> Finished:
    """Run a command to its end, with `given` on its standard input."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=None if environment is None else {**os.environ, **environment},
    )
    try:
        out, err = await process.communicate(given)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    assert process.returncode is not None
    return Finished(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def children(pid: int) -> list[int]:
    """The living children of a process; none when it is gone."""
    try:
        return [int(child) for child in (_PROC / f"{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def pids_within(kind: str, namespace: str) -> list[int]:
    """Every process in the namespace that `identity` has named, by the numbers that the machine gives them."""
    found = []
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if os.readlink(entry / "ns" / kind) == namespace:
                    found.append(int(entry.name))
    return found


def living(pids: Iterable[int]) -> list[int]:
    """Those of the processes that have not ended."""
    return [pid for pid in pids if (_PROC / str(pid)).exists()]


def identity(pid: int, kind: str) -> str:
    """The name of a process's namespace: `net:[4026532008]`. Raises OSError when the process is gone."""
    return os.readlink(_PROC / f"{pid}/ns/{kind}")


@contextlib.contextmanager
def network_of(pid: int) -> Iterator[None]:
    """Sockets that this thread makes in the block, and processes it starts, are in the network of the process.

    Only the calling thread is moved, and it comes back; addresses are to be numbers, for names are looked up by others.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def move(fd: int) -> None:
        if libc.setns(fd, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    with open("/proc/thread-self/ns/net") as own, open(_PROC / f"{pid}/ns/net") as other:
        move(other.fileno())
        try:
            yield
        finally:
            move(own.fileno())
