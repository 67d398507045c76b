"""Reads the Slurm allocation that this process is in as an inventory: its nodes, our part of them, their addresses.

Owns what it asks Slurm about a job, and in which words. The environment names the job, and the controller says the
rest. With an inventory's file, the nodes must be hosts of the same name there, and the file overrides Slurm.
"""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from mrcfabric.errors import ConfigError
from orchestrator.hosts.placement.inventory import Host, Inventory
from orchestrator.hosts.placement.inventory_file import load

ASK_WALL_S: Final = 30.0
"""How long the controller may take to answer."""
LEFT_MIN: Final = timedelta(seconds=60)
"""A job that ends sooner cannot have a fabric."""
LEFT_TOLD: Final = timedelta(minutes=10)
"""If the job ends sooner, the operator is told."""
ENGINE: Final = "--engine slurm"
_MEBI: Final = 1 << 20
_KEPT: Final = ("SLURM_CONF", "SLURM_JWT", "SLURM_CLUSTERS")
_SLURMS: Final = ("SLURM_", "SLURMD_", "SRUN_", "SALLOC_", "SBATCH_")
_FIELD: Final = re.compile(r"(\w+)=(\S*)")
_PART: Final = re.compile(r" Nodes=(\S+) CPU_IDs=(\S+) Mem=(\d+)")
_ALLOCATE: Final = "salloc --no-kill --exclusive --nodes=N"


@dataclass(frozen=True, slots=True)
class Part:
    """Nodes of a job on which it has equal cores and memory."""

    nodes: str
    """A list as Slurm writes it: `h[1-3]`."""
    cores: int | None
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class Job:
    """An allocation, as the controller describes it."""

    number: str
    state: str
    ends: datetime | None
    """In local time; None: never."""
    nodes: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """One node of an allocation."""

    name: str
    address: str
    """The address or name by which Slurm reaches it."""
    cores: int | None
    memory_bytes: int | None


# Questions to Slurm.


def job_here(ours: Mapping[str, str]) -> str:
    """The number of the job whose environment this is. Raises ConfigError."""
    job = ours.get("SLURM_JOB_ID", "")
    if not job:
        hint = f"{_ALLOCATE} and the same command in its shell, or sbatch deploy/slurm/mrcfabric.sbatch"
        raise ConfigError(ENGINE, "this is no allocation: SLURM_JOB_ID is not set", hint)
    return job


def tool(name: str) -> str:
    """The path of a Slurm command. Raises ConfigError where it is missing."""
    found = shutil.which(name)
    if found is None:
        raise ConfigError(ENGINE, f"there is no `{name}` here", "load Slurm's module, or add its folder to PATH")
    return found


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The environment for Slurm commands: ours without variables of another step, which they would take as options."""
    kept = {key: value for key, value in ours.items() if key in _KEPT or not key.startswith(_SLURMS)}
    return {**kept, "SLURM_TIME_FORMAT": "standard"}


def allocated(file: Path | None, say: Callable[[str], None]) -> Inventory:
    """The hosts of our job, or those of an inventory's file if there is one. The node we are on leads.

    Calls `say` when the job ends soon. Raises ConfigError.
    """
    number = job_here(os.environ)
    job = parsed_job(number, _ask("show", "job", "--details", "--oneliner", number))
    if warning := ending(job, datetime.now()):
        say(warning)
    lists = {part.nodes: _ask("show", "hostnames", part.nodes).split() for part in job.parts}
    nodes = parsed_nodes(_ask("show", "node", "--oneliner", job.nodes), job, lists)
    inventory = Inventory(tuple(at_addresses(nodes, resolve))) if file is None else joined(load(file), job, nodes)
    return led(inventory, is_ours)


def _ask(*words: str) -> str:
    """The output of an scontrol command. Raises ConfigError."""
    command = [tool("scontrol"), *words]
    try:
        done = subprocess.run(
            command, env=environment(os.environ), capture_output=True, text=True, timeout=ASK_WALL_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(ENGINE, f"Slurm does not answer within {ASK_WALL_S:g} s", "scontrol ping") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        job = words[-1] if words[1] == "job" else ""
        what = f"Slurm knows no job {job}" if job else f"`scontrol {' '.join(words)}` fails"
        raise ConfigError(ENGINE, f"{what}: {said[-1] if said else 'without a word'}", f"have another: {_ALLOCATE}")
    return done.stdout


# Answers of Slurm.


def parsed_job(number: str, text: str) -> Job:
    """A job from a line of `scontrol show job --details`. Raises ConfigError for one that does not run."""
    line = text.splitlines()[0] if text.strip() else ""
    fields = dict(_FIELD.findall(line))
    state = fields.get("JobState", "")
    if state != "RUNNING":
        raise ConfigError(ENGINE, f"job {number} does not run: {state or 'nothing is known of it'}", _ALLOCATE)
    ends = fields.get("EndTime", "Unknown")
    parts = [Part(nodes, _cores(cpus), int(mebi) * _MEBI or None) for nodes, cpus, mebi in _PART.findall(line)]
    nodes = fields["NodeList"]
    return Job(
        number,
        state,
        None if ends == "Unknown" else datetime.fromisoformat(ends),
        nodes,
        tuple(parts) or (Part(nodes, None, None),),
    )


def _cores(text: str) -> int:
    """How many CPUs a list such as `0-3,8` names."""
    bounds = (part.partition("-") for part in text.split(","))
    return sum(int(last or first) - int(first) + 1 for first, _dash, last in bounds)


def parsed_nodes(text: str, job: Job, lists: Mapping[str, Sequence[str]]) -> list[Node]:
    """The nodes of a job from `scontrol show node`, in that order; `lists`: the names that each list of nodes means."""
    part_of = {name: part for part in job.parts for name in lists[part.nodes]}
    nodes = []
    for line in text.splitlines():
        fields: dict[str, str] = dict(_FIELD.findall(line))
        name = fields.get("NodeName", "")
        if name in part_of:
            part = part_of[name]
            nodes.append(Node(name, fields.get("NodeAddr", name), part.cores, part.memory_bytes))
    return nodes


def ending(job: Job, now: datetime) -> str:
    """The warning that the job ends soon; "" if it does not. Raises ConfigError when it ends too soon."""
    if job.ends is None or job.ends - now > LEFT_TOLD:
        return ""
    left_s = max(0, round((job.ends - now).total_seconds()))
    what = f"job {job.number} ends in {left_s} s, at {job.ends:%H:%M:%S}"
    if job.ends - now < LEFT_MIN:
        raise ConfigError(ENGINE, what, f"{_ALLOCATE} --time=MINUTES")
    return f"{what}, and the fabric with it"


# Addresses.


def resolve(name: str) -> list[str]:
    """The addresses that our resolver finds for the name of a node; for an address, the address itself."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except OSError:
        return []
    return [str(entry[4][0]) for entry in found]


def is_ours(address: str) -> bool:
    """Whether this machine has the address."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as tried:
        try:
            tried.bind((address, 0))
        except OSError:
            return False
    return True


def at_addresses(nodes: Sequence[Node], resolved: Callable[[str], list[str]]) -> list[Host]:
    """The nodes as hosts. All get addresses of one family that all of them have, IPv4 first. Raises ConfigError."""
    known = {node.name: [one for one in resolved(node.address) if len(nodes) == 1 or _is_far(one)] for node in nodes}
    for version in (4, 6):
        chosen = {
            name: next((one for one in addresses if ip_address(one).version == version), "")
            for name, addresses in known.items()
        }
        if all(chosen.values()):
            break
    else:
        lacking = next((node for node in nodes if not known[node.name]), nodes[0])
        what = f"Slurm has it at {lacking.address}, for which there is no address that all nodes could reach"
        hint = "name addresses of one family for all nodes in an inventory: --inventory FILE"
        raise ConfigError(f"host {lacking.name}", what, hint)
    owners: dict[str, str] = {}
    for name, address in chosen.items():
        if owners.setdefault(address, name) != name:
            raise ConfigError(
                f"host {name}", f"{address} is an address of {owners[address]}", "name them in an inventory"
            )
    return [
        replace(Host.at(node.name, chosen[node.name], node.cores), memory_bytes=node.memory_bytes) for node in nodes
    ]


def _is_far(address: str) -> bool:
    """Whether other nodes can reach this address."""
    found = ip_address(address.partition("%")[0])
    return not (found.is_loopback or found.is_link_local or found.is_unspecified)


def joined(inventory: Inventory, job: Job, nodes: Sequence[Node]) -> Inventory:
    """The hosts of an inventory, with Slurm's figures where the file has none. Raises ConfigError."""
    known = {node.name: node for node in nodes}
    hosts = []
    for host in inventory.hosts:
        node = known.get(host.name)
        if node is None:
            there = ", ".join(sorted(known)[:20])
            hint = f"hosts are called as Slurm calls them; it has {there}"
            raise ConfigError(f"{inventory.path}: host {host.name}", f"is no node of job {job.number}", hint)
        cores = node.cores if host.cores is None else host.cores
        memory = node.memory_bytes if host.memory_bytes is None else host.memory_bytes
        hosts.append(replace(host, cores=cores, memory_bytes=memory))
    return replace(inventory, hosts=tuple(hosts))


def led(inventory: Inventory, ours: Callable[[str], bool]) -> Inventory:
    """The inventory with the host we are on, if any, as orchestrator. Raises ConfigError if the file names another."""
    here = next((host.name for host in inventory.hosts if ours(host.control)), "")
    told = inventory.rules.orchestrator
    if told and told != here:
        hint = f"give the command there, or say `orchestrator: {here or 'none'}`"
        raise ConfigError(
            f"{inventory.path}: host {told}", f"is to lead, and this is {here or 'none of the hosts'}", hint
        )
    return replace(inventory, rules=replace(inventory.rules, orchestrator=here))
