"""A network between two UDP sockets that loses what a test says: datagrams go on in one piece or not at all."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

Address = tuple[str, int]


class Relay(asyncio.DatagramProtocol):
    """Hands what it gets to `target`, and what comes from there to whoever sent last."""

    def __init__(self, target: Address, passes: Callable[[bytes], bool]) -> None:
        self.lost = 0
        self.address: Address = ("", 0)
        self.passes = passes
        self._target = target
        self._caller: Address | None = None
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)  # what uvloop has is one, but not by inheritance
        self.address = transport.get_extra_info("sockname")

    def datagram_received(self, data: bytes, source: Address) -> None:
        assert self._transport is not None
        to = self._caller if source == self._target else self._target
        if source != self._target:
            self._caller = source
        if to is not None and self.passes(data):
            self._transport.sendto(data, to)
        else:
            self.lost += 1


@asynccontextmanager
async def relayed(target: Address, passes: Callable[[bytes], bool]) -> AsyncIterator[Relay]:
    """A relay on loopback, open in the block; `passes`: whether a datagram goes on."""
    loop = asyncio.get_running_loop()
    transport, relay = await loop.create_datagram_endpoint(lambda: Relay(target, passes), local_addr=("127.0.0.1", 0))
    try:
        yield relay
    finally:
        transport.close()
