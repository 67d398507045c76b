"""How a share comes to run on a host: what a cluster asks of whoever starts it (`orchestrator.hosts.build`)."""

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
    """Done, with how, when it has ended."""

    async def stop(self) -> None:
        """End it and whatever the engine left on the host."""
        ...


Start = Callable[[dict[str, Any]], Awaitable[Running]]
"""Start the share agent of a host with a launch (`hosts.share_agent`). Raises ConfigError, ProcessFailedError."""


@dataclass(frozen=True, slots=True)
class Host:
    """How to have a share on one of the sites."""

    start: Start
    run_dir: str
    """The folder of runs on that host, absolute or from where its agent stands."""
    own_ports: bool = True
    """Whether its ports are other than the leader's: not when both are one machine with one address."""
