"""The two kinds of fabric as scripts use them: launched here, or running already and reached through its agent.

    async with Fabric.launch(Topology.demo(), Path("out/demo")) as fabric: ...
    async with Fabric.attach(name="demo") as fabric: ...

Owns nothing but the joining of each kind with the verbs of `scripting`.
"""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from orchestrator.api.scripting import Scripting
from orchestrator.client.agent_fabric import AgentFabric
from orchestrator.fabric.launched import LaunchedFabric


class AttachedFabric(Scripting, AgentFabric):
    """A running fabric. Make it with `Fabric.attach`; the connection is closed at the end of the block."""


class Fabric(Scripting, LaunchedFabric):
    """A fabric whose daemons run. Make it with `launch`; it is closed at the end of the block."""

    @staticmethod
    def attach(
        name: str | None = None, run_dir: Path | None = None, owner: str | None = None
    ) -> AbstractAsyncContextManager[AttachedFabric]:
        """The same verbs for a fabric that runs already: by name, by folder, or the only one below `out/`.

        Its daemons stay when the block ends; what was broken in it as `owner` (None: a name of its own) is healed.
        Raises ConfigError when no such fabric runs.
        """
        return AttachedFabric.open(name, run_dir, owner)
