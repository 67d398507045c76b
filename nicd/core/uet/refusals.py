"""What an initiator does about NACKs: a packet was trimmed, came out of order, or found no context.

Owns the meaning of the codes. UEC PDS (NACK codes), UEC CMS (a trim tells of congestion).
"""

from mrcfabric.units import Instant
from mrcfabric.wire.uet_layout import (
    FLAG_RETX,
    NACK_INVALID_SYN,
    NACK_NO_PDC,
    NACK_NO_RESPONSE,
    NACK_OUT_OF_ORDER,
    NACK_TRIMMED,
    NACK_TRIMMED_LAST_HOP,
    NACK_UNKNOWN_PDC,
    PSN_MASK_UET,
)
from nicd.core.congestion.plane_windows import NO_PLANE
from nicd.core.events import STATUS_OK, STATUS_REMOTE_INVALID
from nicd.core.uet.initiator import HALF_PSN, Initiator
from nicd.core.uet.outstanding import IN_FLIGHT
from nicd.core.uet.peer import UetPeer
from nicd.core.uet.planes import Planes
from nicd.core.uet.silence import LinkLike
from nicd.core.uet.uet_stats import UetStats


class Refusals:
    """One QP's answer to NACKs."""

    __slots__ = ("_initiator", "_link", "_peer", "_planes", "_uet")

    def __init__(self, link: LinkLike, initiator: Initiator, peer: UetPeer, planes: Planes, uet: UetStats) -> None:
        self._link = link
        self._initiator = initiator
        self._peer = peer
        self._planes = planes
        self._uet = uet

    def on_nack(self, now: Instant, code: int, psn32: int, spdcid: int, flags: int, payload: int) -> bool:
        """Take a NACK. False: nonsense, dropped."""
        initiator = self._initiator
        table = initiator.table
        first = table.cack + 1
        ahead = (psn32 - first) & PSN_MASK_UET
        if code in (NACK_UNKNOWN_PDC, NACK_INVALID_SYN):
            return self._context_gone(now, code, ahead < HALF_PSN)
        if ahead >= HALF_PSN:
            # What it asks for has arrived meanwhile.
            return True
        if first + ahead >= initiator.psn_next:
            return False
        if code != NACK_NO_PDC:
            initiator.dpdcid = initiator.dpdcid or spdcid
        initiator.silence.heard(now)
        if self._peer.credit is not None:
            self._uet.speculations_stopped += self._peer.credit.stop()
        sent = table.by_psn.get(first + ahead)
        if code == NACK_OUT_OF_ORDER and initiator.ordered:
            self._go_back(now, payload)
        elif sent is not None and sent.state == IN_FLIGHT and (sent.tries > 0) == bool(flags & FLAG_RETX):
            if code in (NACK_TRIMMED, NACK_TRIMMED_LAST_HOP):
                last_hop = code == NACK_TRIMMED_LAST_HOP
                self._planes.trimmed(now, sent, last_hop)
                self._peer.windows.on_trim(now, sent.plane, sent.size, last_hop)
                initiator.silence.lose(now, [sent], "trim")
            elif code not in (NACK_NO_PDC, NACK_NO_RESPONSE):
                # Without a context or room for a response there is none to be had: the time-out is the wait for it.
                initiator.silence.lose(now, [sent], "nack")
        initiator.settle(now)
        return True

    def _go_back(self, now: Instant, expected32: int) -> None:
        """An ordered target lacks the packet `expected32`: everything before has arrived, and all from there on goes
        again."""
        initiator = self._initiator
        table = initiator.table
        ahead = (expected32 - table.cack - 1) & PSN_MASK_UET
        if ahead >= HALF_PSN or table.cack + 1 + ahead >= initiator.psn_next:
            return
        for message in table.free(table.cack + ahead, 0, 0):
            initiator.finish(now, message, STATUS_OK)
        self._peer.windows.on_sack(now, NO_PLANE, False, None, 0)
        first = table.by_psn.get(table.cack + 1)
        if first is not None and first.state == IN_FLIGHT:
            initiator.silence.lose(now, [first], "nack")

    def _context_gone(self, now: Instant, code: int, in_flight: bool) -> bool:
        """The target does not know the context, or knows another one by its number."""
        initiator = self._initiator
        if initiator.idle or not in_flight:
            return True
        if code == NACK_INVALID_SYN and not initiator.dpdcid:
            self._link.begin()
            initiator.silence.lose(now, initiator.table.in_flight(), "nack")
            initiator.settle(now)
        elif code == NACK_UNKNOWN_PDC and initiator.dpdcid:
            self._link.fail(now, STATUS_REMOTE_INVALID, "context_gone")
        return True
