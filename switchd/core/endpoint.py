"""The forwarding step field by field, for the packets that one look-up does not settle.

Owns what a switch does as the endpoint of a segment: own uSIDs that repeat, adjacencies, containers with a hole, the
next segment of a segment routing header. Also owns the forwarding of a packet addressed to another node, and the drop
reason in all other cases. `switch` and `fib` handle the usual packet without calling this module; `mrcfabric.egress`
has the queues.

RFC 9800 4.1.1 (NEXT-C-SID of End) and 4.1.2 (of End.X), RFC 8986 4.1, RFC 8754 4.3 and 4.3.1.1, MRC 1.0 5.
"""

from mrcfabric.wire.layout import HOP_LIMIT_OFFSET
from mrcfabric.wire.segments import take_segment
from mrcfabric.wire.usid import argument_is_zero, route_of, shift_packet
from switchd.core.settings import SwitchConfig


def settle(packet: bytearray, config: SwitchConfig) -> int | str:
    """Take a packet (of at least 40 bytes, patched in place) through this switch.

    Returns the uSID of the table by which it leaves, or a drop reason, one of `stats.DROP_REASONS`.
    """
    block, active, next_usid = route_of(packet)
    if block != config.block:
        return "unknown_block"
    if active != config.usid:
        return _pass_on(packet, active, config)
    steps = 0
    # RFC 9800 4.1.1: the rest is looked up again, and it may name this switch once more.
    while active == config.usid:
        steps += 1
        if next_usid in config.adjacency:
            reason = _leave_by_adjacency(packet)
            return reason or _spend(packet, steps, config) or next_usid
        if reason := _next_destination(packet):
            return reason
        block, active, next_usid = route_of(packet)
        if block != config.block:
            return "unknown_block"
    if active not in config.fib:
        return "unknown_usid"
    return _spend(packet, steps, config) or active


def _pass_on(packet: bytearray, active: int, config: SwitchConfig) -> int | str:
    """Forward a packet whose active uSID belongs to another node, unchanged, if that node is a neighbour."""
    # RFC 8754 4.3: an address that is no segment of this node is routed like any other.
    if not config.route_foreign or active not in config.fib:
        return "not_own_usid"
    return _spend(packet, 1, config) or active


def _next_destination(packet: bytearray) -> str | None:
    """Remove the active uSID; when none follows in its container, take the next segment."""
    # RFC 9800 4.1.1: with an argument of all zeros the uSID is an ordinary End.
    if argument_is_zero(packet):
        return take_segment(packet)
    shift_packet(packet)
    return None


def _leave_by_adjacency(packet: bytearray) -> str | None:
    """Remove the own uSID and the adjacency's; the packet leaves by the adjacency's port, whatever comes next."""
    # RFC 9800 4.1.2
    shift_packet(packet)
    return _next_destination(packet)


def _spend(packet: bytearray, steps: int, config: SwitchConfig) -> str | None:
    """Subtract the steps from the hop limit; returns the drop reason when it does not suffice."""
    # RFC 8200 3, RFC 9800 4.1.1
    price = steps if config.hop_limit_per_shift else 1
    if packet[HOP_LIMIT_OFFSET] <= price:
        return "hop_limit"
    packet[HOP_LIMIT_OFFSET] -= price
    return None
