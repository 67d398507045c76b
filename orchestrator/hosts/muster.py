"""From an inventory to the ground of a fabric: who runs where, and what an engine is asked to start there.

Owns the translation of a placement into sites. Placing is `orchestrator.hosts.placing`'s, starting an engine's
(`orchestrator.hosts.engines`), all that follows `orchestrator.hosts.ground`'s.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mrcfabric.control_message import Address
from mrcfabric.errors import ConfigError
from orchestrator.hosts import inventory as inventories
from orchestrator.hosts.engines.engine import Engine, Launch, Running
from orchestrator.hosts.engines.local import LocalEngine
from orchestrator.hosts.engines.ssh import SshEngine
from orchestrator.hosts.ground import Ground, Host
from orchestrator.hosts.placement import Placement
from orchestrator.hosts.site import LOOPBACK, Site, Sites

AGENT: Final = ("-P", "-m", "orchestrator.hosts.share_agent")
ENGINES: Final[Mapping[str, Callable[[], Engine]]] = {"local": LocalEngine, "ssh": SshEngine}


def engine_of(name: str) -> Engine:
    """An engine by name. Raises ConfigError."""
    if name not in ENGINES:
        raise ConfigError(f"--engine {name}", "no such engine", "there are " + ", ".join(ENGINES))
    return ENGINES[name]()


def sites_of(placement: Placement) -> Sites:
    """The sites of a placement: the orchestrator's first, whether it carries daemons or not."""
    inventory = placement.inventory
    leader = inventory.rules.orchestrator
    first = inventory.host(leader) if leader else None
    others = [host for host in inventory.hosts if host is not first and any(placement.numbers_on(host.name))]
    here = Site("orchestrator", LOOPBACK, LOOPBACK) if first is None else Site(first.name, first.data, first.control)
    of_node = {node: number for number, host in enumerate(others, 1) for node in placement.nodes_on(host.name)}
    sites = (here, *(Site(host.name, host.data, host.control) for host in others))
    return Sites(sites, of_node, inventory.rules.nodes_per_process)


def ground_of(placement: Placement, engine: Engine, say: Callable[[str], None]) -> Ground:
    """The ground of a placement, not yet open. `say` hears what agents have to say, each line with its host's name."""
    sites = sites_of(placement)
    taken = {sites.sites[0].data}
    hosts = []
    for site in sites.sites[1:]:
        host = placement.inventory.host(site.name)
        hosts.append(Host(_starter(engine, host, say), host.run_dir, own_ports=site.data not in taken))
        taken.add(site.data)
    return Ground(sites, hosts)


@dataclass(slots=True)
class _Started:
    """A running agent as the ground wants it."""

    running: Running
    address: Address

    @property
    def ended(self) -> "asyncio.Future[str]":
        return self.running.ended

    async def stop(self) -> None:
        await self.running.stop()


def _starter(engine: Engine, host: inventories.Host, say: Callable[[str], None]) -> Any:
    async def start(message: dict[str, Any]) -> _Started:
        launch = Launch(AGENT, message, on_line=lambda line: say(f"{host.name}: {line}"))
        running = await engine.start(host, launch)
        return _Started(running, (running.told["address"], running.told["port"]))

    return start
