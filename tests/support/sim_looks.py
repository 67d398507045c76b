"""Looks at a fabric in virtual time as at a running one: the cores are asked what daemons would answer to a glance."""

from typing import Any

from mrcfabric.glance import Glance, Head
from nicd.programs.hosted_nic import HostedNic
from orchestrator.fabric.polling import Glances
from orchestrator.fabric.readings import ClockReading
from orchestrator.live.live_view import Sight
from orchestrator.live.snapshot import Snapshot
from orchestrator.sim.fabric import SimulatedFabric
from switchd.core.switch import Switch


class SimLooks:
    """Snapshots of one fabric, each of the time since the one before."""

    def __init__(self, fabric: SimulatedFabric) -> None:
        self._fabric = fabric
        self._sight = Sight(fabric.topology)

    def look(self, until_ns: int) -> Snapshot:
        """Let time run, and look."""
        self._fabric.run(until_ns)
        pace = {"fabric_ns": until_ns, "run_wall_s": 0.0, "dilation_nominal": 0.0, "dilation_effective": None}
        clock = ClockReading(until_ns, until_ns, until_ns + 1, until_ns + 1, None, False, False, "run", pace)
        nodes: dict[str, Glance | None] = {name: self._glance(name) for name in self._fabric.topology.node_names()}
        return self._sight.see(Glances(clock, 12.5, nodes, ()), self._fabric.faults())

    def _glance(self, name: str) -> Glance:
        core = self._fabric.simulator.node(name)
        head: Any = Head(self._fabric.now_ns, 0, 0, 0, 0, 0)
        if isinstance(core, HostedNic):
            return [head, *core.glance(core.host.glance())]
        assert isinstance(core, Switch)
        return [head, *core.glance()]
