"""A file of the user's crosses a fabric, and its SHA-256 is compared at the far end.

Owns the transfer: two workers, each on the host of its NIC, and the way of the file from here to the one and, if it is
to be kept, back from the other, part by part. The fabric is one that runs already, whose agent does all this
(`orchestrator.agent.send`), or one launched for the purpose.
"""

import asyncio
import hashlib
import math
import os
import stat
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.topology import Topology
from mrcfabric.units import MIB
from orchestrator.client import bodies
from orchestrator.client.agent_fabric import AgentFabric
from orchestrator.fabric.launched import LaunchedFabric
from orchestrator.hosts.cluster import Cluster
from orchestrator.hosts.placement.layout import Pack
from orchestrator.runs.worker_placement import processes_of
from orchestrator.workers.channel import Message
from orchestrator.workers.group import Member, WorkerGroup, started_group
from orchestrator.workers.payload import CARRIED, CHECKED, HASHED, PART_BYTES, SEEDED
from orchestrator.workers.stream import MESSAGES_MAX

MESSAGE_BYTES = MIB
DEPTH = 8


@dataclass(frozen=True, slots=True)
class Transfer:
    """What is to be sent."""

    file: Path
    source: str
    """NIC names."""
    target: str
    out: Path | None = None
    """Where to keep what arrives; None: it is only hashed."""

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "Transfer":
        """From a request (`record`). Raises ConfigError."""
        out = bodies.text(body, "out", "")
        file, source, target = (bodies.text(body, key) for key in ("file", "from", "to"))
        return cls(Path(file), source, target, Path(out) if out else None)

    def record(self) -> dict[str, str | None]:
        """As data for whoever stands in another folder."""
        out = None if self.out is None else str(self.out.resolve())
        return {"file": str(self.file.resolve()), "from": self.source, "to": self.target, "out": out}

    def check(self, topology: Topology) -> int:
        """How many messages it takes. Raises ConfigError for unknown NICs and files that cannot be sent."""
        for name in (self.source, self.target):
            topology.nic_index(name)
        if self.source == self.target:
            raise ConfigError(self.source, "cannot send to itself", "choose two NICs")
        try:
            _check_no_pipe(str(self.file), self.file)
            if self.file.is_char_device() or self.file.is_block_device():
                raise ConfigError(str(self.file), "is a device", "name a file")
            with self.file.open("rb") as file:
                size = file.seek(0, 2)
        except (OSError, ValueError) as error:
            raise ConfigError(str(self.file), _why(error)) from None
        self._check_out()
        messages = -(-size // MESSAGE_BYTES)
        if not 1 <= messages <= MESSAGES_MAX:
            raise ConfigError(str(self.file), f"{size} bytes cannot be sent", "1 byte to 16 TiB")
        return messages

    def _check_out(self) -> None:
        if self.out is None:
            return
        try:
            _check_no_pipe(f"--out {self.out}", self.out)
            if self.out.exists() and self.out.samefile(self.file):
                raise ConfigError(f"--out {self.out}", "is the file to be sent", "name another")
            # Opened to append: what is there stays until something arrives.
            with self.out.open("ab"):
                pass
        except (OSError, ValueError) as error:
            raise ConfigError(f"--out {self.out}", _why(error)) from None


def _check_no_pipe(where: str, path: Path) -> None:
    """Opening one may take for ever, and an agent has other things to do. Raises ConfigError."""
    if path.is_fifo():
        raise ConfigError(where, "is a pipe", "name a file")


def _why(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)


class _Copy:
    """A file of this host's while it is read or written, and the SHA-256 of what was."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._hash = hashlib.sha256()
        self._begun = False

    async def read(self, size: int) -> bytes:
        """The next bytes; fewer only where the file ends. Raises RefusedError."""
        data: bytes = await self._do(self._file.read, size)
        self._hash.update(data)
        return data

    async def write(self, data: bytes) -> None:
        """Add to it; what a file had before goes with the first. Raises RefusedError."""
        if not self._begun:
            self._begun = True
            if stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):  # a device has nothing to lose
                await self._do(self._file.truncate, 0)
        await self._do(self._file.write, data)
        self._hash.update(data)

    async def finish(self) -> str:
        """The SHA-256 of all of it, which is in the file. Raises RefusedError."""
        await self._do(self._file.flush)
        return self._hash.hexdigest()

    async def _do(self, work: Callable[..., Any], *values: Any) -> Any:
        # A disk that is slow must not hold up whoever else is served here.
        try:
            return await asyncio.to_thread(work, *values)
        except OSError as error:
            raise RefusedError(f"{self._path}: {_why(error)}") from None


def _opened(stack: ExitStack, path: Path, mode: Literal["rb", "ab"]) -> _Copy:
    try:
        return _Copy(path, stack.enter_context(path.open(mode)))
    except OSError as error:
        raise RefusedError(f"{path}: {_why(error)}") from None


async def transfer(fabric: LaunchedFabric, what: Transfer) -> dict[str, Any]:
    """Send a file between two NICs; the record of it. Raises ConfigError, RefusedError, WorkerFailedError."""
    messages = await asyncio.to_thread(what.check, fabric.topology)
    for nic in (what.source, what.target):
        if not fabric.alive(nic):
            raise RefusedError(f"{nic} is down")
    arguments = {"area_bytes": MESSAGE_BYTES * DEPTH, "size_max": 1, "seed": fabric.topology.seed}
    members = [
        Member(name, fabric.workers.verbs_path(name), "traffic", (1 - number,), arguments)
        for number, name in enumerate((what.source, what.target))
    ]
    order = {"turn": 0, "size": MESSAGE_BYTES, "depth": DEPTH, "messages_out": messages, "messages_in": messages}
    with ExitStack() as stack:
        file = _opened(stack, what.file, "rb")
        kept = None if what.out is None else _opened(stack, what.out, "ab")
        async with started_group(members, processes_of(fabric.workers, "send")) as group:
            group.tell(0, "round", **order, **{"to": 1, "from": None, "source": CARRIED, "sink": CHECKED})
            sink = HASHED if kept is None else CARRIED
            group.tell(1, "round", **order, **{"to": None, "from": 0, "source": SEEDED, "sink": sink})
            sender, receiver = await _all_of(_hand_out(group, file), _take_in(group, kept))
        digests = [await file.finish(), sender["digests"][0], receiver["digests"][1]]
        if kept is not None:
            digests.append(await kept.finish())
    span_ns = max(1, sender["last_ns"] - sender["first_ns"])
    return {
        "file": str(what.file),
        "from": what.source,
        "to": what.target,
        "bytes": receiver["received"],
        "sha256": digests[0],
        "sha256_arrived": next((one for one in digests if one != digests[0]), digests[0]),
        "same": len({*digests}) == 1 and sender["sent"] == receiver["received"],
        "fabric_ns": span_ns,
        "goodput_gbps": round(sender["sent"] * 8 / span_ns, 2),
    }


async def _hand_out(group: WorkerGroup, file: _Copy) -> Message:
    """Give the sender what it wants of the file, until it reports."""
    while (message := await group.hear(0))["kind"] == "want":
        data = await file.read(message["bytes"])
        for start in range(0, max(1, len(data)), PART_BYTES):
            part = data[start : start + PART_BYTES]
            await group.hand(0, "part", data=part, more=start + len(part) < len(data))
    return message


async def _take_in(group: WorkerGroup, kept: _Copy | None) -> Message:
    """Keep what the receiver tells, until it reports."""
    while (message := await group.hear(1))["kind"] == "part" and kept is not None:
        await kept.write(message["data"])
    return message


async def _all_of(*works: Coroutine[Any, Any, Message]) -> list[Message]:
    """What all come to; the first failure ends the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


async def send_in_new(
    topology: Topology, run_dir: Path, pack: Pack, what: Transfer, cluster: Cluster | None = None
) -> dict[str, Any]:
    """Launch a fabric, on the hosts of `cluster` (None: this one), send, close it."""
    what.check(topology)
    async with LaunchedFabric.launch(topology, run_dir, pack=pack, cluster=cluster) as fabric:
        return await transfer(fabric, what) | {"totals": await fabric.totals()}


async def send_in_running(run_dir: Path, what: Transfer) -> dict[str, Any]:
    """Have the agent of the fabric that runs in this folder send. When this is ended, the transfer is.

    Raises ConfigError when none runs there, RefusedError, NoAnswerError.
    """
    async with AgentFabric.open(run_dir=run_dir) as fabric:
        what.check(fabric.topology)
        record: dict[str, Any] = await fabric.post("/send", math.inf, owner=fabric.owner, **what.record())
    return record | {"file": str(what.file)}
