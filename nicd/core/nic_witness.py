"""What a NIC's witness writes down beside its ports: what became of each received packet that is followed.

Owns the statement. The part of the NIC that decides what becomes of a packet returns its name for it. This wrapper
stands in the way of received packets only while there is a witness. MRC 1.0 section 3 (what a receiver does with a
packet).
"""

from mrcfabric.units import Buffer, Instant
from mrcfabric.wire import srh
from mrcfabric.witness import Witness
from nicd.core.onchip import Receive
from nicd.core.stats import OUTCOMES


class NicWitness:
    """Stands between the ports of a NIC and what takes its packets."""

    def __init__(self, witness: Witness, receive: Receive) -> None:
        self._witness = witness
        self._receive = receive

    def receive(self, now: Instant, port: int, packet: Buffer) -> str:
        """A packet from a port; one with a segment routing header comes again without it."""
        about = None if srh.follows(packet) else self._witness.look(packet)
        outcome = self._receive(now, port, packet)
        if about is not None:
            self._witness.taken(now, about, outcome if outcome in OUTCOMES else f"dropped: {outcome}")
        return outcome
