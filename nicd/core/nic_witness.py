"""What a NIC's witness writes down beside its ports: what became of a received packet, and why one is sent again.

Owns the reading of both from the NIC's own counters, before and after: the NIC says nothing more than it counts, and
nothing on its way of a packet knows that somebody looks. MRC 1.0 section 3 (what a receiver does with a packet).
"""

from struct import Struct
from typing import Final

from mrcfabric.units import Buffer, Instant
from mrcfabric.wire import srh
from mrcfabric.wire.layout import BTH_OFFSET, DATA_OPCODES, FLAG_RTX
from mrcfabric.witness import Witness
from nicd.core.onchip import Receive
from nicd.core.stats import NicStats

_BTH: Final = Struct(">B7xI")


class NicWitness:
    """Stands between the ports of a NIC and what takes its packets."""

    def __init__(self, witness: Witness, stats: NicStats, receive: Receive) -> None:
        self._witness = witness
        self._stats = stats
        self._receive = receive
        self._again = dict(stats.retransmits)
        witness.cause_of = self._cause_of

    def receive(self, now: Instant, port: int, packet: Buffer) -> None:
        """A packet from a port; one with a segment routing header comes again without it."""
        about = None if srh.follows(packet) else self._witness.look(packet)
        if about is None:
            self._receive(now, port, packet)
            return
        stats = self._stats
        drops, duplicates, trims = dict(stats.drops), stats.duplicates, sum(stats.trims.values())
        self._receive(now, port, packet)
        reason = next((name for name, count in stats.drops.items() if count > drops[name]), None)
        if reason is not None:
            verdict = f"dropped: {reason}"
        elif stats.duplicates > duplicates:
            verdict = "duplicate"
        elif about["kind"] != "data":
            verdict = "trimmed" if sum(stats.trims.values()) > trims else "taken"
        else:
            verdict = "placed"
        self._witness.taken(now, about, verdict)

    def _cause_of(self, packet: Buffer) -> str | None:
        """A packet is put into a queue: the cause that was counted for it, when it is sent again."""
        start = BTH_OFFSET + (srh.SRH_SIZE if srh.follows(packet) else 0)
        opcode, psn = _BTH.unpack_from(packet, start)
        if opcode not in DATA_OPCODES or not psn >> 24 & FLAG_RTX:
            return None
        before, self._again = self._again, dict(self._stats.retransmits)
        return next((name for name, count in self._again.items() if count > before[name]), None)
