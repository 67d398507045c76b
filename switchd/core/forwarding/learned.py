"""Equal-cost multipath whose table a routing protocol fills: prefixes, and for each a group of ports.

Owns the table, the look-up of the longest prefix, and how many flows each change moves. The hash is that of `ecmp`.
NICs below a T0 are found without the table, by arithmetic.

A group is a plain one (the hash modulo its members: a member that goes moves all but one in so many flows) or a
resilient one: each member draws a number from the hash, and the highest one gets the flow, so that only the flows of
the member that goes move, and come back with it (Thaler and Ravishankar 1998, highest random weight).
"""

from typing import Any, Final

from mrcfabric.naming import nic_address
from mrcfabric.prefix import BITS, Prefix
from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.layout import NEXT_HEADER_UDP
from switchd.core.forwarding.ecmp import EcmpConfig, EcmpForwarding, mixed

_OWN_PREFIX: Final = nic_address(0)[:8]
_NONE: Final[tuple[int, ...]] = ()


class LearnedForwarding(EcmpForwarding):
    """The forwarding of one switch; its table begins empty."""

    def __init__(self, config: EcmpConfig) -> None:
        super().__init__(config)
        self.table: dict[Prefix, tuple[int, ...]] = {}
        """Prefix -> the ports of its group; change it by `write` alone."""
        self.writes = 0
        self._masked: set[int] = set()
        self._lengths: list[int] = []
        """The lengths of prefixes in the table, the longest first."""

    def write(self, prefix: Prefix, ports: tuple[int, ...]) -> tuple[int, int]:
        """From now on a prefix leads to these ports; none: it has no route.

        Returns how many flows towards it were remembered, and how many of them leave elsewhere now, or are lost.
        """
        self.writes += 1
        if ports:
            self.table[prefix] = ports
        else:
            self.table.pop(prefix, None)
        self._lengths = sorted({one.length for one in self.table}, reverse=True)
        return self._move([flow for flow in self._flows if prefix.covers(_destination(flow))])

    def mask(self, port: int, out: bool) -> tuple[int, int]:
        """Leave a port out of all groups, or no longer; returns what `write` does."""
        (self._masked.add if out else self._masked.discard)(port)
        self.moves += 1
        return self._move(list(self._flows))

    def carrier(self, at_ns: Instant, port: int, up: bool) -> None:
        """`Forwarding.carrier`: whoever fills the table hears of it too."""

    def chosen(self, packet: Buffer) -> dict[str, Any] | None:
        """`Forwarding.chosen`."""
        flow = bytes(packet[8:44])
        if self._is_below(flow):
            return None
        return {"members": list(self.members(_destination(flow))), "hash": self._hash(flow, packet[6])}

    def members(self, address: int) -> tuple[int, ...]:
        """The group towards an address, without ports that are left out."""
        for length in self._lengths:
            shift = BITS - length
            ports = self.table.get(Prefix(address >> shift << shift, length))
            if ports is not None:
                masked = self._masked
                return tuple(port for port in ports if port not in masked) if masked else ports
        return _NONE

    def counters(self) -> dict[str, Any]:
        """Those of `EcmpForwarding`, and `fib`: entries of the table, and how often one was written."""
        return {**super().counters(), "fib": {"entries": len(self.table), "writes": self.writes}}

    def _choose(self, flow: bytes, next_header: int) -> int:
        members = self.members(_destination(flow))
        if not members:
            return -1
        value = self._hash(flow, next_header)
        if self.config.resilient:
            return max((mixed(value, (port,)), port) for port in members)[1]
        return members[value % len(members)]

    def _is_below(self, flow: bytes) -> bool:
        number = int.from_bytes(flow[24:32], "big") - 1 - self.config.first
        return flow[16:24] == _OWN_PREFIX and 0 <= number < self._below

    def _move(self, flows: list[bytes]) -> tuple[int, int]:
        """Choose anew for these flows, those to NICs below left aside; how many there are, and how many moved."""
        seen = moved = 0
        for flow in flows:
            if self._is_below(flow):
                continue
            seen += 1
            port = self._choose(flow, NEXT_HEADER_UDP)
            if port != self._flows[flow]:
                moved += 1
                if port < 0:
                    del self._flows[flow]
                else:
                    self._flows[flow] = port
        return seen, moved


def _destination(flow: bytes) -> int:
    """The destination of what is remembered of a flow, which begins with its addresses."""
    return int.from_bytes(flow[16:32], "big")
