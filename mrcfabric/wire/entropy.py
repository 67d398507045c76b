"""The entropy value (EV) of a packet: 32 bits striped over the IPv6 flow label and the UDP source port.

Owns the striping and nothing else; `mrcfabric.paths` gives the bits of an EV their meaning.

Source: MRC 1.0 7.5.5: sixteen bits in the UDP source port, sixteen in the low bits of the flow label, whose top four
stay zero. Public descriptions disagree about which half is which: `EvOrder` is that one setting.
"""

from enum import IntEnum
from typing import Final

EV_BITS: Final = 32
EV_MAX: Final = (1 << EV_BITS) - 1
HALF_MASK: Final = 0xFFFF


class EvOrder(IntEnum):
    """Which half of the EV the UDP source port carries."""

    PORT_LOW = 0
    """Source port = low 16 bits, flow label = high 16 bits. The default."""
    PORT_HIGH = 1
    """The other order, for peers that were built so."""


def ev_to_wire(ev: int, order: EvOrder = EvOrder.PORT_LOW) -> tuple[int, int]:
    """(flow label, UDP source port) that carry `ev`."""
    if order:
        return ev & HALF_MASK, ev >> 16
    return ev >> 16, ev & HALF_MASK


def ev_from_wire(flow_label: int, source_port: int, order: EvOrder = EvOrder.PORT_LOW) -> int:
    """The EV that a flow label (its low 16 bits count) and a UDP source port carry."""
    if order:
        return source_port << 16 | flow_label & HALF_MASK
    return (flow_label & HALF_MASK) << 16 | source_port
