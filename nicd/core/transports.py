"""The transports by name: the one place that knows all of them."""

from typing import Final

from mrcfabric.units import Instant
from nicd.core.mrc.transport import MrcTransport
from nicd.core.rc.transport import RcTransport
from nicd.core.settings import NicConfig, NicSettings
from nicd.core.transport import Transport
from nicd.core.uet.transport import UetTransport

TRANSPORTS: Final[dict[str, type[Transport]]] = {kind.name: kind for kind in (MrcTransport, RcTransport, UetTransport)}


def slot_bytes(knobs: NicSettings, planes: int) -> int:
    """Bytes of on-chip memory that one QP takes with these settings, whatever it holds."""
    return TRANSPORTS[knobs.transport].slot_bytes(knobs, planes)


def resident_max(knobs: NicSettings, planes: int) -> int | None:
    """QP contexts that fit on the chip, at least one; None when its memory is unlimited."""
    return max(1, knobs.sram_bytes // slot_bytes(knobs, planes)) if knobs.sram_bytes else None


def transport_of(config: NicConfig, start_ns: Instant) -> Transport:
    """A new transport, with its board, for a NIC that exists from `start_ns` on."""
    kind = TRANSPORTS[config.settings.transport]
    return kind(kind.board_of(config), start_ns)
