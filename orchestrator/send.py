"""A file of the user's crosses a fabric, and its SHA-256 is compared at the far end.

Owns the transfer: two workers as threads of this process, one at each NIC's host API; the daemons between them are
those of a fabric that runs already, or of one launched for the purpose.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.units import MIB
from orchestrator.fabric import Fabric
from orchestrator.hiring import threads_here
from orchestrator.hosts.site import away
from orchestrator.layout import Pack
from orchestrator.run_folder import read_state
from orchestrator.workload.crew import Member, hired
from orchestrator.workload.stream import MESSAGES_MAX

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

    def check(self, topology: Topology) -> int:
        """How many messages it takes. Raises ConfigError for unknown NICs and files that cannot be sent."""
        for name in (self.source, self.target):
            topology.nic_index(name)
        if self.source == self.target:
            raise ConfigError(self.source, "cannot send to itself", "choose two NICs")
        try:
            with self.file.open("rb") as file:
                size = file.seek(0, 2)
        except OSError as error:
            raise ConfigError(str(self.file), error.strerror or str(error)) from None
        self._check_out()
        messages = -(-size // MESSAGE_BYTES)
        if not 1 <= messages <= MESSAGES_MAX:
            raise ConfigError(str(self.file), f"{size} bytes cannot be sent", "1 byte to 16 TiB")
        return messages

    def _check_out(self) -> None:
        if self.out is None:
            return
        if self.out.exists() and self.out.samefile(self.file):
            raise ConfigError(f"--out {self.out}", "is the file to be sent", "name another")
        try:
            # Opened to append: what is there stays until something arrives.
            with self.out.open("ab"):
                pass
        except OSError as error:
            raise ConfigError(f"--out {self.out}", error.strerror or str(error)) from None


async def transfer(topology: Topology, verbs: dict[str, str], what: Transfer) -> dict[str, Any]:
    """Send a file between two NICs whose host APIs are at `verbs`; the record of it. Raises WorkerFailedError."""
    messages = what.check(topology)
    arguments = {"area_bytes": MESSAGE_BYTES * DEPTH, "size_max": 1, "seed": topology.seed}
    members = [
        Member(name, verbs[name], "traffic", (1 - number,), arguments)
        for number, name in enumerate((what.source, what.target))
    ]
    spawn, tasks = threads_here()
    order = {"turn": 0, "size": MESSAGE_BYTES, "depth": DEPTH, "messages_out": messages, "messages_in": messages}
    kept = "" if what.out is None else str(what.out.absolute())
    try:
        async with hired(members, spawn) as crew:
            out = {"to": 1, "from": None, "file_out": str(what.file.absolute()), "file_in": None}
            into = {"to": None, "from": 0, "file_out": None, "file_in": kept}
            crew.tell(0, "round", **order, **out)
            crew.tell(1, "round", **order, **into)
            sender, receiver = await crew.hear_all("round")
    finally:
        await asyncio.gather(*tasks, return_exceptions=True)
    span_ns = max(1, sender["last_ns"] - sender["first_ns"])
    digests = sender["digests"][0], receiver["digests"][1]
    return {
        "file": str(what.file),
        "from": what.source,
        "to": what.target,
        "bytes": receiver["received"],
        "sha256": digests[0],
        "sha256_arrived": digests[1],
        "same": digests[0] == digests[1] and sender["sent"] == receiver["received"],
        "fabric_ns": span_ns,
        "goodput_gbps": round(sender["sent"] * 8 / span_ns, 2),
    }


def verbs_socket(run_dir: Path, nic: str) -> Path:
    """Where applications reach a NIC of the fabric in a run folder."""
    return run_dir.absolute() / "verbs" / f"{nic}.sock"


async def send_in_new(topology: Topology, run_dir: Path, pack: Pack, what: Transfer) -> dict[str, Any]:
    """Launch a fabric, send, close it."""
    what.check(topology)
    async with Fabric.launch(topology, run_dir, pack=pack) as fabric:
        verbs = {name: fabric.verbs_path(name) for name in (what.source, what.target)}
        record = await transfer(topology, verbs, what)
        return record | {"totals": await fabric.totals()}


async def send_in_running(run_dir: Path, what: Transfer) -> dict[str, Any] | None:
    """Send through the fabric that runs in this folder; None when none does. Raises RefusedError for a NIC of another
    host."""
    state = read_state(run_dir)
    if state is None:
        return None
    topology = Topology.from_dict(state["topology"])
    what.check(topology)
    for name in (what.source, what.target):
        if (host := state["nodes"][name]["host"]) is not None:
            raise away(name, host)
    verbs = {name: str(verbs_socket(run_dir, name)) for name in (what.source, what.target)}
    return await transfer(topology, verbs, what)
