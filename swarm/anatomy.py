"""Where things stand inside the cores: the one place of the swarm that knows their private names.

The checks look at a core from inside and never change it. When a core is rebuilt, this file follows; the checks stay.
"""

from collections.abc import Container, Iterator
from typing import Any

from mrcfabric.class_egress import ClassEgress
from mrcfabric.egress import Egress
from mrcfabric.egress_queues import EgressQueues
from nicd.core.memory import MemoryTable
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.qp import Link, Qp
from nicd.core.mrc.requestor import Requestor
from nicd.core.mrc.sent import INFLIGHT, LOST, Sent
from nicd.core.mrc.transport import MrcTransport
from nicd.core.nic import Nic
from nicd.core.ports import Ports
from switchd.core.switch import Switch


def transport(nic: Nic) -> MrcTransport:
    """Of a NIC that runs MRC."""
    found = nic._transport
    assert isinstance(found, MrcTransport)
    return found


def board(nic: Nic) -> MrcBoard:
    return transport(nic).mrc_board


def qps(nic: Nic) -> dict[int, Qp]:
    return transport(nic)._qps


def links(nic: Nic) -> Iterator[tuple[Qp, Link]]:
    """The connected QPs."""
    return ((qp, qp.link) for qp in qps(nic).values() if qp.link is not None)


def peer_qpn(link: Link) -> int:
    return link._peer_qpn


def mpr(requestor: Requestor) -> int:
    """The peer's tracking window in PSNs, as agreed; a dynamic one may be smaller for a while."""
    return requestor._mpr_agreed


def own_mpr(link: Link) -> int:
    return link.responder.window._mpr


def active_wanted(link: Link) -> list[int]:
    """Active EVs that each plane of the profile should have."""
    return link.profile._target


def lost(requestor: Requestor) -> int:
    """PSNs judged lost and not sent again."""
    return requestor._inflight.lost


def table(requestor: Requestor) -> dict[int, Sent]:
    """PSN -> its latest transmission, of those not acknowledged."""
    return requestor._inflight.by_psn


def inflight_bytes(requestor: Requestor, planes: Container[int]) -> int:
    """Of these planes, counted anew."""
    return sum(sent.size for sent in table(requestor).values() if sent.state == INFLIGHT and sent.plane in planes)


def lost_count(requestor: Requestor) -> int:
    """Counted anew."""
    return sum(sent.state == LOST for sent in table(requestor).values())


def stashed(link: Link) -> int:
    """Immediates that wait for their turn."""
    return link.responder._assembly.stashed


def held_for_contexts(nic: Nic) -> int:
    """Packets that were received and wait until their QP's context is on the chip."""
    return 0 if nic._antechamber is None else nic._antechamber.held


def waiting(egress: EgressQueues) -> tuple[int, int, int, int]:
    """(data packets, data bytes, control packets, control bytes) that wait, counted anew."""
    if isinstance(egress, ClassEgress):
        data: list[Any] = []
        control: list[Any] = []
        for cls, queue in enumerate(egress._queues):
            (control if cls in egress.config.strict else data).extend(packet for packet, _ in queue)
    else:
        assert isinstance(egress, Egress)
        data, control = list(egress._data), list(egress._control)
    return len(data), sum(map(len, data)), len(control), sum(map(len, control))


def look_at_ports(ports: Ports, on_offer: Any) -> None:
    """`on_offer(now, port, packet, control)` sees every packet that a NIC puts into a port's queue, before it does."""
    ports.on_offer = on_offer


def look_at_memory(memory: MemoryTable, on_placed: Any) -> None:
    """`on_placed(r_key, va, payload)` sees every payload that a NIC has written."""
    memory.on_placed = on_placed


def look_at_losses(switch: Switch, on_lost: Any) -> None:
    """`on_lost(packet)` sees every packet that a switch drops before any queue."""
    switch.on_lost = on_lost
