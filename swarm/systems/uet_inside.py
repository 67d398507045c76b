"""Where things stand inside the cores of UET: the private names that checks look at. Nothing here changes a core."""

from collections.abc import Iterator

from mrcfabric.units import Instant
from nicd.core.nic import Nic
from nicd.core.uet.credits import Grantor
from nicd.core.uet.initiator import Initiator
from nicd.core.uet.peer import UetPeer
from nicd.core.uet.qp import UetLink, UetQp
from nicd.core.uet.target import Target
from nicd.core.uet.transport import UetTransport


def transport(nic: Nic) -> UetTransport:
    """Of a NIC that runs UET."""
    found = nic._transport
    assert isinstance(found, UetTransport)
    return found


def links(nic: Nic) -> Iterator[tuple[UetQp, UetLink]]:
    """The connected QPs."""
    return ((qp, qp.link) for qp in transport(nic).qps.values() if qp.link is not None)


def peers(nic: Nic) -> list[UetPeer]:
    """The NICs that QPs are connected to."""
    return list(transport(nic)._table.peers.values())


def grantor(nic: Nic) -> Grantor | None:
    """Who grants credit; None without credits."""
    return transport(nic)._grantor


def granted(of: Grantor, sender: int) -> int:
    """All that a sender was ever granted, in units."""
    claim = of._claims.get(sender)
    return 0 if claim is None else claim.granted


def window_psns(initiator: Initiator) -> int:
    """How many PSNs may be out at a time."""
    return initiator._mpr


def timer_ns(initiator: Initiator) -> Instant:
    """When silence is looked at next; NEVER when it is not."""
    return initiator.silence.timer.at_ns


def target_of(nic: Nic, address: bytes, pdcid: int) -> Target | None:
    """The context that this initiator has opened here."""
    return transport(nic)._targets.get((address, pdcid))
