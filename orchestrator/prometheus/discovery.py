"""Where Prometheus finds a fabric: one target per node and the agent, in the form that http_sd and file_sd share.

Owns the labels of targets. The agent serves the list at `/sd` and writes it to `targets.json` of the run folder; the
configuration that reads them is `orchestrator.prometheus.configuration`'s.
"""

from typing import Any

from orchestrator.hosts.placement.layout import Layout
from orchestrator.hosts.placement.site import LEADER

AGENT = "agent"
"""The agent's own target, by role and by node."""


def targets(layout: Layout, host: str) -> list[dict[str, Any]]:
    """Every target of one fabric: nodes in slot order, then the agent.

    All are the agent's one HTTP port and differ in path. Labels of each: `fabric`, `plane` (empty for a NIC, which
    stands in all, and for the agent), `role` (nic, t0, t1 or agent), `node`, `host` (the machine: of several as
    everything else calls it, the inventory above all; of one as it calls itself, `host`) and `instance`, the node.
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
