"""The truth about bytes and completions where the transport is RC: as `swarm.messages`, in order besides.

Go-back-N places every byte behind the one before it. Go-back-0 may also begin the message under way anew. With
selective recovery packets come in any order. Whatever the recovery, messages complete in the order in which they were
posted, at both ends.
"""

from mrcfabric.rng import Rng
from mrcfabric.units import Buffer, Instant
from nicd.core.events import RECV_WITH_IMM, Completion
from swarm.case import Flow
from swarm.invariant import InvariantError
from swarm.messages import Message, Messages


class RcMessages(Messages):
    """All directions of a case whose NICs run RC."""

    def __init__(self, flows: list[Flow], rng: Rng, recovery: str) -> None:
        super().__init__(flows, rng)
        self._recovery = recovery
        self._by_target = {(way.receiver, way.target_key): way for way in self.directions}

    def placed(self, nic: str, at_ns: Instant, r_key: int, va: int, payload: Buffer) -> None:
        """A NIC has written a payload into one of its regions."""
        way = self._by_target.get((nic, r_key))
        message = None if way is None else way.at(va - way.target_va)
        if way is not None and message is not None and self._recovery != "selective":
            offset = va - way.target_va - message.offset
            under_way = next((one for one in way.in_order if not one.whole), None)
            if self._recovery == "go_back_0" and offset == 0 and message is under_way:
                _forget(way.seen, message)
            if message is not under_way or offset != message.placed:
                due = "nothing" if under_way is None else f"byte {under_way.placed} of message {under_way.number}"
                what = f"byte {offset} of message {message.number} placed, {due} was due"
                raise InvariantError("order", nic, at_ns, what)
        super().placed(nic, at_ns, r_key, va, payload)

    def completed(self, nic: str, event: Completion) -> None:
        """A completion at either end."""
        if event.opcode != RECV_WITH_IMM:
            way = self.by_sender[nic, event.qpn]
            first = next((message for message in way.in_order if not message.status), None)
            if first is not None and first.number != event.wr_id:
                what = f"QP {event.qpn}: message {event.wr_id} completes before {first.number}"
                raise InvariantError("completion", nic, event.at_ns, what)
        super().completed(nic, event)


def _forget(seen: bytearray, message: Message) -> None:
    """The receiver begins a message anew."""
    seen[message.offset : message.offset + message.write.length] = bytes(message.write.length)
    message.placed = 0
