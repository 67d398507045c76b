"""uSID forwarding behind the interface of `Forwarding`, for loops that do not have it built in.

Owns the counts of each entry of the table. `switchd.core.fib` packs the keys, `switchd.core.endpoint` settles the rare
packets; `switchd.core.switch` has the same step in a loop of its own, which is what an MRC fabric runs.

RFC 9800 4.1.1 (NEXT-C-SID), RFC 8986 4.1.
"""

import struct
from typing import Any, Final

from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire.layout import HOP_LIMIT_OFFSET, IPV6_SIZE
from switchd.core.endpoint import settle
from switchd.core.events import EcmpMember
from switchd.core.fib import END_BYTES, LOOK, SHIFTED, SHIFTED_OFFSET, route_key, usid_bytes
from switchd.core.settings import SwitchConfig

_VERSION: Final = 6


class UsidForwarding:
    """The forwarding of one switch; its table never changes."""

    def __init__(self, config: SwitchConfig) -> None:
        self._config = config
        self._ports = {**config.fib, **config.adjacency}
        self._next = {route_key(config.block, config.usid, usid): usid for usid in config.fib}
        self._packets = dict.fromkeys(sorted(self._ports), 0)
        self._bytes = dict.fromkeys(self._packets, 0)

    def route(self, at_ns: Instant, in_port: int, packet: Buffer) -> tuple[int, Buffer] | str:
        """`Forwarding.route`."""
        if len(packet) < IPV6_SIZE:
            return "short"
        _, hop_limit, key, rest = LOOK.unpack_from(packet)
        if packet[0] >> 4 != _VERSION:
            return "not_ipv6"
        usid = self._next.get(key)
        if usid is None or isinstance(packet, bytes):
            packet = bytearray(packet)
            found = settle(packet, self._config)
            if isinstance(found, str):
                return found
            usid = found
        elif hop_limit <= 1:
            return "hop_limit"
        else:
            try:
                packet[HOP_LIMIT_OFFSET] = hop_limit - 1
                SHIFTED.pack_into(packet, SHIFTED_OFFSET, usid_bytes(usid), rest, END_BYTES)
            except (TypeError, struct.error):
                return self.route(at_ns, in_port, bytes(packet))
        self._packets[usid] += 1
        self._bytes[usid] += len(packet)
        return self._ports[usid], packet

    def carrier(self, at_ns: Instant, port: int, up: bool) -> None:
        """Nothing: an MRC switch does not notice a dead link."""

    @property
    def next_change_ns(self) -> Instant:
        """Never."""
        return NEVER

    def follow(self, at_ns: Instant) -> list[EcmpMember]:
        """Nothing changes."""
        return []

    def chosen(self, packet: Buffer) -> None:
        """Nothing: the address names the port."""

    def counters(self) -> dict[str, Any]:
        """`usids` {uSID: packets and bytes}, those dropped or trimmed at the port included."""
        return {"usids": {usid: {"packets": self._packets[usid], "bytes": self._bytes[usid]} for usid in self._packets}}
