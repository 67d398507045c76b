"""The block of port numbers of a fabric: finds a free one, reserves it, and names who else holds it.

Every socket of a fabric (two per link, one control socket per daemon) has its number in one contiguous block outside
the kernel's ephemeral range, so that a restarted daemon finds its own number again.
`orchestrator.hosts.placement.layout` says which socket has which number. Abstract Unix sockets, one per `SLOT_PORTS`
numbers, keep two fabrics apart that start at the same moment: like ports they belong to the network namespace, and they
vanish with their process. This module also checks whether this host has an address.
"""

import os
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mrcfabric.errors import ConfigError, one_line

PORT_MIN = 10_000
PORT_END = 32_000
"""The automatic search stays in [PORT_MIN, PORT_END)."""
USER_PORT_MIN = 1_024
USER_PORT_END = 65_536
"""Bounds of an explicit block."""
SLOT_PORTS = 64
"""Granularity of reservations and of the automatic search."""

_TCP_LISTEN = 0x0A
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TABLES = ("udp", "udp6", "tcp", "tcp6")


@dataclass(slots=True)
class PortBlock:
    """`size` port numbers from `base` on, reserved until `close`."""

    base: int
    size: int
    _reservations: list[socket.socket] = field(default_factory=list, repr=False)

    def close(self) -> None:
        """Give up the reservation. The sockets in the block belong to others and stay open."""
        for reservation in self._reservations:
            reservation.close()
        self._reservations.clear()


def allocate(size: int, base: int | None = None) -> PortBlock:
    """Reserve `size` free ports: the lowest free block, or exactly the one at `base`.

    Raises ConfigError when `base` is unusable (and says who holds it) or when no block of that size is free.
    """
    ephemeral = ephemeral_range()
    if base is not None:
        return _allocate_at(size, base, ephemeral)
    taken = sorted({port for port, _ in _bound_ports()})
    for candidate in _candidates(size, taken, ephemeral):
        reservations = _reserve(candidate, size)
        if reservations is not None:
            return PortBlock(candidate, size, reservations)
    raise ConfigError(
        "ports",
        f"no {size} free ports in a row between {PORT_MIN} and {PORT_END}",
        "stop another fabric, take a smaller topology, or name a block with --port-base",
    )


def ephemeral_range() -> range:
    """The numbers that the kernel gives to sockets that ask for none; empty when the kernel does not say."""
    try:
        low, high = _EPHEMERAL_RANGE.read_text().split()
    except (OSError, ValueError):
        return range(0)
    return range(int(low), int(high) + 1)


def check_own(*addresses: str) -> None:
    """Raises ConfigError for the first of these addresses, IPv4 or IPv6, that this host does not have."""
    for address in addresses:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as tried:
            try:
                tried.bind((address, 0))
            except OSError:
                raise ConfigError("", f"has no address {address}", "name one that `ip addr` shows there") from None


def owner_of(port: int) -> str:
    """Who holds a UDP or listening TCP port, for messages: `pid 123 (command line)`."""
    inodes = {inode for number, inode in _bound_ports() if number == port}
    return _describe_owner(inodes)


def _allocate_at(size: int, base: int, ephemeral: range) -> PortBlock:
    where = f"--port-base {base}"
    last = base + size - 1
    if base < USER_PORT_MIN or last >= USER_PORT_END:
        raise ConfigError(
            where,
            f"ports {base}..{last} are not within {USER_PORT_MIN}..{USER_PORT_END - 1}",
            f"this fabric needs {size} ports",
        )
    if ephemeral and base < ephemeral.stop and last >= ephemeral.start and not _everything_ephemeral(ephemeral):
        raise ConfigError(
            where,
            f"ports {base}..{last} meet the kernel's ephemeral range {ephemeral.start}..{ephemeral.stop - 1}",
            f"take a base from {PORT_MIN} to {max(PORT_MIN, min(PORT_END, ephemeral.start) - size)}",
        )
    for port, inode in sorted(_bound_ports()):
        if base <= port <= last:
            raise ConfigError(
                where, f"port {port} is in use by {_describe_owner({inode})}", "take another base, or leave it out"
            )
    reservations = _reserve(base, size)
    if reservations is None:
        owner = _describe_owner(_reservation_inodes(base, size))
        raise ConfigError(where, f"ports {base}..{last} are reserved by {owner}", "take another base, or leave it out")
    return PortBlock(base, size, reservations)


def _everything_ephemeral(ephemeral: range) -> bool:
    """Whether the kernel hands out all ports of our usual span. Then there is nothing better than that span."""
    return ephemeral.start <= PORT_MIN and ephemeral.stop >= PORT_END


def _candidates(size: int, taken: list[int], ephemeral: range) -> Iterator[int]:
    """Bases at slot boundaries whose whole block is outside the ephemeral range and free of `taken`, in order."""
    barred = set(taken)
    if not _everything_ephemeral(ephemeral):
        barred.update(port for port in ephemeral if PORT_MIN <= port < PORT_END)
    first = -(-PORT_MIN // SLOT_PORTS) * SLOT_PORTS
    for base in range(first, PORT_END - size + 1, SLOT_PORTS):
        if barred.isdisjoint(range(base, base + size)):
            yield base


def _bound_ports() -> set[tuple[int, int]]:
    """(port, socket inode) of every UDP socket and every listening TCP socket of this network namespace."""
    bound = set()
    for table in _TABLES:
        try:
            lines = Path("/proc/net", table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            columns = line.split()
            if table.startswith("udp") or int(columns[3], 16) == _TCP_LISTEN:
                bound.add((int(columns[1].rpartition(":")[2], 16), int(columns[9])))
    return bound


def _reservation_name(slot: int) -> str:
    return f"mrcfabric/ports/{slot * SLOT_PORTS}"


def _slots(base: int, size: int) -> range:
    return range(base // SLOT_PORTS, (base + size - 1) // SLOT_PORTS + 1)


def _reserve(base: int, size: int) -> list[socket.socket] | None:
    """Bind the abstract names of every slot in the block; None when another fabric holds one of them."""
    held: list[socket.socket] = []
    for slot in _slots(base, size):
        reservation = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        held.append(reservation)
        try:
            reservation.bind("\0" + _reservation_name(slot))
        except OSError:
            for one in held:
                one.close()
            return None
    return held


def _reservation_inodes(base: int, size: int) -> set[int]:
    names = {"@" + _reservation_name(slot) for slot in _slots(base, size)}
    inodes = set()
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        columns = line.split()
        if columns[-1] in names:
            inodes.add(int(columns[6]))
    return inodes


def _describe_owner(inodes: set[int]) -> str:
    """The process that has one of these sockets open, for messages; other users' processes cannot be seen."""
    targets = {f"socket:[{inode}]" for inode in inodes}
    for entry in os.listdir("/proc"):
        if not re.fullmatch(r"\d+", entry):
            continue
        try:
            with os.scandir(f"/proc/{entry}/fd") as descriptors:
                if any(os.readlink(descriptor.path) in targets for descriptor in descriptors):
                    return f"pid {entry} ({command_of(int(entry))})"
        except OSError:
            continue
    return "a process of another user"


def command_of(pid: int) -> str:
    """The command line of a process, shortened for a message; `gone` when it has ended."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return "gone"
    text = " ".join(raw.replace(b"\0", b" ").decode(errors="replace").split())  # one line, whatever its arguments
    return one_line(text[:80]) or "unnamed"
