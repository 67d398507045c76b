"""The agent's requests about hosts: report the state of each, take a lost one back, restart one that runs.

Owns which hosts may be restarted, and what a restart is. For a lost host the share is started first, then its nodes,
all born at one instant. For a host that runs it is the fault `host_crash`, for the shortest possible time.
`orchestrator.hosts.cluster` starts shares; `orchestrator.fabric.lifecycle` handles deaths and returns of nodes.
"""

from collections.abc import Mapping
from typing import Any, Final

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.client import bodies
from orchestrator.fabric.launched import LaunchedFabric
from orchestrator.faults.checks import absence_ns_min
from orchestrator.faults.fault import once
from orchestrator.hosts.placement.site import LEADER

CRASH: Final = "host_crash"


class HostRequests:
    """Requests about the hosts of one fabric. Each raises ConfigError and RefusedError."""

    def __init__(self, fabric: LaunchedFabric) -> None:
        self._fabric = fabric

    async def every(self, _body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List every host (`rows`)."""
        return self.rows()

    def rows(self) -> list[dict[str, Any]]:
        """One row for each host; empty when there is only this one.

        Each row has its name as `host`, its `address` for data and for `control`, how many `nodes` it has and how many
        are `alive`, its `state` (runs, starts or lost) and `why`, whether its disk is `full`, which hosts it cannot
        hear (`unheard`), how many `restarts` its share has had, which `cores` run there ("" while it does not run), and
        whether it `leads`.
        """
        fabric = self._fabric
        sites, members, cluster = fabric.layout.sites, fabric.daemons.members, fabric.cluster
        if not sites.several:
            return []
        rows = []
        for number, site in enumerate(sites.sites):
            alive = [members[node].alive for node in self._nodes(number)]
            state, why = cluster.condition(number)
            rows.append(
                {
                    "host": site.name,
                    "address": site.data,
                    "control": site.control,
                    "nodes": len(alive),
                    "alive": sum(alive),
                    "state": state,
                    "why": why,
                    "full": state == "runs" and cluster.share(number).full,
                    "unheard": cluster.unheard_by(number),
                    "restarts": cluster.restarts[number],
                    "cores": cluster.share(number).cores_line if state == "runs" else "",
                    "leads": number == LEADER,
                }
            )
        return rows

    async def restart(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Restart `host`, whether it is lost or runs.

        Returns the `host`, its `nodes` that live again, and `at_ns`, the instant from which they do (None: no node
        returned). Lost host: its share is started again, and those of its nodes return that died with it or otherwise
        unasked; answers when they live. Then it also raises ProcessFailedError, when a share or a daemon does not
        start. Running host: answers before all its nodes die, at `dies_ns`.
        """
        fabric = self._fabric
        name = bodies.text(body, "host")
        number = self._number(name)
        if number == LEADER:
            raise RefusedError(f"host {name} leads the fabric: `mrcfabric down` and `mrcfabric up` start that anew")
        for fault in fabric.faults():
            if fault.kind == CRASH and name in fault.targets:
                raise RefusedError(
                    f"host {name} is being restarted already"
                    if fault.id == _restart(name)
                    else f"host {name} crashes by fault {fault.id}: heal that"
                )
        nodes = self._nodes(number)
        if fabric.cluster.condition(number)[0] == "runs":
            dies_ns = fabric.soon_ns()
            lives_ns = dies_ns + absence_ns_min(fabric.topology)
            await fabric.inject(once(CRASH, name, at_ns=dies_ns, until_ns=lives_ns, fault_id=_restart(name)))
            return {"host": name, "nodes": nodes, "at_ns": lives_ns, "dies_ns": dies_ns}
        await fabric.cluster.start_share(number)
        at_ns = await fabric.injector.revive(nodes, f"host {name} was started anew")
        return {"host": name, "nodes": [node for node in nodes if fabric.alive(node)], "at_ns": at_ns}

    def _number(self, name: str) -> int:
        names = [site.name for site in self._fabric.layout.sites.sites]
        if len(names) == 1:
            raise ConfigError(f"host {name}", "is none of this fabric's", "it stands on one host alone")
        if name not in names:
            raise ConfigError(f"host {name}", "is none of this fabric's", "there are " + ", ".join(names))
        return names.index(name)

    def _nodes(self, number: int) -> list[str]:
        """The nodes placed on a host."""
        fabric = self._fabric
        return [node for node in fabric.daemons.members if fabric.layout.sites.number(node) == number]


def _restart(host: str) -> str:
    """The id of the fault that restarts a running host."""
    return f"restart-{host}"
