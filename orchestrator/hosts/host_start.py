"""How a share starts on a host: what a cluster asks of the code that gives it hosts (`orchestrator.hosts.build`)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from mrcfabric.control_message import Address


class Running(Protocol):
    """A share agent that an engine has started."""

    address: Address
    """Where it listens."""
    ended: "asyncio.Future[str]"
    """Done, with how the agent ended."""

    async def stop(self) -> None:
        """End the agent, and remove all that the engine left on the host."""
        ...


Start = Callable[[dict[str, Any]], Awaitable[Running]]
"""Starts the share agent of a host with a launch (`hosts.share_agent`). Raises ConfigError, ProcessFailedError."""


@dataclass(frozen=True, slots=True)
class Host:
    """How a share starts on one of the sites."""

    start: Start
    run_dir: str
    """The folder of runs on that host: absolute, or relative to where its agent is started."""
    own_ports: bool = True
    """Whether it has ports of its own, other than the leader's; no if both are one machine with one address."""
