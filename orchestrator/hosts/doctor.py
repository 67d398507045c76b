"""What this machine lacks for a fabric: each check says what it found, and the remedy where it fails.

Owns the checks and their words. `mrcfabric doctor` shows all of them. A launch makes those without which it would fail
halfway (`require`), and prints the same line.
"""

import fcntl
import os
import platform
import resource
import shutil
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mrcfabric.cores import COMPILED, CORES, FORCED
from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.udp import SOCKET_BUFFER_BYTES
from orchestrator.hosts.placement.frames import frame_bytes
from orchestrator.hosts.placement.layout import Pack, port_count, processes_of
from orchestrator.hosts.placement.site import LEADER, Sites
from orchestrator.hosts.placement.weights import SHARED_BYTES, memory_bytes
from orchestrator.process import ports
from orchestrator.process.remedies import remedy

PYTHON: Final = (3, 11)
SPARE_DESCRIPTORS: Final = 256
"""Descriptors the agent needs for its endpoints, logs and captures."""
SPARE_PROCESSES: Final = 12
"""The agent with its threads, the fork server, and a command beside them."""
SHM_BYTES: Final = 64 << 20
_SOL_UDP, _UDP_SEGMENT, _UDP_GRO = 17, 103, 104
_UP: Final = 1
_MIB: Final = 1 << 20
_SIOCGIFFLAGS, _SIOCGIFMTU = 0x8913, 0x8921
_PROGRAMS: Final = Path(__file__).parents[2] / "tests/support/system_programs.txt"


@dataclass(frozen=True, slots=True)
class Check:
    """One check and its result."""

    name: str
    holds: bool
    found: str
    remedy: str = ""
    """What to do when the check fails."""
    needed: bool = True
    """Whether a fabric fails without it. If not, something is slower, or cannot be tried."""

    def line(self) -> str:
        """The line on the screen."""
        mark = "ok" if self.holds else "FAILS" if self.needed else "lacks"
        return f"{mark:<6} {self.name}: {self.found}" + (f"; {self.remedy}" if not self.holds else "")


def examine(topology: Topology, pack: Pack = "none") -> Iterator[Check]:
    """Make every check for a fabric on this host."""
    sites = Sites()
    yield _python()
    yield _cores()
    yield descriptors(topology, pack, sites)
    yield process_limit(topology, pack, sites)
    yield memory(topology, sites)
    yield loopback(topology)
    yield free_ports(topology, sites)
    yield offload()
    yield socket_buffers()
    yield shared_memory()
    yield programs()


def require(topology: Topology, pack: Pack, sites: Sites) -> None:
    """Raises ConfigError with cause and remedy when this host, the leader's, cannot carry its part of a fabric."""
    for check in (
        descriptors(topology, pack, sites),
        process_limit(topology, pack, sites),
        memory(topology, sites),
        loopback(topology),
    ):
        if not check.holds:
            raise ConfigError(check.name, check.found, check.remedy)


def cores_for(pack: Pack, sites: Sites) -> list[int]:
    """How many cores each host has, where the packing asks for that. Raises ConfigError where nobody knows."""
    return sites.cores(len(os.sched_getaffinity(0))) if pack in ("cores", "auto") else []


def _python() -> Check:
    wanted = ".".join(map(str, PYTHON))
    return Check("Python", sys.version_info >= PYTHON, platform.python_version(), f"install Python {wanted} or newer")


def _cores() -> Check:
    found = CORES.line
    return Check("cores", CORES.run == COMPILED or CORES.detail == FORCED, found, "packets take longer", needed=False)


def descriptors(topology: Topology, pack: Pack, sites: Sites) -> Check:
    """Open files: the agent needs a doorbell per process and a socket per daemon. It takes all that it is allowed."""
    plans = processes_of(topology, pack, sites, cores_for(pack, sites))
    processes = sum(plan.site == LEADER for plan in plans)
    needed = processes + topology.nodes + SPARE_DESCRIPTORS
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    have = "any number" if hard == resource.RLIM_INFINITY else f"{hard:,}"
    return Check(
        "open files",
        hard == resource.RLIM_INFINITY or hard >= needed,
        f"{needed:,} are needed for {topology.nodes} daemons, {have} allowed",
        f"raise the limit: `ulimit -Hn {needed}` as root, or LimitNOFILE={needed} of the unit",
    )


def process_limit(topology: Topology, pack: Pack, sites: Sites) -> Check:
    """Processes that this user may have. The system counts threads, too, and does not limit root."""
    plans = processes_of(topology, pack, sites, cores_for(pack, sites))
    needed = sum(plan.site == LEADER for plan in plans) + SPARE_PROCESSES
    soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    free = resource.RLIM_INFINITY if os.geteuid() == 0 or soft == resource.RLIM_INFINITY else soft - _threads_of_mine()
    have = "any number" if free == resource.RLIM_INFINITY else f"{max(0, free):,} of {soft:,} left"
    return Check(
        "processes",
        free == resource.RLIM_INFINITY or free >= needed,
        f"{needed:,} are needed for {topology.nodes} daemons, {have}",
        "raise the limit: `ulimit -u` as root, LimitNPROC of the unit, or --pack cores, which takes fewer",
    )


def _threads_of_mine() -> int:
    """How many threads the processes of this user have."""
    found = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            lines = (folder / "status").read_text().splitlines()
            fields = dict(line.split(":", 1) for line in lines if line.startswith(("Uid:", "Threads:")))
            if int(fields["Uid"].split()[0]) == os.getuid():
                found += int(fields["Threads"])
        except (OSError, ValueError, KeyError, IndexError):  # it has ended meanwhile
            continue
    return found


def memory(topology: Topology, sites: Sites) -> Check:
    """Whether the memory that `mrcfabric plan` computes is free."""
    needed = SHARED_BYTES + sum(
        memory_bytes(topology.parse_node(node).tier)
        for plan in processes_of(topology, "none", sites)
        if plan.site == LEADER
        for node in plan.nodes
    )
    free = _available_bytes()
    return Check(
        "memory",
        free is None or free >= needed,
        f"{needed / _MIB:,.0f} MiB are needed for {topology.nodes} daemons, "
        + ("nobody knows what is free" if free is None else f"{free / _MIB:,.0f} MiB are free"),
        "free some, take a smaller fabric, or spread it over hosts (--inventory)",
    )


def _available_bytes() -> int | None:
    """Bytes that processes may still take, by the machine and by our control group; None: neither says."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        found.append((kib["MemAvailable"] + kib.get("SwapFree", 0)) * 1024)
    except (OSError, ValueError, KeyError, IndexError):
        pass
    try:
        group = Path("/sys/fs/cgroup")
        limit = (group / "memory.max").read_text().strip()
        if limit != "max":
            found.append(int(limit) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        pass
    return min(found, default=None)


def loopback(topology: Topology) -> Check:
    """Whether the loopback interface is up, and its MTU large enough for a frame."""
    needed = frame_bytes(topology.mtu_bytes, 4)
    up, mtu = loopback_state()
    if not up:
        return Check("loopback", False, "is down", "ip link set lo up")
    found = f"is up, MTU {mtu:,}, {needed:,} are needed"
    return Check("loopback", mtu >= needed, found, f"ip link set lo mtu {max(65536, needed)}")


def loopback_state() -> tuple[bool, int]:
    """Whether it is up, and its MTU. Asks the kernel, because /sys may show another network namespace."""
    name = struct.pack("16sH14x", b"lo", 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            flags = struct.unpack_from("H", fcntl.ioctl(one, _SIOCGIFFLAGS, name), 16)[0]
            mtu = struct.unpack_from("i", fcntl.ioctl(one, _SIOCGIFMTU, struct.pack("16si12x", b"lo", 0)), 16)[0]
        except OSError:
            return False, 0
    return bool(flags & _UP), mtu


def free_ports(topology: Topology, sites: Sites) -> Check:
    """Whether a block of ports for all daemons is free."""
    needed = port_count(topology, sites)
    try:
        block = ports.allocate(needed)
    except ConfigError as error:
        return Check("ports", False, f"{error.where}: {error.what}", error.hint or "end who has them, or --port-base")
    block.close()
    return Check("ports", True, f"{needed:,} free from {block.base} on")


def offload() -> Check:
    """Whether the kernel sends and takes trains of datagrams; without them a link is a tenth as fast."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        lacking = []
        for name, option in (("GSO", _UDP_SEGMENT), ("GRO", _UDP_GRO)):
            try:
                one.setsockopt(_SOL_UDP, option, 1)
            except OSError:
                lacking.append(name)
    found = f"the kernel has no {' and no '.join(lacking)}" if lacking else "GSO and GRO"
    return Check("UDP offload", not lacking, found, "take Linux 5.0 or newer", needed=False)


def socket_buffers() -> Check:
    """Whether sockets may have the buffers that daemons ask for. Root may exceed the maximum."""
    try:
        most = int(Path("/proc/sys/net/core/rmem_max").read_text())
    except (OSError, ValueError):
        return Check("socket buffers", True, "nobody says how large they may be")
    return Check(
        "socket buffers",
        most >= SOCKET_BUFFER_BYTES or os.geteuid() == 0,
        f"net.core.rmem_max {most:,} of {SOCKET_BUFFER_BYTES:,}",
        f"sysctl -w net.core.rmem_max={SOCKET_BUFFER_BYTES} net.core.wmem_max={SOCKET_BUFFER_BYTES}",
        needed=False,
    )


def shared_memory() -> Check:
    """Whether memory files work, for the clock page and for memory that applications register."""
    try:
        os.close(os.memfd_create("mrcfabric-doctor"))
    except OSError as error:
        return Check("shared memory", False, f"memfd_create: {error.strerror}", remedy(error.errno) or "allow it")
    try:
        disk = os.statvfs("/dev/shm")
    except OSError:
        return Check("shared memory", True, "memory files work, there is no /dev/shm")
    free = disk.f_bavail * disk.f_frsize
    text = f"memory files work, {free / _MIB:,.0f} MiB free in /dev/shm"
    return Check("shared memory", free >= SHM_BYTES, text, "mount -o remount,size=1G /dev/shm", needed=False)


def programs() -> Check:
    """Whether the system programs that tests run are installed; looked for only where the tests are."""
    try:
        listed = dict(line.split() for line in _PROGRAMS.read_text().splitlines())
    except (OSError, ValueError):
        return Check("programs of tests", True, "there are no tests here")
    missing = {name: package for name, package in listed.items() if shutil.which(name) is None}
    packages = " ".join(sorted(set(missing.values())))
    found = f"{len(listed) - len(missing)} of {len(listed)} are installed"
    return Check("programs of tests", not missing, found, f"apt-get install {packages}", needed=False)
