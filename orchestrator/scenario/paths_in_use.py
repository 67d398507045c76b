"""Which links the packets of a flow take when it begins, for faults that are to hit them.

Pure. What NICs draw follows from the fabric's seed and the numbers of their QPs, so it is known before anything starts;
later losses may have moved a flow. The EVs of a QP (MRC 1.0 6) name its paths. An RC QP has one path: the sending NIC's
own core says which port and source port it gets, and the switch's own forwarding which up-link that means. Owns the
reading of both as links and nothing else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from mrcfabric.paths import Destination
from mrcfabric.rng import Rng
from mrcfabric.topology import PortLink, Topology
from mrcfabric.units import Buffer
from mrcfabric.wire.roce_layout import RC_WRITE_ONLY
from mrcfabric.wire.uet_layout import CONTROL_NOOP
from mrcfabric.wire.uet_templates import UetTemplate
from nicd.compose import nic_config
from nicd.core.commands import ConnectQp, CreateQp
from nicd.core.mrc.ev_universe import Universe
from nicd.core.rc.transport import RcTransport
from nicd.core.uet.entropy import choice_of, draws_of
from nicd.programs.catalogue import part_of
from nicd.programs.program import Program
from orchestrator.planning.abilities import has_evs, sprays_entropies
from switchd.compose import switch_config
from switchd.core.forwarding import Forwarding
from switchd.core.forwarding.ecmp import EcmpForwarding
from switchd.core.forwarding.lft import LftForwarding
from switchd.core.forwarding.usid import UsidForwarding

_BUILT_IN: Final = 0
"""The number of the built-in EV profile."""


def links_in_use(
    topology: Topology, program: Program, sender: int, receiver: int, before: Sequence[Program] = ()
) -> frozenset[str]:
    """Names of the cables between T0s and T1s that packets of a flow cross, over all its QPs.

    Sender and receiver are ranks of the program; `before`: the programs whose QPs the NICs make first. Empty if both
    are below one T0. Acknowledgements may take other ways.
    """
    nic, peer = program.ranks[sender], program.ranks[receiver]
    below = topology.nics_per_t0
    if nic // below == peer // below:
        return frozenset()
    ways = _ways_by_ev if has_evs(topology) else _ways_by_entropy if sprays_entropies(topology) else _ways_of_rc
    t0s = nic // below, peer // below
    found = ways(topology, program, sender, receiver, before)
    return frozenset(f"p{plane}-t0-{t0}~p{plane}-t1-{path}" for plane, path in found for t0 in t0s)


def _ways_by_ev(
    topology: Topology, program: Program, sender: int, receiver: int, _before: Sequence[Program]
) -> Iterator[tuple[int, int]]:
    """(plane, T1) of the active EVs."""
    nic, peer = program.ranks[sender], program.ranks[receiver]
    destination = Destination(topology, nic, peer)
    config = nic_config(topology, topology.node_name(nic))
    universe = Universe(config, _BUILT_IN)
    for turn in range(program.qps):
        qpn = program.qpn(receiver, turn)
        evs = universe.draw(destination, Rng(config.seed, config.name, "qp", qpn, "evs"))
        yield from ((one.path.plane, one.path.number) for one in evs.active)


def _ways_by_entropy(
    topology: Topology, program: Program, sender: int, receiver: int, _before: Sequence[Program]
) -> Iterator[tuple[int, int]]:
    """(plane, T1) of all entropies that packets of each QP may carry."""
    nic, peer = program.ranks[sender], program.ranks[receiver]
    name = topology.node_name(nic)
    config = nic_config(topology, name)
    destination = config.paths.towards(peer)
    template = UetTemplate(config.address, destination.address)
    for turn in range(program.qps):
        rng = draws_of(config, program.qpn(receiver, turn), peer, program.qpn(sender, turn))
        ports = destination.ports.port
        for choice, port in zip([choice_of(config.settings, rng, len(ports)) for _ in ports], ports, strict=True):
            for entropy in choice.entropies:
                yield from _routed(topology, name, port, template.control(entropy, CONTROL_NOOP, 0, 0, 0, 0))


def _routed(topology: Topology, name: str, port: int, packet: Buffer) -> Iterator[tuple[int, int]]:
    """(plane, T1) to which a packet that leaves a NIC by a port may go on."""
    end = topology.ports(name)[port]
    for uplink in _ports(topology, end, packet):
        _, plane, path = topology.parse_node(topology.ports(end.peer)[uplink].peer)
        yield plane, path


def _ways_of_rc(
    topology: Topology, program: Program, sender: int, receiver: int, before: Sequence[Program]
) -> Iterator[tuple[int, int]]:
    """(plane, T1) of the one way of each QP."""
    nic = program.ranks[sender]
    name = topology.node_name(nic)
    transport = RcTransport(RcTransport.board_of(nic_config(topology, name)))
    for other in (*before, program):
        if nic in other.ranks:
            _connect(transport, other, other.ranks.index(nic))
    for turn in range(program.qps):
        ways = transport.find(program.qpn(receiver, turn)).link.ways
        yield from _routed(topology, name, ways.port, ways.data().make(RC_WRITE_ONLY, 0, b"", dma_len=0))


def _ports(topology: Topology, end: PortLink, packet: Buffer) -> Sequence[int]:
    """Ports by which the T0 at the end of a NIC's cable sends its packet: with adaptive routing all up-links."""
    tables = replace(topology, switch={**topology.switch, "routing": "static"})
    config = switch_config(tables, end.peer)
    forwarding: Forwarding
    if config.lft is not None:
        if config.lft.adaptive != "off":
            return config.lft.group
        forwarding = LftForwarding(config.lft, len(config.ports))
    else:
        forwarding = UsidForwarding(config) if config.ecmp is None else EcmpForwarding(config.ecmp)
    routed = forwarding.route(0, end.peer_port, packet)
    assert not isinstance(routed, str), "a NIC's own packet has a way"
    return (routed[0],)


def _connect(transport: RcTransport, program: Program, rank: int) -> None:
    """Make the QPs of a rank, in the order in which its NIC makes them."""
    for peer, turn in product(part_of(program, rank).peers, range(program.qps)):
        qpn, peer_qpn = program.qpn(peer, turn), program.qpn(rank, turn)
        transport.commands[CreateQp](0, CreateQp(0, qpn, 0))
        transport.commands[ConnectQp](0, ConnectQp(0, qpn, program.ranks[peer], peer_qpn, 0, 0))
