"""What may wait at a port: admission, limits, trimming at admission, RED marking at dequeue, and their counts.

Owns the rules that hold for every kind of port, however many queues it has. `mrcfabric.egress` and
`mrcfabric.class_egress` have the queues themselves and the order of departures; `mrcfabric.egress_wire` has the wire.
MRC 1.0 asks a switch for marks and trims; a NIC uses the same classes without them.
"""

from abc import abstractmethod
from typing import Any, Final

from mrcfabric.egress_config import EgressConfig, check_trim_dscp
from mrcfabric.egress_wire import EgressWire
from mrcfabric.errors import RefusedError
from mrcfabric.impairment import LOSS_REASONS
from mrcfabric.node import Transmit
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire.dscp import CE, NOT_ECT, dscp_of
from mrcfabric.wire.trim import trim

DATA_FULL: Final = "data_full"
CONTROL_FULL: Final = "control_full"
TRIMMED_FULL: Final = "trimmed_full"
TRIM_FULL: Final = "trim_full"
REFUSALS: Final = (DATA_FULL, CONTROL_FULL, TRIMMED_FULL, TRIM_FULL)
"""Why a port refuses a packet, by its kind; the last: it was trimmed here, and the rest found no room."""
DROP_REASONS: Final = (*REFUSALS, *LOSS_REASONS)
TRIMMED_HERE: Final = -1
"""The class of packets that this port has trimmed: the last one of every port."""
QUEUED: Final = "queued"
CUT: Final = "trimmed"
"""How a packet gets into a queue: whole, or what is left of it."""


class EgressQueues(EgressWire):
    """The rules of admission and marking of one port. Calls must not go back in time."""

    __slots__ = (
        "_ecn_ceiling", "_ecn_floor", "_ecn_least", "_full", "_red_rng", "control_bytes", "data_bytes", "trim",
        "trim_dscp",
    )  # fmt: skip

    def __init__(self, config: EgressConfig, port: int, rng: Rng, full: tuple[str, ...]) -> None:
        """`full`: by class of packets, the reason of `REFUSALS` for which its queue drops them; `TRIMMED_HERE` last."""
        super().__init__(config, port, Rng(rng.bits64()), DROP_REASONS)
        self._full = full
        self.data_bytes = 0
        """Waiting bytes of the data class; a packet in serialization no longer counts."""
        self.control_bytes = 0
        self._red_rng = rng
        self._ecn_floor = config.ecn_min_bytes if config.ecn else NEVER
        self._ecn_least = config.ecn_min_bytes
        self._ecn_ceiling = config.ecn_max_bytes
        self.trim = config.trim
        self.trim_dscp = config.trim_dscp

    @abstractmethod
    def offer(self, now: Instant, packet: Buffer, cls: int, out: list[Transmit]) -> bool:
        """Offer a packet of a class at `now`. False: the port dropped and counted it.

        Commits departures that start before `now` to `out` first.
        """

    def refuse(self, packet: Buffer) -> None:
        """Drop and count a packet of data, as if the queue were full: the owner of the port lets it in no more."""
        self.drops[DATA_FULL] += 1
        self.refused_bytes += len(packet)

    @property
    @abstractmethod
    def waiting_packets(self) -> tuple[int, int]:
        """How many packets of data and of control wait."""

    @property
    def offered_packets(self) -> int:
        """Packets offered to the port, including those it refused."""
        return self.packets + sum(self.waiting_packets) + sum(self.drops[reason] for reason in REFUSALS)

    @property
    def offered_bytes(self) -> int:
        """Bytes of the offered packets, before any trim."""
        return self.bytes + self.data_bytes + self.control_bytes + self.refused_bytes

    @property
    def ecn(self) -> bool:
        """Whether the port marks."""
        return self._ecn_floor != NEVER

    @property
    def ecn_thresholds(self) -> tuple[int, int]:
        """Waiting data bytes up to which the port marks nothing, and from which on it marks everything, if it marks."""
        return self._ecn_least, self._ecn_ceiling

    def set_ecn(
        self, now: Instant, on: bool | None, out: list[Transmit],
        min_bytes: int | None = None, max_bytes: int | None = None,
    ) -> None:  # fmt: skip
        """Turn marking on or off for departures from `now` on, by these thresholds; None: as configured.

        Commits earlier departures to `out` first. Raises RefusedError for thresholds that contradict each other;
        nothing has changed then.
        """
        least = self.config.ecn_min_bytes if min_bytes is None else min_bytes
        ceiling = self.config.ecn_max_bytes if max_bytes is None else max_bytes
        if ceiling < least:
            raise RefusedError(f"port {self.port}: max_bytes {ceiling} is below min_bytes {least}")
        self.run(now - 1, out)
        self._ecn_least, self._ecn_ceiling = least, ceiling
        self._ecn_floor = least if (self.config.ecn if on is None else on) else NEVER

    def set_trim(self, on: bool | None, dscp: int | None = None) -> None:
        """From now on trim, or drop, packets that find the data queue full; None: as configured.

        `dscp` None keeps the code point. Raises ConfigError for one that will not do; nothing has changed then.
        """
        if dscp is not None:
            check_trim_dscp(dscp, self.config.trimmable_dscps)
            self.trim_dscp = dscp
        self.trim = self.config.trim if on is None else on

    def counters(self, now: Instant | None = None) -> dict[str, Any]:
        """Counters and gauges of the port; what is counted in time, if anything is, up to `now`.

        At any instant: `offered_packets` = `packets` + `data_waiting` + `control_waiting` + the drops in `REFUSALS`;
        offered bytes = `bytes` + `data_bytes` + `control_bytes` + `refused_bytes`;
        `trimmed` = `trim_admitted` + `trim_dropped`.
        """
        data_waiting, control_waiting = self.waiting_packets
        return {
            **self.sums(),
            "touched": self.touched,
            "held": self.held,
            "met": self.met,
            "named_losses": self.named_losses,
            "data_bytes": self.data_bytes,
            "control_bytes": self.control_bytes,
            "data_waiting": data_waiting,
            "control_waiting": control_waiting,
            "data_bytes_peak": self.data_bytes_peak,
            "control_bytes_peak": self.control_bytes_peak,
        }

    def _mark(self, packet: Buffer, left: int) -> Buffer:
        """Mark by RED on the bytes that stay behind. Only ECN-capable packets draw; copies a read-only packet first."""
        # RFC 3168 5. Written out: with RED this is asked of most packets that leave others behind.
        second: int = packet[1]
        ecn = second >> 4 & CE
        if ecn in (NOT_ECT, CE):
            return packet
        config = self.config
        if left < self._ecn_ceiling:
            span = self._ecn_ceiling - self._ecn_least
            if not self._red_rng.chance(config.ecn_max_ppm * (left - self._ecn_least) // span):
                return packet
        self.marks += 1
        marked = bytearray(packet) if isinstance(packet, bytes) else packet
        marked[1] = second | CE << 4
        return marked

    @abstractmethod
    def _append(self, packet: Buffer, cls: int, origin: Any) -> bool:
        """Append a packet to the queue of its class if that has room for it."""

    def _settle(self, now: Instant, packet: Buffer, cls: int, origin: Any = None) -> bool:
        """The rest of `offer` for a packet whose queue is full, or at a port with a witness: queue, trim or drop it."""
        found = self.data_bytes, self.control_bytes, self.busy_until - now
        waits: Buffer | None = packet
        verdict = QUEUED
        if not self._append(packet, cls, origin):
            waits, verdict = None, self._full[cls]
            self.refused_bytes += len(packet)
            config = self.config
            if verdict == DATA_FULL and self.trim and dscp_of(packet) in config.trimmable_dscps:
                self.trimmed += 1
                rest = trim(packet, config.trim_bytes, self.trim_dscp)
                if self._append(rest, TRIMMED_HERE, origin):
                    self.refused_bytes -= len(rest)
                    self.trim_admitted += 1
                    waits, verdict = rest, CUT
                else:
                    self.trim_dropped += 1
                    verdict = TRIM_FULL
            if waits is None:
                self.drops[verdict] += 1
        if self._witness is not None:
            self._witness.offered(now, self.port, packet, found, verdict, waits)
        return waits is not None
