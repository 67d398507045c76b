"""A tap: copies of the packets that a node sends, kept for whoever asks until they are read or there are too many.

Owns the ring, its bounds and what is counted. Which packets is `packet_filter`'s; who shows them to the tap, the
drivers'; ops, names and the end of a tap that nobody reads, `taps`'. A tap stands at the sending end of links: it sees
a packet as it goes out, so what a queue refuses or a fault loses is not there, and what a fault harmed is there harmed.
It copies and changes nothing.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from mrcfabric.node import Transmit
from mrcfabric.packet_filter import Matches, PacketFilter
from mrcfabric.units import MIB
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions

SNAP_BYTES_MAX: Final = 1 << 16
RECORDS_MAX: Final = 1 << 16
"""Most records a tap keeps for its reader."""
TAP_BYTES_MAX: Final = 8 * MIB
"""Most bytes of packets a tap keeps, whatever the number of records."""
ANSWER_BYTES_MAX: Final = 1 * MIB
"""Bytes of packets in one answer; one packet is always told."""


class Tap:
    """One ring of records `[n, arrival_ns, port, length, packet]`.

    `n` counts from 1; `arrival_ns` is when the last bit is at the peer; `length` is that of the whole packet, of which
    `packet` holds the first bytes.
    """

    __slots__ = (
        "_bytes",
        "_last",
        "_matches",
        "_ports",
        "_records",
        "_records_max",
        "_snap",
        "_told",
        "filter",
        "lost",
    )

    def __init__(
        self,
        wanted: PacketFilter,
        snap_bytes: int,
        records_max: int,
        dscp: Dscp,
        options: WireOptions = DEFAULT_OPTIONS,
    ) -> None:
        assert 0 < snap_bytes <= SNAP_BYTES_MAX
        assert 0 < records_max <= RECORDS_MAX
        self.filter = wanted
        self.lost = 0
        """Packets that were wanted, and forgotten before they were told."""
        self._ports = frozenset(wanted.ports)
        self._matches: Matches | None = None if wanted.open else wanted.matcher(dscp, options)
        self._snap = snap_bytes
        self._records_max = records_max
        self._records: deque[tuple[int, int, int, int, bytes]] = deque()
        self._bytes = 0
        self._last = 0
        self._told = 0

    def take(self, transmits: Iterable[Transmit]) -> None:
        """Look at what a node sends, before anybody changes it."""
        ports, matches, snap = self._ports, self._matches, self._snap
        for port, arrival_ns, packet in transmits:
            if (ports and port not in ports) or (matches is not None and not matches(packet)):
                continue
            self._last += 1
            copy = bytes(packet[:snap])
            self._bytes += len(copy)
            self._records.append((self._last, arrival_ns, port, len(packet), copy))
            if len(self._records) > self._records_max or self._bytes > TAP_BYTES_MAX:
                self.lost += self._forget() > self._told

    def after(self, since: int, limit: int) -> dict[str, Any]:
        """At most `limit` records after number `since`; what is not after it has been read, and is forgotten.

        `last` is the number to ask with next, `lost` see above, `more` says whether others are waiting.
        """
        records = self._records
        while records and records[0][0] <= since:
            self._forget()
        found: list[list[Any]] = []
        size = 0
        for record in records:
            size += len(record[4])
            if len(found) == limit or (found and size > ANSWER_BYTES_MAX):
                break
            found.append(list(record))
        last = found[-1][0] if found else max(since, self._last)
        self._told = max(self._told, min(last, self._last))
        return {"records": found, "last": last, "lost": self.lost, "more": len(found) < len(records)}

    def _forget(self) -> int:
        number, _, _, _, copy = self._records.popleft()
        self._bytes -= len(copy)
        return number
