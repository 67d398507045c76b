"""The agent's doors to hosts: how it is with each, and one that is lost taken back.

Owns whose restart makes sense, and the order: the share first, then its nodes, all born at one instant. How a share is
started anew is `orchestrator.hosts.ground`'s, how a node returns `orchestrator.mishaps`'s.
"""

from collections.abc import Mapping
from typing import Any

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator import bodies
from orchestrator.fabric import Fabric
from orchestrator.hosts.site import LEADER


class HostDesk:
    """Requests about the hosts of one fabric. All raise ConfigError and RefusedError."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric

    async def every(self, _body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Every host (`rows`)."""
        return self.rows()

    def rows(self) -> list[dict[str, Any]]:
        """Every host by name: its addresses for data and for control, how many of its `nodes` are `alive`, its `state`
        (runs, starts, or lost, and `why`), whether its disk is `full`, the hosts that are `unheard` by it, how many
        `restarts` its share has had, and whether it `leads`. None where there is but this one."""
        fabric = self._fabric
        sites, members, ground = fabric.layout.sites, fabric.roster.members, fabric.ground
        if not sites.several:
            return []
        rows = []
        for number, site in enumerate(sites.sites):
            alive = [members[node].alive for node in self._nodes(number)]
            state, why = ground.condition(number)
            rows.append(
                {
                    "host": site.name,
                    "address": site.data,
                    "control": site.control,
                    "nodes": len(alive),
                    "alive": sum(alive),
                    "state": state,
                    "why": why,
                    "full": state == "runs" and ground.share(number).full,
                    "unheard": ground.unheard_by(number),
                    "restarts": ground.restarts[number],
                    "leads": number == LEADER,
                }
            )
        return rows

    async def restart(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """`host`: one that is lost. Its share is started anew, and those of its nodes live again that had died with it
        or otherwise unasked; answers the `host`, its `nodes` that live then, and the instant `at_ns` from which on they
        do (none: no node returned). Raises ProcessFailedError too, when a share or a daemon does not start."""
        fabric = self._fabric
        name = bodies.text(body, "host")
        number = self._number(name)
        if number == LEADER:
            raise RefusedError(f"host {name} leads the fabric: `mrcfabric down` and `mrcfabric up` start that anew")
        await fabric.ground.start_share(number)
        nodes = self._nodes(number)
        at_ns = await fabric.mishaps.revive(nodes, f"host {name} was started anew")
        return {"host": name, "nodes": [node for node in nodes if fabric.alive(node)], "at_ns": at_ns}

    def _number(self, name: str) -> int:
        names = [site.name for site in self._fabric.layout.sites.sites]
        if len(names) == 1:
            raise ConfigError(f"host {name}", "is none of this fabric's", "it stands on one host alone")
        if name not in names:
            raise ConfigError(f"host {name}", "is none of this fabric's", "there are " + ", ".join(names))
        return names.index(name)

    def _nodes(self, number: int) -> list[str]:
        """What is placed on a host."""
        fabric = self._fabric
        return [node for node in fabric.roster.members if fabric.layout.sites.number(node) == number]
