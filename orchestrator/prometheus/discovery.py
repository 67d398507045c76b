"""Tells Prometheus where a fabric is: one target for each node and one for the agent, for http_sd and file_sd.

Owns the labels of targets. The agent serves the list at `/sd` and writes it to `targets.json` in the run folder.
`orchestrator.prometheus.configuration` makes the configuration that reads them.
"""

from typing import Any

from orchestrator.hosts.placement.layout import Layout
from orchestrator.hosts.placement.site import LEADER

AGENT = "agent"
"""The role and the node of the agent's own target."""


def targets(layout: Layout, host: str) -> list[dict[str, Any]]:
    """Every target of one fabric: nodes in slot order, then the agent.

    All targets share the agent's HTTP port and differ in path. Each has the labels `fabric`, `plane` (empty for a NIC,
    which is in all planes, and for the agent), `role` (nic, t0, t1 or agent), `node`, `host` and `instance` (the node).
    `host` is the machine: with several hosts its name in the inventory; with one host the parameter `host`, the name
    that the machine gives itself.
    """
    fabric, sites = layout.topology.name, layout.sites
    leader = sites.sites[LEADER].name if sites.several else host
    own = [layout.http_address]

    def target(path: str, node: str, role: str, plane: str, host: str) -> dict[str, Any]:
        labels = {
            "__metrics_path__": path,
            "fabric": fabric,
            "plane": plane,
            "role": role,
            "node": node,
            "host": host,
            "instance": node,
        }
        return {"targets": own, "labels": labels}

    found = []
    for node in layout.ports:
        name = layout.topology.parse_node(node)
        plane = "" if name.tier == "nic" else str(name.plane)
        where = leader if sites.number(node) == LEADER else sites.site(node).name
        found.append(target(f"/metrics/{node}", node, name.tier, plane, where))
    return [*found, target("/metrics", AGENT, AGENT, "", leader)]
