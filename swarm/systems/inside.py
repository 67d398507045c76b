"""Where things stand inside the cores of RoCE and of switches that pause: the private names that the checks look at.

As `swarm.anatomy` for MRC. Nothing here changes a core.
"""

from collections.abc import Iterator

from mrcfabric.class_egress import ClassEgress
from mrcfabric.class_egress_config import CLASSES
from mrcfabric.units import NEVER, Instant
from nicd.core.board import Board
from nicd.core.nic import Nic
from nicd.core.rc.dcqcn import ReactionPoint
from nicd.core.rc.qp import RcLink, RcQp
from nicd.core.rc.requestor import Requestor
from nicd.core.rc.selective import SelectiveRequestor
from nicd.core.rc.transport import RcTransport
from switchd.core.lossless import LosslessSwitch


def transport(nic: Nic) -> RcTransport:
    """Of a NIC that runs RC."""
    found = nic._transport
    assert isinstance(found, RcTransport)
    return found


def board(nic: Nic) -> Board:
    """What the parts of any NIC share."""
    return nic._board


def links(nic: Nic) -> Iterator[tuple[RcQp, RcLink]]:
    """The connected QPs."""
    return ((qp, qp.link) for qp in transport(nic).qps.values() if qp.link is not None)


def points(requestor: Requestor) -> tuple[int, int, int, int, int]:
    """PSNs: the oldest not acknowledged, the next to send, the first never sent, the first not at the NIC, the end."""
    return requestor._una, requestor._next, requestor._high, requestor._limit, requestor._end


def tries(requestor: Requestor) -> tuple[int, int]:
    """Time-outs in a row, and how many there may be."""
    return requestor._tries, requestor._retry_cnt


def timer_ns(requestor: Requestor) -> Instant:
    """When silence is looked at next; NEVER when it is not."""
    return requestor._timer.at_ns


def patient_for_ever(requestor: Requestor) -> bool:
    """The QP has no time-out."""
    return requestor._timeout_ns >= NEVER and not isinstance(requestor, SelectiveRequestor)


def tracked(requestor: Requestor) -> tuple[list[int], list[int]]:
    """PSNs in flight and PSNs lost, of a QP that tracks each packet."""
    if isinstance(requestor, SelectiveRequestor):
        return list(requestor._sent), list(requestor._lost)
    return [], []


def to_start(requestor: Requestor) -> bool:
    """The QP goes back to the start of a message."""
    return requestor._to_start


def gate_ns(pace: ReactionPoint) -> Instant:
    """When the rate lets the next packet go; NEVER when no timer is set."""
    return pace._gate.at_ns


def queued(switch: LosslessSwitch) -> tuple[list[int], list[dict[int, int]]]:
    """What waits in all egresses of a switch, counted anew, by the (ingress port, class) that it came in on.

    Bytes in all; and bytes by the egress port where they wait.
    """
    pairs = len(switch.egress) * CLASSES
    found: list[dict[int, int]] = [{} for _ in range(pairs)]
    for egress in switch.egress:
        for queue in egress._queues:
            for packet, origin in queue:
                port, pair = divmod(origin, pairs)
                assert port == egress.port, "an origin names the port where it waits"
                found[pair][port] = found[pair].get(port, 0) + len(packet)
    return [sum(ports.values()) for ports in found], found


def told_where(switch: LosslessSwitch) -> list[dict[int, int]]:
    """The same by egress port, as the switch tells it."""
    return switch._waiting.held


def storms(switch: LosslessSwitch, port: int) -> int:
    """How often the watchdog of a port has stopped obeying pauses."""
    return sum(switch._watchdog.storms[port * CLASSES : (port + 1) * CLASSES])


def ever_broken(egress: ClassEgress) -> bool:
    """A fault of the link has been in force at this port."""
    return egress._faulty is not None


def waits(egress: ClassEgress) -> bool:
    """Something waits at the port: packets, control frames, or what a fault holds back."""
    return bool(egress._waiting or egress._frames or egress.held)
