"""A tap: copies of the packets that a node sends, kept until a client reads them.

Owns the ring, its bounds, its counts, and the bytes in which records travel. `packet_filter` picks the packets, the
drivers show them to the tap, and `taps` has the ops, the names and the end of a tap that no client reads. A tap stands
at the sending end of links: it sees a packet as it goes out. So it does not see packets that a queue refuses or a fault
loses, and it sees corrupted packets corrupted. Link control frames are kept like packets, and stay apart from them. It
copies and changes nothing. When the ring is full it counts further
packets without copying them: a slow reader costs the node next to nothing, and the kept packets have no gaps among
them.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Any, Final

from mrcfabric.node import Transmit
from mrcfabric.packet_filter import Matches, PacketFilter
from mrcfabric.units import MIB, Buffer
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions

SNAP_BYTES_MAX: Final = 1 << 16
RECORDS_MAX: Final = 1 << 16
"""Most records a tap keeps for its reader."""
TAP_BYTES_MAX: Final = 8 * MIB
"""Most bytes a tap keeps, whatever the number of records."""
ANSWER_BYTES_MAX: Final = 1 * MIB
"""Bytes of records in one answer; an answer has at least one record if there is one."""

_RECORD: Final = Struct("<QHII")
"""Arrival in ns, port, bytes of the packet, and how many of them are kept."""
_CONTROL: Final = 1 << 31
"""In the bytes of the packet: it is a link control frame."""


class Tap:
    """One ring of records: `arrival_ns` (the last bit is at the peer), port, bytes of the packet, its first bytes."""

    __slots__ = (
        "_bytes",
        "_last",
        "_lost",
        "_matches",
        "_ports",
        "_records",
        "_records_max",
        "_snap",
        "filter",
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
        self._ports = frozenset(wanted.ports)
        self._matches: Matches | None = None if wanted.open else wanted.matcher(dscp, options)
        self._snap = snap_bytes
        self._records_max = records_max
        self._records: deque[bytes] = deque()
        self._bytes = 0
        self._last = 0
        self._lost: dict[int, int] = {}

    def take(self, transmits: Iterable[Transmit]) -> None:
        """Copy the wanted ones of a node's transmits, before anybody changes the packets."""
        ports, matches, snap = self._ports, self._matches, self._snap
        for port, arrival_ns, packet in transmits:
            if (ports and port not in ports) or (matches is not None and not matches(packet)):
                continue
            if len(self._records) >= self._records_max or self._bytes >= TAP_BYTES_MAX:
                self._lost[port] = self._lost.get(port, 0) + 1
                continue
            self._last += 1
            copy = packet[:snap]
            size = len(packet)
            if isinstance(packet, ControlFrame):
                size |= _CONTROL
            record = _RECORD.pack(arrival_ns, port, size, len(copy)) + copy
            self._bytes += len(record)
            self._records.append(record)

    @property
    def lost(self) -> list[tuple[int, int]]:
        """By port: packets that passed the filter and found no room."""
        return sorted(self._lost.items())

    def after(self, since: int, limit: int) -> dict[str, Any]:
        """At most `limit` records after number `since`, counted from 1; forgets the records up to `since`.

        `records`: bytes for `records_in`; `last`: the number to ask with next; `newest`: the number of the newest
        record; `lost`: see above.
        """
        records = self._records
        first = self._last - len(records)
        while records and first < since:
            self._bytes -= len(records.popleft())
            first += 1
        found: list[bytes] = []
        size = 0
        for record in records:
            size += len(record)
            if len(found) == limit or (found and size > ANSWER_BYTES_MAX):
                break
            found.append(record)
        last = first + len(found)
        return {"records": b"".join(found), "last": last, "newest": self._last, "lost": self.lost}


def records_in(blob: Buffer) -> Iterator[tuple[int, int, int, bytes]]:
    """The records of an answer: arrival_ns, port, bytes of the whole packet, the bytes that were kept.

    Those of a link control frame are a `ControlFrame`.
    """
    place = 0
    while place < len(blob):
        arrival_ns, port, size, kept = _RECORD.unpack_from(blob, place)
        place += _RECORD.size + kept
        data = bytes(blob[place - kept : place])
        if size & _CONTROL:
            yield arrival_ns, port, size & ~_CONTROL, ControlFrame(data)
        else:
            yield arrival_ns, port, size, data
