"""The rules of a UET QP: which packet may leave when, what counts as arrived, and that nothing sleeps with work to do.

When a data packet is offered: its QP is RTS, the port has carrier, its PSN is inside the target's window, new ones in
their order, and only what was judged lost goes again. After every step: cumulative PSNs only move forward, a sender
takes for arrived what its target has placed and nothing else, each PSN once; what windows hold in flight is what QPs
have in flight; credit is never more than was granted; and a QP with something to send has somebody to wake it.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from mrcfabric.node import Input, Transmit
from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.uet_layout import PSN_MASK_UET
from nicd.core.nic import Nic
from nicd.core.qp_state import QpState
from nicd.core.uet.outstanding import IN_FLIGHT, LOST
from nicd.core.uet.qp import UetLink
from nicd.core.uet.target import Target
from swarm.invariant import InvariantError
from swarm.systems import inside, uet_inside
from swarm.systems.uet_account import UetData

PeerTarget: TypeAlias = Callable[[UetLink], Target | None]
"""The other end of the context that a QP has opened; None when it is gone."""
PeerGranted: TypeAlias = Callable[[int], int | None]
"""All that the NIC with this number has ever granted to this one; None when it is another life, or grants nothing."""


class UetRules:
    """The rules, at one NIC."""

    def __init__(self, nic: Nic, peer_target: PeerTarget, peer_granted: PeerGranted) -> None:
        self._nic = nic
        self._board = inside.board(nic)
        self._peer_target = peer_target
        self._peer_granted = peer_granted
        self._cacks: dict[UetLink, int] = {}
        self._sent: dict[UetLink, int] = {}
        """The first PSN never offered to a port."""

    def _broken(self, invariant: str, at_ns: Instant, link: UetLink, what: str) -> InvariantError:
        return InvariantError(invariant, self._nic.name, at_ns, f"QP {link.qpn}: {what}")

    # -- the moment of choice

    def offered(self, now: Instant, seen: UetData) -> None:
        """A data packet is offered to a port. Raises InvariantError."""
        for qp, link in uet_inside.links(self._nic):
            if qp.state == QpState.RTS and (link.peer.address, link.peer_qpn) == (seen.address, seen.qpn):
                self._may_leave(now, link, seen)
                return
        raise InvariantError("paths", self._nic.name, now, f"data for QP {seen.qpn}, which nobody here is connected to")

    def _may_leave(self, now: Instant, link: UetLink, seen: UetData) -> None:
        if not self._board.ports.carrier >> seen.port & 1:
            raise self._broken("paths", now, link, f"data on port {seen.port}, which is down")
        initiator = link.initiator
        following, cack = initiator.psn_next, initiator.table.cack
        psn = following - 1 - (following - 1 - seen.psn & PSN_MASK_UET)
        if not cack < psn < following:
            raise self._broken("windows", now, link, f"PSN {psn} is outside {cack + 1} to {following}")
        if psn - cack > uet_inside.window_psns(initiator) + 1:
            raise self._broken("windows", now, link, f"PSN {psn} is {psn - cack} beyond the last acknowledged")
        first = self._sent.get(link, psn)
        if psn > first or (psn == first) == seen.again:
            raise self._broken("retransmission", now, link, f"PSN {psn}, again: {seen.again}, and {first} is the next")
        self._sent[link] = max(first, psn + 1)
        sent = initiator.table.by_psn.get(psn)
        if sent is None or sent.state != IN_FLIGHT:
            raise self._broken("retransmission", now, link, f"PSN {psn} leaves, and nobody waits for it")

    # -- after every step

    def before(self, inputs: list[Input], at_ns: Instant) -> None:
        """Nothing to remember."""

    def after(self, transmits: list[Transmit], events: list[Any], at_ns: Instant) -> None:
        """Raises InvariantError."""
        flying: dict[int, int] = {}
        for qp, link in uet_inside.links(self._nic):
            if qp.state > QpState.RTS:
                continue
            self._forward(at_ns, link)
            self._arrived(at_ns, link)
            self._bounded(at_ns, link)
            for sent in link.initiator.table.in_flight():
                window = id(link.peer.windows.of[sent.plane])
                flying[window] = flying.get(window, 0) + sent.size
            if qp.state == QpState.RTS:
                self._awake(at_ns, link)
        self._shared(at_ns, flying)

    def _forward(self, at_ns: Instant, link: UetLink) -> None:
        table = link.initiator.table
        before = self._cacks.get(link, table.cack)
        self._cacks[link] = table.cack
        if table.cack < before or table.cack >= link.initiator.psn_next:
            what = f"all up to {table.cack} arrived, {before} before, {link.initiator.psn_next} is next"
            raise self._broken("windows", at_ns, link, what)

    def _arrived(self, at_ns: Instant, link: UetLink) -> None:
        """What a sender takes for arrived, its target has."""
        initiator = link.initiator
        target = self._peer_target(link)
        if target is None:
            return
        if initiator.table.cack >= target.expected:
            what = f"takes all up to {initiator.table.cack} for arrived, {target.expected} is expected"
            raise self._broken("windows", at_ns, link, what)
        if target.cleared > initiator.table.cack:
            what = f"its target has cleared responses up to {target.cleared}, {initiator.table.cack} has arrived"
            raise self._broken("contexts", at_ns, link, what)
        for psn in _taken(link):
            if psn >= target.expected and not target.bitmap >> psn - target.expected & 1:
                raise self._broken("windows", at_ns, link, f"takes {psn} for arrived, which its target lacks")

    def _bounded(self, at_ns: Instant, link: UetLink) -> None:
        initiator, settings = link.initiator, self._nic.config.settings
        table = initiator.table
        lost = [sent for sent in table.by_psn.values() if sent.state == LOST]
        if (len(lost), sum(sent.size for sent in lost)) != (table.lost, table.lost_bytes):
            what = f"{table.lost} PSNs lost, {table.lost_bytes} bytes; {len(lost)} are"
            raise self._broken("retransmission", at_ns, link, what)
        if initiator.unfinished > settings.work_requests_max:
            raise self._broken("bounds", at_ns, link, f"{initiator.unfinished} messages unfinished")
        if len(table.by_psn) > uet_inside.window_psns(initiator) + 1:
            raise self._broken("bounds", at_ns, link, f"{len(table.by_psn)} PSNs out")

    def _awake(self, at_ns: Instant, link: UetLink) -> None:
        """Whatever could be sent now is about to be; whatever is unacknowledged is looked after."""
        if link.has_packet() and link.open_ports() and not link.waiting:
            raise self._broken("progress", at_ns, link, "has a packet to send, and nobody asks it")
        waits = link.initiator.table.oldest() is not None or link.credit_wanted() is not None
        if waits and uet_inside.timer_ns(link.initiator) == NEVER:
            raise self._broken("progress", at_ns, link, f"{link.initiator.unfinished} messages, and no timer runs")

    def _shared(self, at_ns: Instant, flying: dict[int, int]) -> None:
        """What QPs to one destination share."""
        transport = uet_inside.transport(self._nic)
        contexts = transport.contexts
        if len({context.pdcid for context in contexts}) != len(contexts):
            raise InvariantError("contexts", self._nic.name, at_ns, "two contexts have one PDCID")
        if len(transport._targets) > self._nic.config.settings.uet_contexts_max:
            raise InvariantError("bounds", self._nic.name, at_ns, "more contexts than may be taken")
        for target in transport._targets.values():
            if len(target.kept) > self._nic.config.settings.uet_responses_max:
                raise InvariantError("bounds", self._nic.name, at_ns, f"{len(target.kept)} responses kept")
        for peer in uet_inside.peers(self._nic):
            for window in peer.windows.contexts:
                if window.inflight_bytes != flying.get(id(window), 0):
                    of_qps = flying.get(id(window), 0)
                    what = f"{window.inflight_bytes} bytes in flight to NIC {peer.index}, {of_qps} of QPs"
                    raise InvariantError("windows", self._nic.name, at_ns, what)
            if peer.credit is None:
                continue
            granted = self._peer_granted(peer.index)
            if granted is not None and peer.credit.granted > granted:
                what = f"credit of {peer.credit.granted} units, {granted} were granted by {peer.index}"
                raise InvariantError("credit", self._nic.name, at_ns, what)


def _taken(link: UetLink) -> Iterator[int]:
    """PSNs behind the last of all that have arrived which are taken for arrived, too."""
    table = link.initiator.table
    return (psn for psn in range(table.cack + 1, link.initiator.psn_next) if psn not in table.by_psn)
