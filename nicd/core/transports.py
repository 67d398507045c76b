"""The transports by name: the one place that knows all of them."""

from typing import Final

from mrcfabric.units import Instant
from nicd.core.mrc.transport import MrcTransport
from nicd.core.rc.transport import RcTransport
from nicd.core.settings import NicConfig
from nicd.core.transport import Transport

TRANSPORTS: Final[dict[str, type[Transport]]] = {kind.name: kind for kind in (MrcTransport, RcTransport)}


def transport_of(config: NicConfig, start_ns: Instant) -> Transport:
    """A new transport, with its board, for a NIC that exists from `start_ns` on."""
    kind = TRANSPORTS[config.settings.transport]
    return kind(kind.board_of(config), start_ns)
