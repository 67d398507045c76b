"""Applies the rules of an inventory: gives every node of a topology to one host.

Pure. Owns the order in which rules apply. Pins and exclusions first decide which hosts a node may be on. Nodes with the
same choice of hosts are placed together, those with the least choice first, by the rule for their kind. Kinds that are
placed by load (`cores`) come after the others, and level them out. Each host gets nodes in the order of the topology,
so that neighbours there are neighbours on hosts. With `cores`, planes stay whole unless that makes the fullest host
fuller by more than `WHOLE_COSTS`.
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.faults.selectors import nodes_meant
from orchestrator.hosts.placement.inventory import Inventory, Pairing
from orchestrator.hosts.placement.levels import share_out
from orchestrator.hosts.placement.placement import Placement
from orchestrator.hosts.placement.weights import cpu_s, ports
from orchestrator.process.ports import PORT_END, PORT_MIN

PLACED_NODES_MAX: Final = 1 << 18
"""A larger fabric is refused: nobody could read where 262,144 nodes are."""
WHOLE_COSTS: Final = 1.25
"""How many times fuller the fullest host may get to keep planes whole."""
CORES_UNTOLD: Final = 1
"""Cores of every host if no host names its own. If some do, the others get their mean."""

Leave: TypeAlias = tuple[int, ...]
"""Numbers of the hosts that a node may be on, ascending."""
Numbers: TypeAlias = list[int]


def place(topology: Topology, inventory: Inventory) -> Placement:
    """Give every node to a host. Raises ConfigError with the rule that cannot be kept, or for too large a fabric."""
    if topology.nodes > PLACED_NODES_MAX:
        what = f"{topology.nodes:,} nodes are too many to be placed one by one"
        raise ConfigError(f"fabric {topology.name}", what, f"at most {PLACED_NODES_MAX:,}")
    leave, idle = _leaves(topology, inventory)
    state = _Filling(topology, inventory, leave)
    rules = inventory.rules
    by_kind = {"switches": rules.switches, "nics": rules.nics}
    for kind, rule in by_kind.items():
        if rule != "cores":
            state.place_by(kind, rule)
    state = state.levelled([kind for kind, rule in by_kind.items() if rule == "cores"])
    return Placement(topology, inventory, state.host_numbers, idle)


def speeds(inventory: Inventory) -> list[float]:
    """Cores of every host, estimated where they are not given."""
    told = [host.cores for host in inventory.hosts if host.cores is not None]
    mean = sum(told) / len(told) if told else CORES_UNTOLD
    return [float(mean if host.cores is None else host.cores) for host in inventory.hosts]


# Where a node may be.


def _leaves(topology: Topology, inventory: Inventory) -> tuple[list[Leave], tuple[str, ...]]:
    """The hosts that each node may be on, by number of the node; and where the rules stand that match no node."""
    places = {host.name: at for at, host in enumerate(inventory.hosts)}
    anywhere = tuple(range(len(places)))
    leaves: list[Leave] = [anywhere] * topology.nodes
    idle: list[str] = []
    pinned = bytearray(topology.nodes)
    for pairing in inventory.rules.pin:
        mine = [number for number in _numbers(topology, pairing) if not pinned[number]]
        hosts = tuple(places[name] for name in pairing.hosts)
        for number in mine:
            pinned[number] = 1
            leaves[number] = hosts
        if not mine:
            idle.append(pairing.where)
    for pairing in inventory.rules.exclude:
        barred = frozenset(places[name] for name in pairing.hosts)
        left: dict[Leave, Leave] = {}
        numbers = _numbers(topology, pairing)
        for number in numbers:
            before = leaves[number]
            if before not in left:
                left[before] = tuple(host for host in before if host not in barred)
                if not left[before]:
                    node = topology.node_name(number)
                    raise ConfigError(
                        pairing.where or "rules", f"leaves no host for {node}", "pin it to another, or let one"
                    )
            leaves[number] = left[before]
        if not numbers:
            idle.append(pairing.where)
    return leaves, tuple(idle)


def _numbers(topology: Topology, pairing: Pairing) -> Sequence[int]:
    if not pairing.nodes:
        return range(topology.nodes)
    try:
        return [topology.node_index(name) for name in nodes_meant(topology, pairing.nodes)]
    except ConfigError as error:
        raise ConfigError(pairing.where or "rules", f"{error.where}: {error.what}", error.hint) from None


# Filling hosts.


@dataclass(slots=True)
class _Filling:
    """Hosts while they fill up."""

    topology: Topology
    inventory: Inventory
    leaves: list[Leave]
    host_numbers: "array[int]" = field(init=False)
    load: list[float] = field(init=False)
    """CPU seconds per second of fabric time, by host."""
    ports: list[float] = field(init=False)
    speed: list[float] = field(init=False)

    def __post_init__(self) -> None:
        hosts = len(self.inventory.hosts)
        self.host_numbers = array("H", bytes(2 * self.topology.nodes))
        self.load, self.ports = [0.0] * hosts, [0.0] * hosts
        self.speed = speeds(self.inventory)

    def place_by(self, kind: str, rule: str) -> None:
        """Place all nodes of a kind by a rule that ignores the load."""
        if rule == "pack":
            self._pack(kind)
            return
        level, even = [0.0] * len(self.load), [1.0] * len(self.load)
        for group in _groups(self.topology, self.leaves, kind, whole=rule == "by_plane"):
            self._give(group, share_out(len(group.units), 1.0, group.leave, level, even))

    def levelled(self, kinds: list[str]) -> "_Filling":
        """A filling with these kinds placed by load: with whole planes, or without if that is much more even."""
        if not kinds:
            return self
        split = self._copy()
        split._level(kinds, whole=False)
        if "switches" not in kinds:
            return split
        self._level(kinds, whole=True)
        return self if self._fullest() <= WHOLE_COSTS * split._fullest() else split

    def _level(self, kinds: list[str], whole: bool) -> None:
        groups = [group for kind in kinds for group in _groups(self.topology, self.leaves, kind, whole)]
        # Groups without a choice go first, so that the others can level them out.
        for group in sorted(groups, key=lambda group: len(group.leave) > 1):
            counts = share_out(len(group.units), group.cpu_s, group.leave, list(self.load), self.speed)
            self._give(group, counts)

    def _pack(self, kind: str) -> None:
        """Fill host after host up to its ports. What fits nowhere goes to the last one, and `fit` refuses it."""
        for group in _groups(self.topology, self.leaves, kind, whole=False):
            counts, left = [], len(group.units)
            for host in group.leave:
                room = int((PORT_END - PORT_MIN - self.ports[host]) // group.ports)
                counts.append(min(left, max(0, room)))
                left -= counts[-1]
            counts[-1] += left
            self._give(group, counts)

    def _give(self, group: "_Group", counts: list[int]) -> None:
        """Give each host its count of the group's units, both in their order."""
        units = iter(group.units)
        for host, count in zip(group.leave, counts, strict=True):
            for _ in range(count):
                for number in next(units):
                    self.host_numbers[number] = host
            self.load[host] += count * group.cpu_s
            self.ports[host] += count * group.ports

    def _fullest(self) -> float:
        return max(load / speed for load, speed in zip(self.load, self.speed, strict=True))

    def _copy(self) -> "_Filling":
        other = _Filling(self.topology, self.inventory, self.leaves)
        other.host_numbers = self.host_numbers[:]
        other.load, other.ports = list(self.load), list(self.ports)
        return other


@dataclass(slots=True)
class _Group:
    """Units of equal weight that may be on the same hosts."""

    leave: Leave
    units: list[Numbers]
    """Each unit is nodes that stay together."""
    cpu_s: float
    """Of one unit."""
    ports: int
    """Of one unit."""


def _groups(topology: Topology, leaves: Sequence[Leave], kind: str, whole: bool) -> list[_Group]:
    """All nodes of a kind, those with the least choice first, then the heaviest; `whole`: planes are units."""
    groups: dict[tuple[object, ...], _Group] = {}
    units = _plane_parts(topology, leaves) if whole and kind == "switches" else _singles(topology, leaves, kind)
    for key, unit in units:
        if key not in groups:
            tiers = Counter(map(topology.tier_of, unit))
            cpu = sum(count * cpu_s(topology, tier) for tier, count in tiers.items())
            taken = sum(count * ports(topology, tier) for tier, count in tiers.items())
            groups[key] = _Group(leaves[unit[0]], [], cpu, taken)
        groups[key].units.append(unit)
    return sorted(groups.values(), key=lambda group: (len(group.leave), -group.cpu_s))


def _singles(topology: Topology, leaves: Sequence[Leave], kind: str) -> Iterator[tuple[tuple[object, ...], Numbers]]:
    """Every node as a unit of its own, after the key of its group."""
    for number in range(topology.nics) if kind == "nics" else range(topology.nics, topology.nodes):
        yield (leaves[number], topology.tier_of(number)), [number]


def _plane_parts(topology: Topology, leaves: Sequence[Leave]) -> Iterator[tuple[tuple[object, ...], Numbers]]:
    """The switches of a plane that may be on the same hosts as one unit, after the key of its group."""
    for first in range(topology.nics, topology.nodes, topology.switches_per_plane):
        parts: dict[Leave, Numbers] = {}
        for number in range(first, first + topology.switches_per_plane):
            parts.setdefault(leaves[number], []).append(number)
        for leave, unit in parts.items():
            t0s = sum(topology.tier_of(number) == "t0" for number in unit)
            yield (leave, t0s, len(unit)), unit
