"""What a placement asks of every host and of the network between them.

Pure. Owns the sums: nodes, processes, ports, CPU, memory, links and bandwidth between hosts, and the pace that follows.
Loads are those of `orchestrator.hosts.placement.weights`: all ports busy both ways. `orchestrator.hosts.placement.fit`
judges whether it fits. Nodes are counted in runs and links in groups, so that no link needs a name.

The pace of a host is the dilation (wall time over fabric time) that it can keep at full load, the largest of:
    CPU seconds per second of fabric time / cores
    the same of its heaviest process, which has one core at most
    bandwidth to other hosts on the wire at dilation 1 / bandwidth of its underlay
"""

from collections import Counter
from dataclasses import dataclass

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.topology import Topology
from mrcfabric.udp import IP_BYTES
from mrcfabric.wire.layout import UDP_SIZE
from mrcfabric.wire.link import LINK_HEADER_BYTES
from orchestrator.hosts.placement.inventory import Host
from orchestrator.hosts.placement.layout import host_ports
from orchestrator.hosts.placement.placement import Placement
from orchestrator.hosts.placement.weights import SHARED_BYTES, TIERS, cpu_s, data_packet_bytes, memory_bytes, ports


@dataclass(frozen=True, slots=True)
class HostBudget:
    """What one host must carry."""

    host: Host
    nics: int
    t0s: int
    t1s: int
    processes: int
    ports: int
    memory_bytes: int
    cpu_s: float
    """CPU seconds per second of fabric time."""
    process_cpu_s: float
    """CPU of its heaviest process, in the same unit."""
    crossing_bps: int
    """Sum of the rates of all links to other hosts, one way, in fabric time."""
    pace: float | None
    """The dilation it can keep at full load; None: its cores are not known."""

    @property
    def nodes(self) -> int:
        return self.nics + self.t0s + self.t1s


@dataclass(frozen=True, slots=True)
class PairBudget:
    """The links between two hosts."""

    first: str
    second: str
    links: int
    rate_bps: int
    """Sum of the rates of these links, each way, in fabric time."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of the whole fabric."""

    placement: Placement
    hosts: tuple[HostBudget, ...]
    """In the order of the inventory, with those that carry no node."""
    pairs: tuple[PairBudget, ...]
    """Pairs with links between them."""

    @property
    def links_between(self) -> int:
        return sum(pair.links for pair in self.pairs)

    @property
    def links_within(self) -> int:
        return self.placement.topology.link_count - self.links_between

    @property
    def asked_dilation(self) -> float | None:
        """The dilation of the topology; None: as fast as the hosts can."""
        dilation = self.placement.topology.dilation
        return None if dilation == "auto" else float(dilation)

    @property
    def pace(self) -> float | None:
        """The dilation to expect at full load, that of the slowest host; None if a host's cores are not known."""
        paces = [one.pace for one in self.hosts if one.nodes]
        return max((pace for pace in paces if pace is not None), default=None) if None not in paces else None

    @property
    def dilation(self) -> float | None:
        """The dilation at which figures of the wire are given: the one that was asked for, or the one to expect."""
        return self.asked_dilation or self.pace

    def wire_bps(self, rate_bps: float, dilation: float) -> float:
        """What links of this rate put on the wire between hosts, one way, at full load."""
        return rate_bps * wire_factor(self.placement.topology, self.placement.inventory.ip_version) / dilation


def budget(placement: Placement) -> Budget:
    """Compute everything that a placement asks of hosts and network."""
    topology, hosts = placement.topology, placement.inventory.hosts
    links, rates = _crossing(placement)
    factor = wire_factor(topology, placement.inventory.ip_version)
    by_tier = [Counter[str]() for _ in hosts]
    for (at, tier), count in _by_tier(placement).items():
        by_tier[at][tier] = count
    processes = _processes(placement)
    crossing = Counter[int]()
    for pair, rate_bps in rates.items():
        for at in pair:
            crossing[at] += rate_bps
    carrying = {host.name for host, (count, _) in zip(hosts, processes, strict=True) if count}
    several = len(carrying | {placement.inventory.rules.orchestrator}) > 1
    budgets = []
    for at, host in enumerate(hosts):
        tiers = {tier: by_tier[at][tier] for tier in TIERS}
        count, heaviest = processes[at]
        cpu = sum(number * cpu_s(topology, tier) for tier, number in tiers.items())
        taken = sum(number * ports(topology, tier) for tier, number in tiers.items())
        memory = sum(number * memory_bytes(tier) for tier, number in tiers.items())
        budgets.append(
            HostBudget(
                host=host,
                nics=tiers["nic"],
                t0s=tiers["t0"],
                t1s=tiers["t1"],
                processes=count,
                ports=taken + host_ports(several=several) if count else 0,
                memory_bytes=memory + SHARED_BYTES if count else 0,
                cpu_s=cpu,
                process_cpu_s=heaviest,
                crossing_bps=crossing[at],
                pace=_pace(host, cpu, heaviest, crossing[at] * factor),
            )
        )
    pairs = (PairBudget(hosts[a].name, hosts[b].name, links[a, b], rates[a, b]) for a, b in sorted(links))
    return Budget(placement, tuple(budgets), tuple(pairs))


# Sums.


def wire_factor(topology: Topology, ip_version: int) -> float:
    """Bytes on the wire between hosts for each byte on an emulated link. Both include Ethernet's overhead."""
    packet = data_packet_bytes(topology)
    outer = IP_BYTES[ip_version] + UDP_SIZE + LINK_HEADER_BYTES
    return (packet + outer + OVERHEAD_BYTES) / (packet + OVERHEAD_BYTES)


def _pace(host: Host, cpu: float, heaviest: float, wire_bps: float) -> float | None:
    if host.cores is None:
        return None
    network = wire_bps / host.bandwidth_bps if host.bandwidth_bps else 0.0
    return max(cpu / host.cores, heaviest, network)


def _by_tier(placement: Placement) -> Counter[tuple[int, str]]:
    """(host, tier) -> how many nodes."""
    topology, numbers = placement.topology, placement.host_numbers
    found: Counter[tuple[int, str]] = Counter()
    _add(found, "nic", Counter(numbers[: topology.nics]))
    for first in range(topology.nics, topology.nodes, topology.switches_per_plane):
        middle, end = first + topology.t0_per_plane, first + topology.switches_per_plane
        _add(found, "t0", Counter(numbers[first:middle]))
        _add(found, "t1", Counter(numbers[middle:end]))
    return found


def _add(found: Counter[tuple[int, str]], tier: str, counts: Counter[int]) -> None:
    for host, count in counts.items():
        found[host, tier] += count


def _processes(placement: Placement) -> list[tuple[int, float]]:
    """By host: how many processes, and the CPU seconds per second of fabric time of the heaviest."""
    topology, most = placement.topology, placement.inventory.rules.nodes_per_process
    nics = Counter(placement.host_numbers[: topology.nics])
    found = [(nics[at], cpu_s(topology, "nic") if nics[at] else 0.0) for at in range(len(placement.inventory.hosts))]
    size, t0s = topology.switches_per_plane, topology.t0_per_plane
    t0_s, t1_s = cpu_s(topology, "t0"), cpu_s(topology, "t1")
    for first in range(topology.nics, topology.nodes, size):
        below = Counter(placement.host_numbers[first : first + t0s])
        above = Counter(placement.host_numbers[first + t0s : first + size])
        for host in below.keys() | above.keys():
            count, heaviest = found[host]
            fullest = _heaviest(below[host], above[host], most, t0_s, t1_s)
            found[host] = (count + -(-(below[host] + above[host]) // most), max(heaviest, fullest))
    return found


def _heaviest(t0s: int, t1s: int, most: int, t0_s: float, t1_s: float) -> float:
    """CPU of the heaviest process, where T0s and then T1s fill processes of `most` switches in order."""
    loads = [0.0]
    for first in range(0, t0s + t1s, most):
        lower = max(0, min(first + most, t0s) - first)
        upper = min(first + most, t0s + t1s) - max(first, t0s) if first + most > t0s else 0
        loads.append(lower * t0_s + upper * t1_s)
    return max(loads)


def _crossing(placement: Placement) -> tuple[Counter[tuple[int, int]], Counter[tuple[int, int]]]:
    """Links between two hosts, and the sum of their rates, by host numbers, the smaller first."""
    topology, numbers = placement.topology, placement.host_numbers
    links: Counter[tuple[int, int]] = Counter()
    each = topology.nics_per_t0
    below = [Counter(numbers[first : first + each]) for first in range(0, topology.nics, each)]
    for first in range(topology.nics, topology.nodes, topology.switches_per_plane):
        middle, end = first + topology.t0_per_plane, first + topology.switches_per_plane
        for t0, nics in zip(numbers[first:middle], below, strict=True):
            for host, count in nics.items():
                _count(links, t0, host, count)
        above = Counter(numbers[middle:end])
        for t0, lower in Counter(numbers[first:middle]).items():
            for t1, upper in above.items():
                _count(links, t0, t1, lower * upper)
    rates = Counter({pair: count * topology.rate_bps for pair, count in links.items()})
    for name, rate_bps in topology.link_rates_bps.items():
        link = topology.parse_link(name)
        a, b = (numbers[topology.node_index(end)] for end in (link.a, link.b))
        _count(rates, a, b, rate_bps - topology.rate_bps)
    return links, rates


def _count(found: Counter[tuple[int, int]], a: int, b: int, count: int) -> None:
    if a != b:
        found[min(a, b), max(a, b)] += count
