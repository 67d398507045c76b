"""Where every part of a fabric is: processes, addresses and ports, slots of the clock page, and each daemon's links.

Pure arithmetic over a topology and its hosts; it opens and starts nothing. Topology, hosts and the base of the port
block fix the ports of all sockets, so that a restarted daemon has the same ones. All hosts have the same block, as
large as the fullest host needs, and each host counts its own sockets. `mrcfabric.daemon_config` reads a daemon's
configuration; `orchestrator.fabric` starts the daemons.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from mrcfabric.errors import ConfigError
from mrcfabric.topology import PortLink, Topology
from orchestrator.hosts.placement.frames import frame_bytes
from orchestrator.hosts.placement.partition import partition
from orchestrator.hosts.placement.site import LEADER, LOOPBACK, Sites
from orchestrator.hosts.placement.weights import ports
from orchestrator.process.ports import PORT_END, PORT_MIN

Pack: TypeAlias = Literal["none", "plane", "cores", "auto"]
Address: TypeAlias = tuple[str, int]

PACKS: tuple[Pack, ...] = ("none", "plane", "cores", "auto")
AUTO_DAEMONS_PER_CORE: Final = 4
"""With more daemons per core on any host, `auto` is `cores`, else `none`."""

NICD_ENTRY = "nicd.daemon:run_nicd"
SWITCHD_ENTRY = "switchd.daemon:run_switchd"
SHARED_PROCESS_ENTRY = "orchestrator.hosts.shared_process_entry:run"
PRELOADED = ("orchestrator.hosts.warmup:warm_up",)
"""Called in the fork server before its first fork. It imports both daemons' modules."""


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """One process and the daemons in it."""

    name: str
    """The name of its node. Of a process that several share: the plane (`p3`) if it holds all switches of the plane,
    `core-2` if it was cut by cores, else the first node and `+`."""
    entry: str
    nodes: tuple[str, ...]
    site: int = 0
    """The number of its host."""

    @property
    def shared(self) -> bool:
        """Whether several daemons share it (`orchestrator.process.shared_processes`)."""
        return self.entry == SHARED_PROCESS_ENTRY

    @property
    def title(self) -> str:
        """What `ps` shows of a shared process."""
        kinds = {"nic" if node.startswith("h") else "switch" for node in self.nodes}
        return {"nic": "nicd", "switch": "switchd"}.get("+".join(kinds), "fabricd") + f" {self.name}"


PACK_HINT: Final = (
    "none: a process per daemon; plane: one per plane; cores: one per core; auto: by cores beyond "
    f"{AUTO_DAEMONS_PER_CORE} daemons per core"
)


def pack_of(text: str) -> Pack:
    """The packing of this name. Raises ConfigError."""
    for pack in PACKS:
        if pack == text:
            return pack
    raise ConfigError(f"--pack {text}", "no such packing", PACK_HINT)


def settled(topology: Topology, pack: Pack, sites: Sites, cores: Sequence[int]) -> Pack:
    """The packing that `auto` comes to on hosts with so many cores; any other as it is."""
    if pack != "auto":
        return pack
    crowds = Counter(map(sites.number, topology.node_names()))
    few = all(daemons <= AUTO_DAEMONS_PER_CORE * cores[site] for site, daemons in crowds.items())
    return "none" if few else "cores"


def host_ports(*, several: bool) -> int:
    """Ports of a host beside its nodes': the agent's HTTP port, and a relay's if there are several hosts."""
    return 1 + several


def port_count(topology: Topology, sites: Sites) -> int:
    """The size of a fabric's port block: the ports that its fullest host needs."""
    if sites.several:
        return _numbered(topology, sites)[1]
    # Count without names of nodes: this may be asked about a fabric of any size.
    return 2 * topology.link_count + topology.nodes + host_ports(several=False)


def _numbered(topology: Topology, sites: Sites) -> tuple[list[int], int]:
    """Where in the block the sockets of each node begin, in slot order, and the size of the block.

    On each host the relay comes first, then its nodes' sockets. The agent's HTTP port is the last number. Hosts that
    have an address in common share one count.
    """
    relays = host_ports(several=sites.several) - host_ports(several=False)
    taken = [relays if sites.apart else relays * len(sites.sites)] * len(sites.sites)
    firsts = []
    for slot, node in enumerate(topology.node_names()):
        host = sites.number(node) if sites.apart else LEADER
        firsts.append(taken[host])
        taken[host] += ports(topology, topology.tier_of(slot))
    return firsts, max(taken) + host_ports(several=False)


def check_size(topology: Topology, sites: Sites) -> None:
    """Raises ConfigError for a fabric that needs more ports than its hosts have."""
    needed = port_count(topology, sites)
    if needed > PORT_END - PORT_MIN:
        raise ConfigError(
            f"fabric {topology.name}",
            f"{topology.nodes} nodes and {topology.link_count} links need {needed} ports of "
            + ("one of its hosts" if sites.several else "this host"),
            f"at most {PORT_END - PORT_MIN}; `mrcfabric plan` and the simulator take any size",
        )


def processes_of(topology: Topology, pack: Pack, sites: Sites, cores: Sequence[int] = ()) -> list[ProcessPlan]:
    """Every process of the fabric. `cores`: how many each host has, by its number; for `cores` and `auto`."""
    if (pack := settled(topology, pack, sites, cores)) == "cores":
        return _by_cores(topology, sites, cores)
    return _by_plane(topology, pack, sites)


def _by_cores(topology: Topology, sites: Sites, cores: Sequence[int]) -> list[ProcessPlan]:
    """On each host as many processes as it has cores, NICs and switches in all of them."""
    there: dict[int, list[str]] = {}
    for node in topology.node_names():
        there.setdefault(sites.number(node), []).append(node)
    parts = [(site, part) for site in sorted(there) for part in partition(topology, there[site], cores[site])]
    return [_process(f"core-{number}", part, site) for number, (site, part) in enumerate(parts)]


def _process(name: str, nodes: tuple[str, ...], site: int) -> ProcessPlan:
    if len(nodes) > 1:
        return ProcessPlan(name, SHARED_PROCESS_ENTRY, nodes, site)
    return ProcessPlan(nodes[0], NICD_ENTRY if nodes[0].startswith("h") else SWITCHD_ENTRY, nodes, site)


def _by_plane(topology: Topology, pack: Pack, sites: Sites) -> list[ProcessPlan]:
    """NICs first: each has a process of its own. A switch shares one only with switches of its plane on its host."""
    plans = [_process(name, (name,), sites.number(name)) for name in topology.nic_names()]
    switches = list(topology.switch_names())
    size = topology.switches_per_plane
    most = sites.nodes_per_process if pack == "none" else size
    for plane in range(topology.planes):
        shares: dict[int, list[str]] = {}
        for node in switches[plane * size : (plane + 1) * size]:
            shares.setdefault(sites.number(node), []).append(node)
        for site, names in sorted(shares.items()):
            alone = [(name,) for name in names if name in sites.alone]
            others = [name for name in names if name not in sites.alone]
            parts = (*alone, *(tuple(others[first : first + most]) for first in range(0, len(others), most)))
            plans += [_process(f"p{plane}" if len(nodes) == size else f"{nodes[0]}+", nodes, site) for nodes in parts]
    return plans


@dataclass(slots=True)
class Layout:
    """A topology laid out on its hosts."""

    topology: Topology
    pack: Pack
    sites: Sites = field(default_factory=Sites)
    host: str = LOOPBACK
    """Where the agent serves HTTP."""
    port_base: int = 0
    """First number of the port block; set once it is reserved."""
    cores: Sequence[int] = ()
    """How many cores each host has, by its number; for the packings that ask for them."""
    processes: list[ProcessPlan] = field(init=False)
    ports: dict[str, list[PortLink]] = field(init=False)
    """Every node's cables, nodes in slot order."""
    process_of: dict[str, str] = field(init=False)
    """Node -> its process."""
    cut: dict[tuple[int, int], int] = field(default_factory=dict)
    """(host, other host) -> the largest packet that goes there in one piece, for pairs where frames are longer."""
    port_count: int = field(init=False)
    """Size of the port block."""
    _firsts: list[int] = field(init=False)
    """Where in the block the sockets of each node begin, in slot order."""
    _crowds: Counter[int] = field(init=False)
    """How many processes each host has."""

    def __post_init__(self) -> None:
        topology = self.topology
        self.pack = settled(topology, self.pack, self.sites, self.cores)
        self.processes = processes_of(topology, self.pack, self.sites, self.cores)
        self.process_of = {node: plan.name for plan in self.processes for node in plan.nodes}
        self.ports = {name: topology.ports(name) for name in topology.node_names()}
        self._firsts, self.port_count = _numbered(topology, self.sites)
        self._crowds = Counter(plan.site for plan in self.processes)

    @property
    def doorbells_here(self) -> int:
        """How many processes the leader's host has, with its relay if there are several hosts."""
        own = sum(plan.site == LEADER for plan in self.processes)
        return own + self.sites.several

    @property
    def http_port(self) -> int:
        """The agent's HTTP port."""
        return self.port_base + self.port_count - 1

    @property
    def http_address(self) -> str:
        """Where the agent serves HTTP, as in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.http_port}"

    def slot(self, node: str) -> int:
        """A node's index in the clock page."""
        return self.topology.node_index(node)

    def peers(self) -> list[list[tuple[int, int]]]:
        """By slot and port, the peer's slot and port, as `ClockPage.create` takes them."""
        slots = {name: slot for slot, name in enumerate(self.ports)}
        return [[(slots[end.peer], end.peer_port) for end in ends] for ends in self.ports.values()]

    def control_address(self, node: str) -> Address:
        """Where a daemon listens for its agent."""
        return self.sites.site(node).control, self._first(node) + len(self.ports[node])

    def relay_addresses(self) -> list[Address]:
        """Where the relay of each host listens."""
        numbers = enumerate(self.sites.sites, self.port_base)
        return [(site.control, self.port_base if self.sites.apart else number) for number, site in numbers]

    def probe_addresses(self) -> list[Address]:
        """Where the relay of each host answers probes of paths: UDP ports with the same numbers as its TCP ports."""
        return [(site.data, port) for site, (_, port) in zip(self.sites.sites, self.relay_addresses(), strict=True)]

    def crowd(self, node: str) -> int:
        """How many processes the host of a node has."""
        return self._crowds[self.sites.number(node)]

    @property
    def crowd_max(self) -> int:
        """How many processes the host with the most has."""
        return max(self._crowds.values())

    @property
    def daemons_max(self) -> int:
        """How many daemons the host with the most has."""
        return max(Counter(plan.site for plan in self.processes for _ in plan.nodes).values())

    @property
    def frame_bytes(self) -> int:
        """The largest IP packet between hosts."""
        return frame_bytes(self.topology.mtu_bytes, self.sites.ip_version)

    def host_pairs(self) -> set[tuple[int, int]]:
        """All pairs of hosts with links between them, in both orders."""
        number = self.sites.number
        pairs = {(number(node), number(end.peer)) for node, ends in self.ports.items() for end in ends}
        return {(one, other) for one, other in pairs if one != other}

    def host_numbers(self) -> list[int]:
        """The number of every node's host, in slot order."""
        return [self.sites.number(node) for node in self.ports]

    def data_address(self, node: str, port: int) -> Address:
        """The address of a node's socket for the cable in one of its ports."""
        return self.sites.site(node).data, self._first(node) + port

    def _first(self, node: str) -> int:
        return self.port_base + self._firsts[self.slot(node)]

    def links_of(self, node: str) -> list[dict[str, Any]]:
        """The `links` part of a daemon's configuration."""
        number = self.sites.number
        return [
            {
                "port": end.port,
                "local": list(self.data_address(node, end.port)),
                "peer": list(self.data_address(end.peer, end.peer_port)),
                "peer_node": end.peer,
                "peer_slot": self.slot(end.peer),
                "peer_port": end.peer_port,
                "delay_ns": end.incoming_delay_ns,
                "path_mtu": self.cut.get((number(node), number(end.peer))),
            }
            for end in self.ports[node]
        ]
