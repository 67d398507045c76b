"""From an inventory to the cluster of a fabric: which host is which site, and what an engine starts there.

Owns the translation of a placement into sites. `orchestrator.hosts.placement.placing` places nodes on hosts, an engine
(`orchestrator.hosts.engines`) starts share agents, and `orchestrator.hosts.cluster` does everything after that.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.faults.host_map import HostMap
from orchestrator.hosts.cluster import Cluster
from orchestrator.hosts.engines.engine import AGENT, Engine, Launch, Running
from orchestrator.hosts.engines.local import LocalEngine
from orchestrator.hosts.engines.service import ServiceEngine
from orchestrator.hosts.engines.slurm import SlurmEngine
from orchestrator.hosts.engines.ssh import SshEngine
from orchestrator.hosts.host_start import Host, Start
from orchestrator.hosts.placement import inventory as inventories
from orchestrator.hosts.placement.allocation import allocated
from orchestrator.hosts.placement.budget import budget
from orchestrator.hosts.placement.fit import refuse
from orchestrator.hosts.placement.inventory import Inventory
from orchestrator.hosts.placement.inventory_file import NODES_PER_PROCESS_MAX, load
from orchestrator.hosts.placement.placement import Placement
from orchestrator.hosts.placement.placing import place
from orchestrator.hosts.placement.site import LEADER, LOOPBACK, Site, Sites
from orchestrator.process import ports

ENGINES: Final[Mapping[str, Callable[[], Engine]]] = {
    "local": LocalEngine,
    "service": ServiceEngine,
    "slurm": SlurmEngine,
    "ssh": SshEngine,
}
HOSTS_OF: Final[Mapping[str, Callable[[Path | None, Callable[[str], None]], Inventory]]] = {"slurm": allocated}
"""Engines that know their hosts themselves, and how to ask them, with the file of an inventory or without."""
CARRIERS: Final[Mapping[str, Callable[[Path], Engine]]] = {
    "slurm": lambda folder: SlurmEngine(wheelhouse=folder),
    "ssh": lambda folder: SshEngine(wheelhouse=folder),
}
"""Engines that bring packages from a folder of wheels to hosts that lack them."""

STANDS: Final = "."
"""The folder of runs, as the share agent is told: an engine starts the agent in the folder that the inventory names."""


def placed(topology: Topology, file: Path, nodes_per_process: int | None = None) -> Placement:
    """Place a topology on the hosts of an inventory's file. `nodes_per_process` overrides the file's rule.

    Raises ConfigError.
    """
    return placed_on(topology, load(file), nodes_per_process)


def placed_on(topology: Topology, inventory: Inventory, nodes_per_process: int | None = None) -> Placement:
    """As `placed`, on the hosts of an inventory. Raises ConfigError."""
    if nodes_per_process is not None:
        if not 1 <= nodes_per_process <= NODES_PER_PROCESS_MAX:
            where, hint = f"--nodes-per-process {nodes_per_process}", f"1 to {NODES_PER_PROCESS_MAX}"
            raise ConfigError(where, "will not do", hint)
        inventory = replace(inventory, rules=replace(inventory.rules, nodes_per_process=nodes_per_process))
    return place(topology, inventory)


def engine_of(name: str, wheelhouse: Path | None = None) -> Engine:
    """The engine of this name; `wheelhouse`: the folder of wheels that it carries to hosts. Raises ConfigError."""
    if name == "kubernetes":
        hint = "`mrcfabric manifests` writes what a cluster starts; in its pods the engine is service"
        raise ConfigError(f"--engine {name}", "is none: a cluster starts its pods itself", hint)
    if name not in ENGINES:
        raise ConfigError(f"--engine {name}", "no such engine", "there are " + ", ".join(ENGINES))
    if wheelhouse is None:
        return ENGINES[name]()
    if name not in CARRIERS:
        raise ConfigError("--wheelhouse", f"the engine {name} carries no packages", "of " + ", ".join(CARRIERS))
    return CARRIERS[name](wheelhouse)


def sites_of(placement: Placement) -> Sites:
    """The sites of a placement. The orchestrator's is the first, even if it carries no daemons."""
    inventory = placement.inventory
    leader = inventory.rules.orchestrator
    first = inventory.host(leader) if leader else None
    others = [host for host in inventory.hosts if host is not first and placement.nodes_on(host.name)]
    here = Site("orchestrator", LOOPBACK, LOOPBACK) if first is None else _site(first)
    of_node = {node: number for number, host in enumerate(others, 1) for node in placement.nodes_on(host.name)}
    return Sites((here, *map(_site, others)), of_node, inventory.rules.nodes_per_process)


def _site(host: inventories.Host) -> Site:
    labels = tuple(f"{key}={value}" for key, value in host.labels.items())
    return Site(host.name, host.data, host.control, labels, host.mtu, host.cores)


def host_map(topology: Topology, file: Path | None, engine: str = "") -> HostMap:
    """Map nodes to the hosts that `hosts_meant` finds; starts nothing. Raises ConfigError."""
    inventory = hosts_meant(file, engine, lambda _line: None)
    return sites_of(placed_on(topology, inventory)).host_map(topology)


def hosts_meant(file: Path | None, engine: str, say: Callable[[str], None]) -> Inventory:
    """The hosts that an engine of HOSTS_OF chooses, with a file or without, or else the file's. Raises ConfigError."""
    if engine in HOSTS_OF:
        return HOSTS_OF[engine](file, say)
    assert file is not None, f"{engine} knows no hosts itself"
    return load(file)


def build(
    topology: Topology,
    file: Path | None,
    engine: str,
    nodes_per_process: int | None,
    lease_s: float,
    say: Callable[[str], None],
    wheelhouse: Path | None = None,
) -> Cluster:
    """The cluster of a topology, not yet open, on the hosts of an inventory's file or on those that the engine knows.

    Raises ConfigError for a mistake in the file, and for a fabric that does not fit. `say` receives the agents' lines.
    """
    starting = engine_of(engine, wheelhouse)
    placement = placed_on(topology, hosts_meant(file, engine, say), nodes_per_process)
    refuse(budget(placement))
    _check_leads(sites_of(placement).sites[LEADER])
    return cluster_of(placement, starting, lease_s, say)


def _check_leads(site: Site) -> None:
    """Raises ConfigError if the host that must lead is not this machine."""
    try:
        ports.check_own(site.control, site.data)
    except ConfigError as error:
        hint = f"give the command on {site.name}, which is the `orchestrator`, or correct its address"
        raise ConfigError(f"host {site.name}", f"this machine {error.what}", hint) from None


def cluster_of(placement: Placement, engine: Engine, lease_s: float, say: Callable[[str], None]) -> Cluster:
    """The cluster of a placement, not yet open. `say` receives the agents' lines, each with its host's name."""
    sites = sites_of(placement)
    own_ports = not isinstance(engine, LocalEngine)  # its hosts are this machine, and the leader reserves the ports
    hosts = [
        Host(_starter(engine, host, say), STANDS, own_ports)
        for host in (placement.inventory.host(site.name) for site in sites.sites[1:])
    ]
    cluster = Cluster(sites, hosts, lease_s)
    cluster.on_warning = say
    return cluster


def _starter(engine: Engine, host: inventories.Host, say: Callable[[str], None]) -> Start:
    def start(message: dict[str, Any]) -> Awaitable[Running]:
        return engine.start(host, Launch(AGENT, message, on_line=lambda line: say(f"{host.name}: {line}")))

    return start
