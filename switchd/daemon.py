"""The daemon of a switch: the switch core under the runner, and the ops that it has beside those of all daemons.

impairments {}               the faults in force, by port
ports {port}                 settings of a port and counts of its queues (`switchd.rows`); without `port`, of all
usids {}                     the table with its counters
routes {}                    sessions and routes of a switch that routes for itself (`switchd.core.routing.summary`)
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from mrcfabric.command_table import CommandTable
from mrcfabric.control import Op
from mrcfabric.daemon import Daemon, instant_of
from mrcfabric.daemon_config import DaemonConfig
from mrcfabric.daemon_process import run_tables
from mrcfabric.errors import RefusedError
from mrcfabric.glance import SwitchRest
from mrcfabric.metrics import Family
from mrcfabric.witness import Witness
from switchd import metrics
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.core.commands import (
    ClearImpairments,
    ResetSession,
    SetCarrier,
    SetEcn,
    SetForwarding,
    SetHash,
    SetHeadroom,
    SetImpairment,
    SetRouting,
    SetSession,
    SetTrim,
)
from switchd.core.routing.summary import route_rows, session_rows
from switchd.core.speaking import SpeakingLosslessSwitch, SpeakingSwitch
from switchd.rows import port_rows, usid_rows


def run_switchd(configs: Sequence[Mapping[str, Any]], fds: Sequence[int] = (), title: str = "") -> int:
    """The fork server's entry: run one or several switches in this process until told to stop; returns the exit code.

    `configs` are tables as `mrcfabric.daemon_config` describes them, one per switch. Those of one process name the same
    clock, but for `clock.slot`. Descriptors in them are the numbers that this process has; `fds` are the process's own
    and not needed. `title` names the process; by default it has the name of the node, or of the plane when there are
    several.
    """
    return run_tables("switchd", configs, build, title)


def build(config: DaemonConfig, stop: asyncio.Event) -> Daemon:
    """The daemon of one switch. Raises ConfigError."""
    return SwitchDaemon(config, stop)


class SwitchDaemon(Daemon):
    """One switch."""

    kind = "switch"
    commands = CommandTable(
        [
            SetImpairment,
            ClearImpairments,
            SetCarrier,
            SetTrim,
            SetEcn,
            SetForwarding,
            SetHeadroom,
            SetHash,
            SetRouting,
            ResetSession,
            SetSession,
        ]
    )

    def __init__(self, config: DaemonConfig, stop: asyncio.Event) -> None:
        self.switch = build_switch(switch_config(config.topology, config.node), config.start_ns)
        super().__init__(config, self.switch, stop)

    def own_ops(self) -> Mapping[str, Op]:
        return {"impairments": self._impairments, "ports": self._ports, "usids": self._usids, "routes": self._routes}

    def own_glance(self) -> tuple[list[Any], SwitchRest]:
        return self.switch.glance()

    def own_totals(self) -> Sequence[int]:
        return self.switch.totals()

    def set_witness(self, witness: Witness | None) -> None:
        self.switch.set_witness(witness)

    def families(self, counters: dict[str, Any]) -> list[Family]:
        return metrics.collect(self.config.realm.fabric, self.config.node, counters)

    async def _impairments(self, _args: dict[str, Any]) -> dict[str, dict[str, Any]]:
        return {str(port): fault.settings() for port, fault in self.switch.impairments().items()}

    async def _ports(self, args: dict[str, Any]) -> list[dict[str, Any]]:
        port, rows = instant_of(args, "port"), port_rows(self.switch)
        if port is not None and port >= len(rows):
            raise RefusedError(f"no port {port}; ports are 0 to {len(rows) - 1}")
        return rows if port is None else rows[port : port + 1]

    async def _usids(self, _args: dict[str, Any]) -> list[dict[str, Any]]:
        return usid_rows(self.switch)

    async def _routes(self, _args: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        if not isinstance(self.switch, SpeakingSwitch | SpeakingLosslessSwitch):
            raise RefusedError("the switches of this fabric do not route for themselves (switch.routing: bgp)")
        return {"sessions": session_rows(self.switch.router), "routes": route_rows(self.switch.router)}
