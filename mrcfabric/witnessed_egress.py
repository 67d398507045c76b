"""A port with a witness: the same port, which says of followed packets what they find and what becomes of them.

Owns what is looked at, and when. What a port does is `egress`' alone: everything here asks first and then has the port
do as always. A port becomes one of this kind while a witness stands there (`attend`), and is an ordinary one at all
other times: who is not watched pays nothing.
"""

from typing import Any

from mrcfabric.egress import REFUSALS, Egress
from mrcfabric.impairment import TOUCHES, ImpairedLink
from mrcfabric.node import Transmit
from mrcfabric.units import Buffer, Instant
from mrcfabric.witness import Witness


class WitnessedEgress(Egress):
    """`Egress` with a witness."""

    __slots__ = ()

    def offer(self, now: Instant, packet: Buffer, control: int, out: list[Transmit]) -> bool:
        """As in the base."""
        witness = self.witness
        assert witness is not None
        cause = witness.cause_of(packet)
        about = witness.look(packet)
        if about is None:
            return super().offer(now, packet, control, out)
        # As the base does first of all: the packet finds the queue without those that have left before it came.
        if self.busy_until < now and (self._data or self._control):
            self.run(now - 1, out)
        found = self.data_bytes, self.control_bytes, max(0, self.busy_until - now)
        trimmed, refused = self.trim_admitted, {reason: self.drops[reason] for reason in REFUSALS}
        admitted = super().offer(now, packet, control, out)
        waits: Any = None
        if admitted:
            cut = self.trim_admitted > trimmed
            verdict = "trimmed" if cut else "queued"
            waits = self._control[-1] if cut or control else self._data[-1]
        else:
            verdict = next(reason for reason in REFUSALS if self.drops[reason] > refused[reason])
        witness.offered(now, self.port, about, found, verdict, waits, cause)
        return admitted

    def run(self, until: Instant, out: list[Transmit]) -> Instant:
        """As in the base. On a link with faults the base calls this again for each departure by itself."""
        if self._link is not None:
            return super().run(until, out)
        witness = self.witness
        assert witness is not None
        sent = len(out)
        due_ns = super().run(until, out)
        for transmit in out[sent:]:
            size = len(transmit.packet)
            taken_ns = (size * self._numerator + self._bytes_numerator) // self._denominator
            witness.departed(transmit.arrival_ns - self._delay_ns - taken_ns, transmit)
        return due_ns

    def _carry(self, link: ImpairedLink, sent: Transmit, data: bool, out: list[Transmit]) -> str | None:
        witness = self.witness
        assert witness is not None
        before = dict(link.touched)
        reason = super()._carry(link, sent, data, out)
        witness.carried(reason, [name for name in TOUCHES if link.touched[name] > before[name]])
        return reason


def attend(egress: Egress, witness: Witness | None) -> None:
    """From now on this witness stands at the port, or none."""
    egress.witness = witness
    egress.__class__ = Egress if witness is None else WitnessedEgress
