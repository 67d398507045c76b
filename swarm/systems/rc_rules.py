"""The rules of an RC QP: which packet may leave when, which bounds, and that nothing sleeps with work to do.

When a data packet is offered: its QP is RTS and the packet leaves by the QP's own port, which has carrier and whose
class is not paused; its PSN is inside the window, new ones in their order. After every step: points only move forward
(but for go-back-0, which may forget a message), no end knows more than the other has, every table and every row of
retries is inside its bound, rates are inside theirs, and a QP with something to send has somebody to wake it.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from mrcfabric.class_egress import ClassEgress
from mrcfabric.node import Input, Transmit
from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.layout import PSN_MASK
from nicd.core.nic import Nic
from nicd.core.qp_state import QpState
from nicd.core.rc.dcqcn import ReactionPoint
from nicd.core.rc.qp import RcLink
from swarm.invariant import InvariantError
from swarm.systems import inside
from swarm.systems.rc_account import Seen

PeerReached: TypeAlias = Callable[[RcLink], int | None]
"""The highest PSN that the QP at the other end has ever expected, None when it is gone."""


class RcRules:
    """The rules for one NIC."""

    def __init__(self, nic: Nic, peer_reached: PeerReached) -> None:
        self._nic = nic
        self._board = inside.board(nic)
        self._peer_reached = peer_reached
        self._settings = nic.config.settings
        self._points: dict[int, tuple[int, ...]] = {}
        self._sent: dict[int, int] = {}
        """QP number -> the first PSN never offered to a port."""
        self.reached: dict[int, int] = {}
        """QP number -> the highest PSN that it has ever expected."""

    def _broken(self, invariant: str, at_ns: Instant, link: RcLink, what: str) -> InvariantError:
        return InvariantError(invariant, self._nic.name, at_ns, f"QP {link.qpn}: {what}")

    # -- the moment of choice

    def offered(self, now: Instant, seen: Seen) -> None:
        """A data packet is offered to a port. Raises InvariantError."""
        for qp, link in inside.links(self._nic):
            if qp.state == QpState.RTS and (link.ways.address, link.peer_qpn) == (seen.address, seen.qpn):
                self._may_leave(now, link, seen)
                return
        raise InvariantError("paths", self._nic.name, now, f"data for QP {seen.qpn}, which nobody here is connected to")

    def _may_leave(self, now: Instant, link: RcLink, seen: Seen) -> None:
        ports = self._board.ports
        if seen.port != link.ways.port:
            raise self._broken("paths", now, link, f"data on port {seen.port}, its own is {link.ways.port}")
        if not ports.carrier >> seen.port & 1:
            raise self._broken("paths", now, link, f"data on port {seen.port}, which is down")
        egress = ports.egress[seen.port]
        if isinstance(egress, ClassEgress) and egress.paused_until[egress.config.data_class] > now:
            raise self._broken("pauses", now, link, f"data for port {seen.port}, whose class is paused")
        una, _, high, limit, _ = inside.points(link.requestor)
        psn = high - 1 - (high - 1 - seen.psn & PSN_MASK)
        if not una <= psn < min(high, limit):
            raise self._broken("windows", now, link, f"PSN {psn} is outside {una} to {high}")
        if psn - una >= self._settings.rc_psns_max:
            raise self._broken("windows", now, link, f"PSN {psn} is {psn - una} beyond the oldest in flight")
        first = self._sent.get(link.qpn, psn)
        if psn > first:
            raise self._broken("windows", now, link, f"PSN {psn} for the first time, and {first} was never sent")
        self._sent[link.qpn] = max(first, psn + 1)
        pace = link.windows
        if pace.rate_bps < pace.line_bps and not pace.slowed:
            raise self._broken("rate", now, link, f"{pace.rate_bps} of {pace.line_bps} bit/s, and nothing slows it")

    # -- after every step

    def before(self, inputs: list[Input], at_ns: Instant) -> None:
        """Nothing to remember."""

    def after(self, transmits: list[Transmit], events: list[Any], at_ns: Instant) -> None:
        """Raises InvariantError."""
        for qp, link in inside.links(self._nic):
            self._forward(at_ns, link, qp.state == QpState.RTS)
            if qp.state <= QpState.RTS:
                self._bounded(at_ns, link)
                self._paced(at_ns, link)
            if qp.state == QpState.RTS:
                self._awake(at_ns, link)

    def _forward(self, at_ns: Instant, link: RcLink, alive: bool) -> None:
        expected = link.responder.expected
        points = (*inside.points(link.requestor), expected)
        last = self._points.get(link.qpn)
        if last == points:
            return
        self._points[link.qpn] = points
        self.reached[link.qpn] = max(expected, self.reached.get(link.qpn, expected))
        una, following, high, limit, end, _ = points
        if not una <= following <= high <= end or not following <= limit <= end:
            raise self._broken("windows", at_ns, link, f"points out of order: {points}")
        forgets = inside.to_start(link.requestor)
        if last is not None and not forgets and (una < last[0] or expected < last[5]):
            raise self._broken("windows", at_ns, link, f"went back from {last} to {points}")
        if last is not None and (high < last[2] or end < last[4]):
            raise self._broken("windows", at_ns, link, f"went back from {last} to {points}")
        reached = self._peer_reached(link)
        if alive and reached is not None and una > reached:
            raise self._broken("windows", at_ns, link, f"takes all below {una} for arrived, the peer expects {reached}")

    def _bounded(self, at_ns: Instant, link: RcLink) -> None:
        requestor, settings = link.requestor, self._settings
        sent, lost = inside.tracked(requestor)
        tries, most_tries = inside.tries(requestor)
        for what, size, most in (
            ("PSNs in flight", requestor.inflight_packets, settings.rc_psns_max),
            ("PSNs tracked", len(sent) + len(lost), settings.rc_psns_max),
            ("packets before their turn", link.responder.early, settings.rc_psns_max),
            ("messages", requestor.unfinished, settings.work_requests_max),
            ("time-outs in a row", tries, most_tries),
        ):
            if size > most:
                raise self._broken("bounds", at_ns, link, f"{size} {what}, {most} may be")
        if requestor.inflight_packets > 1 and requestor.inflight_bytes > requestor.window_bytes:
            what = f"{requestor.inflight_bytes} bytes in flight, a window of {requestor.window_bytes}"
            raise self._broken("windows", at_ns, link, what)
        una, _, high, _, _ = inside.points(requestor)
        if any(not una <= psn < high for psn in (*sent, *lost)) or not set(sent).isdisjoint(lost):
            raise self._broken("windows", at_ns, link, f"tracks {len(sent)} + {len(lost)} PSNs outside {una} to {high}")

    def _paced(self, at_ns: Instant, link: RcLink) -> None:
        pace = link.windows
        if not 0 < pace.rate_bps <= pace.line_bps:
            raise self._broken("rate", at_ns, link, f"{pace.rate_bps} bit/s on a port of {pace.line_bps}")
        if isinstance(pace, ReactionPoint):
            if not pace.rate_bps <= pace.target_bps <= pace.line_bps and pace.slowed:
                what = f"{pace.rate_bps} bit/s, target {pace.target_bps}, line {pace.line_bps}"
                raise self._broken("rate", at_ns, link, what)
            if not pace.open and inside.gate_ns(pace) == NEVER:
                raise self._broken("progress", at_ns, link, "waits for its rate, and no timer lets it go on")

    def _awake(self, at_ns: Instant, link: RcLink) -> None:
        """Whatever could be sent now is about to be; whatever is unacknowledged is looked after."""
        requestor = link.requestor
        if requestor.has_packet() and link.open_ports() and not link.waiting:
            raise self._broken("progress", at_ns, link, "has a packet to send, and nobody asks it")
        if requestor.unfinished and not inside.patient_for_ever(requestor) and inside.timer_ns(requestor) == NEVER:
            raise self._broken("progress", at_ns, link, f"{requestor.unfinished} messages, and no timer runs")
