"""The daemon of a switch: the switch core under the runner, and what a switch can be asked beside what all daemons can.

impairments {}               the faults in force, by port
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from mrcfabric.command_table import CommandTable
from mrcfabric.control import Op
from mrcfabric.daemon import Daemon
from mrcfabric.daemon_config import DaemonConfig
from mrcfabric.daemon_process import run_tables
from switchd import metrics
from switchd.compose import switch_config
from switchd.core.commands import ClearImpairments, SetEcn, SetImpairment, SetTrim
from switchd.core.switch import Switch


def run_switchd(configs: Sequence[Mapping[str, Any]], fds: Sequence[int] = (), title: str = "") -> int:
    """The fork server's entry: run one or several switches in this process until told to stop; returns the exit code.

    `configs` are tables as `mrcfabric.daemon_config` describes them, one per switch; those of one process name the same
    clock, `clock.slot` apart. Descriptors in them are numbers as this process has them; `fds` are the process's own
    and not needed. `title` names the process, by default after the node, or the plane when there are several.
    """
    return run_tables("switchd", configs, build, title)


def build(config: DaemonConfig, stop: asyncio.Event) -> Daemon:
    """The daemon of one switch. Raises ConfigError."""
    return SwitchDaemon(config, stop)


class SwitchDaemon(Daemon):
    """One switch."""

    kind = "switch"
    commands = CommandTable([SetImpairment, ClearImpairments, SetTrim, SetEcn])

    def __init__(self, config: DaemonConfig, stop: asyncio.Event) -> None:
        self.switch = Switch(switch_config(config.topology, config.node), config.start_ns)
        super().__init__(config, self.switch, stop)

    def own_ops(self) -> Mapping[str, Op]:
        return {"impairments": self._impairments}

    def metrics(self, counters: dict[str, Any]) -> bytes:
        return metrics.render(self.config.realm.fabric, self.config.node, counters)

    async def _impairments(self, _args: dict[str, Any]) -> dict[str, dict[str, Any]]:
        return {str(port): fault.settings() for port, fault in self.switch.impairments().items()}
