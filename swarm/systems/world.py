"""A case of the second series set up in the simulator: each core gets the checks of what it is.

NICs that run MRC are watched as in the first series. RC NICs, switches that pause, and all ports of eight classes have
checks of their own.
"""

from collections.abc import Mapping
from typing import Any

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.naming import nic_name
from mrcfabric.rng import Rng
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES
from mrcfabric.units import Instant
from mrcfabric.wire_settings import code_points
from nicd.core.class_ports import ClassPorts
from nicd.core.nic import Nic
from nicd.core.rc.qp import RcLink
from nicd.core.uet.qp import UetLink
from nicd.core.uet.target import Target
from orchestrator.faults.kinds import KINDS as CATALOGUE
from swarm import anatomy
from swarm.breakage import Kind
from swarm.case import Case
from swarm.messages import Messages
from swarm.systems import inside, uet_inside
from swarm.systems.breakage import ALL_KINDS, links_struck
from swarm.systems.buffers import BufferAccount
from swarm.systems.hashing import OneWay
from swarm.systems.pauses import Pauses
from swarm.systems.rc_account import RcAccount
from swarm.systems.rc_messages import RcMessages
from swarm.systems.rc_rules import RcRules
from swarm.systems.uet_account import UetAccount
from swarm.systems.uet_messages import UetMessages
from swarm.systems.uet_rules import PeerGranted, PeerTarget, UetRules
from swarm.world import Depth, World
from switchd.compose import switch_settings
from switchd.core.headroom import exact_headroom
from switchd.core.lossless import LosslessSwitch
from switchd.core.routed import RoutedSwitch
from switchd.core.switch import Switch

assert ALL_KINDS.keys() & CATALOGUE.keys(), "kinds of the swarm are carried out by those of the catalogue"


class SystemWorld(World):
    """One case, from instant 0."""

    _kinds: Mapping[str, Kind] = ALL_KINDS
    _steps_max = 80_000
    """A QP that goes back again and again over a link that loses everything shows little after so many."""

    def __init__(self, case: Case, depth: Depth | None = None) -> None:
        """As `World`."""
        self._rules: dict[str, RcRules] = {}
        super().__init__(case, depth)

    @property
    def rc(self) -> bool:
        """The NICs run RC."""
        return self.case.topology.nic.get("transport") == "rc"

    @property
    def uet(self) -> bool:
        """The NICs run UET."""
        return self.case.topology.nic.get("transport") == "uet"

    def _truth(self, rng: Rng) -> Messages:
        if self.uet:
            return UetMessages(self.case.flows, rng)
        if not self.rc:
            return super()._truth(rng)
        return RcMessages(self.case.flows, rng, str(self.case.topology.nic.get("rc_recovery", "go_back_n")))

    # -- checks

    def _switch_checks(self, switch: Switch) -> list[Any]:
        checks = super()._switch_checks(switch)
        if isinstance(switch, LosslessSwitch):
            checks += [BufferAccount(switch, self._excuse(switch)), self._pauses(switch)]
        if isinstance(switch, RoutedSwitch) and switch.config.ecmp is not None:
            checks.append(OneWay(switch))
        return checks

    def _pauses(self, node: Nic | LosslessSwitch) -> Pauses:
        topology = self.case.topology
        packet = topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES
        found = Pauses(node, code_points(topology), packet)
        if any(fault.kind == "frozen" and fault.target == node.name for fault in self.case.faults):
            found.stand_still()
        return found

    def _nic_checks(self, nic: Nic) -> list[Any]:
        checks = self._rc_checks(nic) if self.rc else self._uet_checks(nic) if self.uet else super()._nic_checks(nic)
        if self._depth.checks and isinstance(inside.board(nic).ports, ClassPorts):
            checks.append(self._pauses(nic))
        return checks

    def _rc_checks(self, nic: Nic) -> list[Any]:
        board = inside.board(nic)
        anatomy.look_at_memory(board.memory, lambda *placed: self.messages.placed(nic.name, self.now_ns, *placed))
        if not self._depth.checks:
            return []
        account = RcAccount(nic, self.ledger, self._depth.stepwise)
        rules = RcRules(nic, self._reached)
        self._rules[nic.name] = rules

        def on_offer(now: Instant, port: int, packet: bytearray, control: bool) -> None:
            seen = account.offered(port, packet)
            if seen is not None:
                rules.offered(now, seen)

        anatomy.look_at_ports(board.ports, on_offer)
        return [account, rules]

    def _uet_checks(self, nic: Nic) -> list[Any]:
        board = inside.board(nic)
        anatomy.look_at_memory(board.memory, lambda *placed: self.messages.placed(nic.name, self.now_ns, *placed))
        if not self._depth.checks:
            return []
        account = UetAccount(nic, self.ledger, self._depth.stepwise)
        rules = UetRules(nic, self._target_of(nic), self._granted_to(nic))

        def on_offer(now: Instant, port: int, packet: bytearray, control: bool) -> None:
            seen = account.offered(port, packet)
            if seen is not None:
                rules.offered(now, seen)

        anatomy.look_at_ports(board.ports, on_offer)
        return [account, rules]

    def _target_of(self, nic: Nic) -> PeerTarget:
        def found(link: UetLink) -> Target | None:
            name = nic_name(link.peer_index)
            if not link.pdcid or not self.simulator.alive(name):
                return None
            return uet_inside.target_of(self.nic(name), nic.config.address, link.pdcid)

        return found

    def _granted_to(self, nic: Nic) -> PeerGranted:
        index = self.topology.nic_index(nic.name)
        crashes = any(fault.kind == "nic_crash" for fault in self.case.faults)

        def granted(peer: int) -> int | None:
            grantor = None if crashes else uet_inside.grantor(self.nic(nic_name(peer)))
            return None if grantor is None else uet_inside.granted(grantor, index)

        return granted

    def _reached(self, link: RcLink) -> int | None:
        name = nic_name(link.peer_index)
        if not self.simulator.alive(name):
            return None
        rules = self._rules.get(name)
        peer = inside.transport(self.nic(name)).qps.get(link.peer_qpn)
        if peer is None or peer.link is None or peer.link.peer_qpn != link.qpn:
            return None
        expected = peer.link.responder.expected
        return expected if rules is None else max(expected, rules.reached.get(link.peer_qpn, expected))

    def _excuse(self, switch: LosslessSwitch) -> Any:
        """Whether a port may drop packets of a lossless class, by what has happened up to an instant."""
        case, topology = self.case, self.case.topology
        packet = topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES
        ends = topology.ports(switch.name)
        assert switch.config.lossless is not None
        buffer = switch.config.lossless.buffer
        since = [
            min((fault.at_ns for fault in case.faults if end.link in links_struck(fault, topology)), default=None)
            for end in ends
        ]
        settings = switch_settings(topology)
        short = [
            settings.pfc_headroom != "exact"
            and buffer.headroom_bytes[end.port]
            < exact_headroom(end.rate_bps, end.delay_ns + end.incoming_delay_ns, packet, len(buffer.lossless))
            for end in ends
        ]
        watched = bool(settings.pfc_watchdog_ns)

        def excused(port: int, at_ns: Instant) -> bool:
            if case.unruly or short[port]:
                return True
            struck_ns = since[port]
            if struck_ns is not None and struck_ns <= at_ns:
                return True
            return watched and self._disobeyed(ends[port].peer, ends[port].peer_port)

        return excused

    def _disobeyed(self, name: str, port: int) -> bool:
        """The watchdog of that port has stopped obeying at some time."""
        core = self._inner(name) if self.simulator.alive(name) else None
        return isinstance(core, LosslessSwitch) and inside.storms(core, port) > 0

    def _bounds(self, nic: Nic) -> dict[str, int]:
        if self.uet:
            return _uet_bounds(nic)
        if not self.rc:
            return super()._bounds(nic)
        settings = nic.config.settings
        psns = settings.rc_psns_max
        return {
            "Board.events": settings.events_max,
            "GoodputBins._bins": settings.bins_max,
            "Requestor._messages": settings.work_requests_max,
            "Requestor._queue": settings.work_requests_max,
            "SelectiveRequestor._sent": psns,
            "SelectiveRequestor._lost": psns,
            "SelectiveRequestor._order": 2 * psns,
            "SelectiveResponder._early": psns,
        }

    # -- rest

    def _next_look_ns(self) -> Instant:
        """While nothing happens there is nothing to see: an RC QP may wait for long."""
        due_ns = self.simulator.next_due()
        return max(super()._next_look_ns(), self.now_ns if due_ns is None else due_ns)

    def drained(self) -> bool:
        """No packet waits anywhere, no buffer holds a byte, and no switch asks for a pause."""
        for name in self.topology.node_names():
            if not self.simulator.alive(name):
                continue
            core = self._inner(name)
            if isinstance(core, LosslessSwitch) and (core.buffer.total or any(core.buffer.xoff)):
                return False
            ports = inside.board(core).ports.egress if isinstance(core, Nic) else getattr(core, "egress", ())
            if any(any(port.waiting_packets) or port.held for port in ports):
                return False
        return True


def _uet_bounds(nic: Nic) -> dict[str, int]:
    settings = nic.config.settings
    psns = settings.mpr_units * 128
    return {
        "Board.events": settings.events_max,
        "GoodputBins._bins": settings.bins_max,
        "Initiator._messages": settings.work_requests_max,
        "Initiator._queue": settings.work_requests_max,
        "Outstanding.by_psn": psns + 1,
        "UnderWay._by_id": psns,
        "Target._whole": psns,
        "UetTransport._targets": settings.uet_contexts_max,
        "Reps._ring": settings.uet_reps_ring,
        "Reps._kept": settings.uet_reps_ring,
    }
