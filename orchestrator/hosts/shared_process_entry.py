"""A process that NICs and switches share, as the fork server starts it (`mrcfabric.shared_process` is what it does)."""

import asyncio
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import nicd.daemon
import switchd.daemon
from mrcfabric.daemon import Daemon
from mrcfabric.daemon_config import DaemonConfig
from mrcfabric.shared_process import run_shared_process


def run(settings: Mapping[str, Any], fds: Sequence[int]) -> int:
    """The fork server's entry: run daemons that come and go; returns the exit code.

    `settings`: `title`, and what `run_shared_process` takes. The last of `fds` is the channel.
    """
    return run_shared_process(settings, socket.socket(fileno=fds[-1]), build, settings["title"])


def build(config: DaemonConfig, stop: asyncio.Event) -> Daemon:
    """The daemon of one node. Raises ConfigError."""
    nic = config.topology.parse_node(config.node).tier == "nic"
    return nicd.daemon.build(config, stop) if nic else switchd.daemon.build(config, stop)
