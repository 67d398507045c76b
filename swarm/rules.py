"""The rules of sending: which EV, which window, which bounds; looked at when a packet is offered and after every step.

At the moment a data packet is chosen: its EV is GOOD, active and of the port's plane; plane and port are up at both
ends; it stands inside the receiver's tracking window and the congestion window; a packet sent again is not on the EV
that failed, if there is another. After every step: points only move forward, nothing is known that the peer does not
know, every table is inside its bound, decks and states say the same.
"""

from collections.abc import Callable
from operator import add
from typing import Any, TypeAlias

from mrcfabric.node import Input, Transmit
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire.layout import ENDPOINT_QP, FLAG_RTX, PSN_MASK, WRITE_ONLY_IMM
from nicd.core.ev_state import EvState
from nicd.core.events import EvTransition
from nicd.core.mrc.qp import Link
from nicd.core.nic import Nic
from nicd.core.qp_state import QpState
from swarm import anatomy
from swarm.invariant import InvariantError
from swarm.nic_account import plain

DEEP_EVERY = 16
"""Steps between two looks at what costs more than a few steps to look at."""
PATH_POLICY_WITH_STATES = "mrc"
COMES_BACK = ("probed_clear", "probed_marked")

PeerExpected: TypeAlias = Callable[[Link], int | None]
"""What the QP at the other end expects next, None when it is gone."""


class Sending:
    """The rules for one NIC."""

    def __init__(self, nic: Nic, peer_expected: PeerExpected) -> None:
        self._nic = nic
        self._peer_expected = peer_expected
        self._settings = nic.config.settings
        self._states = self._settings.path_policy == PATH_POLICY_WITH_STATES
        self._links: dict[tuple[bytes, int], Link] = {}
        self._steps = 0
        self._left_ns: dict[int, Instant] = {}
        """When the last packet of each window left."""
        self._last_ev: dict[tuple[int, int], int] = {}
        """(QP number, PSN) -> index of the EV it was last sent on."""
        self._points: dict[int, tuple[int, int, int]] = {}
        """QP number -> (next PSN, cack, expected) at the last look."""
        self.planes = [0] * len(nic.config.ports)
        """Bytes of data on the wire, by plane."""
        self.packets = 0

    def _broken(self, invariant: str, at_ns: Instant, link: Link, what: str) -> InvariantError:
        return InvariantError(invariant, self._nic.name, at_ns, f"QP {link.qpn}: {what}")

    # -- the moment of choice

    def offered(self, now: Instant, port: int, packet: Buffer, seen: tuple[int, int, int, int, int]) -> None:
        """A packet is offered to a port; `seen` is what `NicAccount.offered` read."""
        opcode, flags, qpn, psn24, ev = seen
        if opcode > WRITE_ONLY_IMM or qpn == ENDPOINT_QP:
            return
        packet = plain(packet)
        link = self._link(bytes(packet[64:80]), qpn)
        if link is None:
            raise InvariantError("paths", self._nic.name, now, f"data for QP {qpn}, which nobody here is connected to")
        self._on_good_ev(now, port, link, ev)
        psn = link.requestor.psn_next - 1
        psn -= (psn - psn24) & PSN_MASK
        self._in_windows(now, link, psn)
        self._on_other_ev(now, port, link, psn, ev, bool(flags & FLAG_RTX))
        self.planes[port] += len(packet) + anatomy.board(self._nic).ports.egress[port].config.overhead_bytes
        self.packets += 1

    def _link(self, address: bytes, qpn: int) -> Link | None:
        link = self._links.get((address, qpn))
        qp = None if link is None else anatomy.qps(self._nic).get(link.qpn)
        if qp is None or qp.link is not link:
            self._links = {
                (link.peer.address, anatomy.peer_qpn(link)): link
                for qp, link in anatomy.links(self._nic)
                if qp.state == QpState.RTS
            }
            link = self._links.get((address, qpn))
        return link

    def _on_good_ev(self, now: Instant, port: int, link: Link, ev: int) -> None:
        profile = link.profile
        index = profile.index_of.get(ev)
        if index is None:
            raise self._broken("paths", now, link, f"EV {ev:#x} is not in its profile")
        state = EvState(profile.states[index])
        if state != EvState.GOOD and self._states:
            raise self._broken("paths", now, link, f"data on EV {ev:#x}, which is {state.name}")
        if not profile.active[index]:
            raise self._broken("paths", now, link, f"data on EV {ev:#x}, which is not active")
        if profile.plane[index] != port:
            raise self._broken("paths", now, link, f"EV {ev:#x} of another plane on port {port}")
        if not link.peer.up & anatomy.board(self._nic).ports.carrier & 1 << port:
            raise self._broken("paths", now, link, f"data on plane {port}, which is down")

    def _in_windows(self, now: Instant, link: Link, psn: int) -> None:
        requestor = link.requestor
        if psn - requestor.cack >= anatomy.mpr(requestor):
            what = f"PSN {psn} is {psn - requestor.cack} beyond cack, MPR {anatomy.mpr(requestor)}"
            raise self._broken("windows", now, link, what)
        sent = anatomy.table(requestor)[psn]
        window = requestor.windows.of[sent.plane]
        before, cwnd, mtu = window.inflight_bytes - sent.size, window.cwnd_bytes, self._settings.mtu_bytes
        last_ns = self._left_ns.get(id(window), NEVER)
        self._left_ns[id(window)] = now
        # One packet may always be out; beyond it a whole MTU must fit, or a small window sends its fraction in time.
        if before > 0 and before + mtu > cwnd:
            small = before < cwnd < self._settings.cwnd_paced_packets * mtu
            if small and now >= last_ns + window.rtt_ns * mtu // cwnd:
                return
            what = f"sends with {before} bytes in flight and a window of {window.cwnd_bytes}"
            raise self._broken("windows", now, link, what)

    def _on_other_ev(self, now: Instant, port: int, link: Link, psn: int, ev: int, again: bool) -> None:
        index = link.profile.index_of[ev]
        key = (link.qpn, psn)
        if again != (key in self._last_ev):
            what = f"PSN {psn} " + ("has rtx and was never sent" if again else "sent again without rtx")
            raise self._broken("retransmission", now, link, what)
        if again and self._states and index == self._last_ev[key] and len(link.profile.decks[port].cards) > 1:
            raise self._broken("paths", now, link, f"PSN {psn} again on EV {ev:#x}, which failed")
        self._last_ev[key] = index

    # -- after every step

    def before(self, inputs: list[Input], at_ns: Instant) -> None:
        """Nothing to remember."""

    def after(self, transmits: list[Transmit], events: list[Any], at_ns: Instant) -> None:
        """Raises InvariantError."""
        deep = self._steps % DEEP_EVERY == 0
        self._steps += 1
        for event in events:
            if isinstance(event, EvTransition):
                self._transition(event)
                deep = True
        for qp, link in anatomy.links(self._nic):
            self._forward(at_ns, link, qp.state)
            self._bounded(at_ns, link)
            if deep and qp.state == QpState.RTS:
                self._counted_right(at_ns, link)
                self._decks(at_ns, link)
        if deep:
            self._tallied(at_ns)

    def _tallied(self, at_ns: Instant) -> None:
        """EVs by plane and state, as metrics tell them, are what is counted one by one."""
        counted = [[0] * len(EvState) for _ in anatomy.board(self._nic).ev_tally]
        for qp, link in anatomy.links(self._nic):
            if qp.state != QpState.ERROR:
                for row, counts in zip(counted, link.profile.counts(), strict=True):
                    row[:] = map(add, row, counts)
        if counted != anatomy.board(self._nic).ev_tally:
            what = f"EVs by plane and state {anatomy.board(self._nic).ev_tally}, {counted} counted"
            raise InvariantError("counters", self._nic.name, at_ns, what)

    def _transition(self, event: EvTransition) -> None:
        if event.source == "assumed_bad" and event.target in ("good", "skip") and event.cause not in COMES_BACK:
            raise InvariantError("paths", self._nic.name, event.at_ns, f"EV {event.ev:#x} came back by {event.cause}")
        if event.source == "denied" and event.cause != "allow":
            raise InvariantError("paths", self._nic.name, event.at_ns, f"EV {event.ev:#x} allowed by {event.cause}")

    def _forward(self, at_ns: Instant, link: Link, state: QpState) -> None:
        points = (link.requestor.psn_next, link.requestor.cack, link.responder.window.expected)
        last = self._points.get(link.qpn)
        if last == points:
            return
        if last is not None and any(new < old for new, old in zip(points, last, strict=True)):
            raise self._broken("windows", at_ns, link, f"went back from {last} to {points}")
        self._points[link.qpn] = points
        if points[1] >= points[0]:
            raise self._broken("windows", at_ns, link, "acknowledged beyond what was sent")
        expected = self._peer_expected(link)
        if state == QpState.RTS and expected is not None and points[1] >= expected:
            what = f"takes {points[1]} for arrived, the peer expects {expected}"
            raise self._broken("windows", at_ns, link, what)

    def _bounded(self, at_ns: Instant, link: Link) -> None:
        requestor, responder = link.requestor, link.responder
        settings = self._settings
        for what, size, most in (
            ("PSNs in flight", len(anatomy.table(requestor)), anatomy.mpr(requestor)),
            ("messages", requestor.unfinished, settings.work_requests_max),
            ("packets out of order", responder.window.ooo_count, anatomy.own_mpr(link)),
            # The one that overflows is still counted when the QP fails.
            ("immediates", anatomy.stashed(link), settings.max_wimm + 1),
        ):
            if size > most:
                raise self._broken("bounds", at_ns, link, f"{size} {what}, {most} may be")

    def _counted_right(self, at_ns: Instant, link: Link) -> None:
        """What is kept as a running sum equals what is counted anew."""
        windows = link.requestor.windows
        sharing = [other.requestor for _, other in anatomy.links(self._nic) if other.requestor.windows is windows]
        for window in windows.contexts:
            planes = [plane for plane, context in enumerate(windows.of) if context is window]
            counted = sum(anatomy.inflight_bytes(other, planes) for other in sharing)
            if counted != window.inflight_bytes:
                what = f"window to NIC {link.peer.index}, planes {planes}: "
                what += f"{window.inflight_bytes} bytes in flight, {counted} counted"
                raise InvariantError("windows", self._nic.name, at_ns, what)
        lost = anatomy.lost_count(link.requestor)
        if lost != anatomy.lost(link.requestor):
            what = f"{anatomy.lost(link.requestor)} PSNs lost, {lost} counted"
            raise self._broken("retransmission", at_ns, link, what)

    def _decks(self, at_ns: Instant, link: Link) -> None:
        """Active EVs, decks and states agree; a deck holds EVs of its own plane only."""
        profile = link.profile
        held = [card for deck in profile.decks for card in deck.cards]
        if sorted(held) != [index for index, active in enumerate(profile.active) if active]:
            raise self._broken("paths", at_ns, link, "decks and active EVs differ")
        for plane, deck in enumerate(profile.decks):
            if any(profile.plane[card] != plane for card in deck.cards):
                raise self._broken("paths", at_ns, link, "an EV in the deck of another plane")
            if bool(deck.cards) != bool(profile.filled >> plane & 1):
                raise self._broken("paths", at_ns, link, f"plane {plane} wrongly marked filled")
            if len(deck.cards) > anatomy.active_wanted(link)[plane]:
                raise self._broken("paths", at_ns, link, f"plane {plane} has too many active EVs")
        if self._states and any(profile.states[card] > EvState.SKIP for card in held):
            raise self._broken("paths", at_ns, link, "an EV in a deck is neither GOOD nor SKIP")
