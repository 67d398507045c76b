"""The two kinds of fabric for scripts: launched here, or already running and reached through its agent.

    async with Fabric.launch(Topology.demo(), Path("out/demo")) as fabric: ...
    async with Fabric.attach(name="demo") as fabric: ...

Joins each kind with the methods of `scripting`, and owns nothing else.
"""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from orchestrator.api.scripting import Scripting
from orchestrator.client.agent_fabric import AgentFabric
from orchestrator.fabric.launched import LaunchedFabric


class AttachedFabric(Scripting, AgentFabric):
    """A running fabric. Make it with `Fabric.attach`, which closes the connection at the end of the block."""


class Fabric(Scripting, LaunchedFabric):
    """A fabric whose daemons run. Make it with `launch`, which closes it at the end of the block."""

    @staticmethod
    def attach(
        name: str | None = None, run_dir: str | Path | None = None, owner: str | None = None
    ) -> AbstractAsyncContextManager[AttachedFabric]:
        """Attach to a fabric that already runs: by name, by folder, or the only one below `out/`. Same methods.

        At the end of the block its daemons stay. The faults injected as `owner` (None: a name is made up) are healed.
        Raises ConfigError when no such fabric runs.
        """
        return AttachedFabric.open(name, run_dir, owner)
