"""state.json: tells other programs where the parts of a running fabric are.

Owns what the file says and when it is rewritten. `orchestrator.process.run_folder` owns the folder;
`orchestrator.client.agent_client` reads the file.
"""

from typing import Any

from mrcfabric.errors import ConfigError
from mrcfabric.units import Instant
from orchestrator.fabric.daemons import Daemons
from orchestrator.fabric.journal import Journal
from orchestrator.hosts.placement.site import LEADER
from orchestrator.process.run_folder import RunFolder


class StateFile:
    """The state file of one fabric. `write` it when all daemons are ready, `update` it when one dies or returns."""

    def __init__(
        self, folder: RunFolder, daemons: Daemons, epoch: int, forkserver_pid: int | None, journal: Journal
    ) -> None:
        self._folder = folder
        self._daemons = daemons
        self._epoch = epoch
        self._forkserver_pid = forkserver_pid
        self._journal = journal

    def content(self) -> dict[str, Any]:
        """The content of the file as plain data, without the secret."""
        layout = self._daemons.layout
        topology = layout.topology
        return {
            "name": topology.name,
            "digest": topology.digest(),
            "topology": topology.to_dict(),
            "epoch": self._epoch,
            "pack": layout.pack,
            "port_base": layout.port_base,
            "ports": layout.port_count,
            "http": f"http://{layout.http_address}",
            "agent_socket": str(self._folder.agent_socket),
            "forkserver_pid": self._forkserver_pid,
            "host_map": layout.sites.host_map(topology).record(),
            "nodes": {
                member.node: {
                    "pid": member.child.pid if member.child is not None else None,
                    "alive": member.alive,
                    "process": member.process.name,
                    "host": None if member.process.site == LEADER else layout.sites.site(member.node).name,
                    "incarnation": member.incarnation,
                    "control": list(layout.control_address(member.node)),
                }
                for member in self._daemons.members.values()
            },
        }

    def write(self) -> None:
        """Write the file. Raises ConfigError when that fails."""
        self._folder.write_state(self.content())

    def update(self, at_ns: Instant) -> None:
        """Rewrite the file while the fabric runs. A full disk only means that readers learn of deaths late."""
        try:
            self.write()
        except ConfigError as error:
            self._journal.note("unwritten", at_ns, why=str(error))
