"""Writes one capture as a pcapng stream: interfaces first, then packets as they come, statistics at the end.

Pure: owns which blocks are written and when, and counts what was written. `orchestrator.captures.sink` writes the
bytes; `mrcfabric.wire.pcapng_writer` makes the blocks. A link of InfiniBand is one interface, of records that hold
packets and link packets; elsewhere a link's control frames, which are Ethernet frames, have an interface of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from mrcfabric.wire import pcapng_writer
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pcapng import ERF_HEADER, LINK_ERF, LINK_ETHERNET, LINK_IPV6
from mrcfabric.wire_settings import wire_options
from orchestrator.captures.address_names import AddressNames
from orchestrator.captures.taps import Heard
from orchestrator.captures.wall_clock import WallClock, iso
from orchestrator.captures.wires import Wire

Clock: TypeAlias = Literal["fabric", "wall"]

PACKET_EXTRA_BYTES_MAX: Final = 1024
"""How many bytes a packet adds beside its own: its block, its comment, the names of its addresses."""
STATISTICS_BYTES: Final = 76
"""How many bytes an interface adds at the end."""
_CONTROL_NAME: Final = " control"
"""Behind the name of a link: its interface for link control frames."""


class CaptureFile:
    """Writes through `write`, the head at once."""

    def __init__(
        self,
        write: Callable[[bytes], None],
        topology: Topology,
        wires: Sequence[Wire],
        clock: Clock,
        wall: WallClock,
        *,
        application: str,
        snap_bytes: int,
        note: str = "",
    ) -> None:
        """`note`: further information for a reader, for the comment of the section."""
        self._write = write
        self._clock = clock
        self._wall = wall
        self._names = AddressNames(topology)
        self._lmc = wire_options(topology).lid_lmc
        """Of an InfiniBand fabric; elsewhere -1."""
        self._wires = wires
        self._snap_bytes = snap_bytes
        self._seen = [0] * len(wires)
        self._control: dict[int, int] = {}
        """Number of a direction -> its interface for link control frames."""
        self._begin_ns: Instant | None = None
        self._end_ns: Instant = 0
        self.packets = 0
        self.size_bytes = 0
        comment = f"fabric {topology.name}; time stamps are {clock} time; each stands for the last bit at the far end"
        if self._lmc >= 0:
            comment += f"; NIC n has the {1 << self._lmc} LIDs from {1 << self._lmc} * (n + 1) on"
        self._put(pcapng_writer.section(application, f"{comment}; {note}" if note else comment))
        for wire in wires:
            self._put(self._interface(wire.name, wire, LINK_IPV6 if self._lmc < 0 else LINK_ERF))

    def _interface(self, name: str, wire: Wire, link_type: int) -> bytes:
        # A record keeps its own header, too.
        snap = self._snap_bytes + (ERF_HEADER if link_type == LINK_ERF and self._snap_bytes else 0)
        return pcapng_writer.interface(
            name, wire.description, snap_bytes=snap, speed_bps=wire.rate_bps, link_type=link_type
        )

    def _put(self, block: bytes) -> None:
        self._write(block)
        self.size_bytes += len(block)

    def has_room_for(self, kept_bytes: int, size_bytes_max: int) -> bool:
        """Whether a packet of `kept_bytes` fits, together with everything that must follow it."""
        rest = PACKET_EXTRA_BYTES_MAX + STATISTICS_BYTES * (len(self._seen) + 1)
        return self.size_bytes + kept_bytes + rest <= size_bytes_max

    def packet(self, heard: Heard) -> None:
        """Write one more packet, which must not be earlier than the one before."""
        number = heard.wire
        if self._lmc >= 0:
            pass
        elif isinstance(heard.data, ControlFrame):
            number = self._control_interface(number)
        elif names := self._names.new_in(heard.data):
            self._put(pcapng_writer.names(names))
        wall_ns = self._wall.wall_ns(heard.at_ns)
        if self._clock == "fabric":
            stamp_ns, comment = heard.at_ns, f"wall {iso(wall_ns)}"
        else:
            stamp_ns, comment = wall_ns, f"fabric {heard.at_ns} ns"
        data, size = heard.data, heard.size
        if self._lmc >= 0:
            data = pcapng_writer.record(stamp_ns, data, size)
            size = len(data) + max(0, size - len(heard.data))
        self._put(pcapng_writer.packet(number, stamp_ns, data, size, comment))
        self._begin_ns = stamp_ns if self._begin_ns is None else self._begin_ns
        self._end_ns = max(self._end_ns, stamp_ns)
        self._seen[number] += 1
        self.packets += 1

    def _control_interface(self, wire: int) -> int:
        """The interface for link control frames of a direction: they are Ethernet frames, packets are not."""
        number = self._control.get(wire)
        if number is None:
            number = self._control[wire] = len(self._seen)
            self._seen.append(0)
            about = self._wires[wire]
            self._put(self._interface(about.name + _CONTROL_NAME, about, LINK_ETHERNET))
        return number

    def finish(self, lost: Mapping[int, int]) -> None:
        """Write the statistics. `lost`: number of an interface -> packets that its tap had no room for."""
        begin_ns = self._end_ns if self._begin_ns is None else self._begin_ns
        for number, seen in enumerate(self._seen):
            dropped = lost.get(number, 0)
            self._put(pcapng_writer.statistics(number, begin_ns, self._end_ns, seen + dropped, dropped))
