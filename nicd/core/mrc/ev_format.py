"""What an EV looks like: four formats of values, how people write them, and the 32 bits that travel.

Owns formats, values and their text. `ev_rules` generates values from rules, `ev_profiles` holds them, and
`mrcfabric.paths` has the bits of our own structured EV.

| Format | Bits | A value is | The EV that travels | The path, here |
|---|---|---|---|---|
| `ecmp` | 16 | entropy for the switches' hash | the value, upper half zero | a fixed hash of it and the peer |
| `stev` | 32 | plane, up-link, draw bits (`mrcfabric.paths`) | the value | its bits |
| `srv6` | 128 | the container of a way to one peer | number, T1 and plane, as in `mrcfabric.paths` | the container |
| `srv6_srh` | 256 | the same and the segment of an SRH; 0: none | likewise | container and segment |

An egress port counts from 1; 0 leaves it to the value, which only the first two formats can.

MRC 1.0 6 (formats, the value that SACKs echo), controller API (32 bytes and a port; an EV ID of 32 bits for
addresses). The ID's form is not public: ours counts the EVs of the profile in the draw bits, so that it names plane and
up-link like every other EV.
"""

from collections.abc import Sequence
from ipaddress import AddressValueError, IPv6Address
from typing import Final, NamedTuple
from zlib import crc32

from mrcfabric.errors import RefusedError
from mrcfabric.naming import USID_TIER_T1, usid_fields
from mrcfabric.paths import EV_DRAW_BITS, EV_DRAW_SHIFT, EV_PLANE_MASK, Path, ev_of
from mrcfabric.wire import srh, usid
from nicd.core.settings import DestinationLike

ECMP: Final = "ecmp"
STEV: Final = "stev"
SRV6: Final = "srv6"
SRV6_SRH: Final = "srv6_srh"
# MRC 1.0 6: widths of generated EVs.
BITS: Final = {ECMP: 16, STEV: 32, SRV6: 128, SRV6_SRH: 256}
"""Width of a value by the format's name."""
_USIDS: Final = (usid.BLOCK_BITS,) + (usid.USID_BITS,) * usid.USIDS_MAX
FIELDS: Final = {ECMP: (16,), STEV: (18, 11, 3), SRV6: _USIDS, SRV6_SRH: _USIDS * 2}
"""Widths of the fields of a value, left to right, unless a profile says otherwise."""
IDS_MAX: Final = 1 << EV_DRAW_BITS


class EvItem(NamedTuple):
    """One EV of a profile, before anybody knows which peer it leads to."""

    ev: int
    """The 32 bits that travel."""
    port: int
    """Egress port from 1 on; 0: the value's hash decides (`ecmp` only)."""
    value: int
    """As wide as the format says."""


class EvEntry(NamedTuple):
    """One EV of a QP."""

    ev: int
    path: Path
    """Its number is beyond the fabric's own where a container names none of them. Its outer address is the container,
    16 bytes, and the SRH where there is one, 24 more."""


def parse(text: str, kind: str) -> tuple[int, int]:
    """(value, port) of `VALUE[@PORT]`: an integer, an IPv6 address for `srv6`, `ADDRESS+SEGMENT` for `srv6_srh`.

    RefusedError says what is wrong.
    """
    body, at, tail = text.partition("@")
    try:
        port = int(tail, 0) if at else 0
        value = int(body, 0) if kind in (ECMP, STEV) or body.lower().startswith("0x") else _address(body, kind)
    except ValueError:
        raise RefusedError(f"{text!r} is no EV of format {kind}; wanted: {_WANTED[kind]}") from None
    if not 0 <= value < 1 << BITS[kind]:
        raise RefusedError(f"{text!r} does not fit into {BITS[kind]} bits")
    return value, port


_WANTED: Final = {
    ECMP: "0xBEEF or 0xBEEF@PORT",
    STEV: "0x00010203 or 0x00010203@PORT",
    SRV6: "ADDRESS@PORT",
    SRV6_SRH: "ADDRESS+SEGMENT@PORT",
}


def _address(body: str, kind: str) -> int:
    parts = body.split("+")
    if len(parts) > (2 if kind == SRV6_SRH else 1):
        raise ValueError
    try:
        numbers = [int(IPv6Address(part)) for part in parts]
    except AddressValueError:
        raise ValueError from None
    if kind == SRV6:
        return numbers[0]
    return numbers[0] << 128 | (numbers[1] if len(numbers) == 2 else 0)


def shown(item: EvItem, kind: str) -> str:
    """The text that `parse` reads."""
    if kind == ECMP:
        body = f"0x{item.value:04x}"
    elif kind == STEV:
        body = f"0x{item.value:08x}"
    else:
        body = "+".join(str(IPv6Address(part)) for part in _parts(item.value, kind) if part is not None)
    return f"{body}@{item.port}" if item.port else body


def _parts(value: int, kind: str) -> tuple[bytes, bytes | None]:
    """(container, segment or None)."""
    if kind == SRV6:
        return value.to_bytes(16, "big"), None
    whole = value.to_bytes(32, "big")
    return whole[:16], whole[16:] if any(whole[16:]) else None


def item_of(value: int, port: int, kind: str, number: int, ports: Sequence[int]) -> EvItem:
    """The EV of a value; `number` counts the EVs a profile has ever had. RefusedError for a port that cannot be.

    `ports`: by plane, the port (from 0 on) of this NIC.
    """
    if port and port - 1 not in ports:
        raise RefusedError(f"no egress port {port}; this NIC has ports 1 to {len(ports)}")
    if kind == ECMP:
        return EvItem(value, port, value)
    if kind == STEV:
        own = ports[(value & EV_PLANE_MASK) % len(ports)] + 1
        if port not in (0, own):
            raise RefusedError(f"EV 0x{value:08x} names port {own} by its bits, not {port}")
        return EvItem(value, own, value)
    if not port:
        raise RefusedError("an EV that is an address needs its egress port, as ADDRESS@PORT")
    if number >= IDS_MAX:
        raise RefusedError(f"a profile numbers at most {IDS_MAX} EVs in its life")
    container, segment = _parts(value, kind)
    usids = usid.usids(container) + (usid.usids(segment) if segment else ())
    fields = (usid_fields(one) for one in usids)
    uplink = next((index for tier, _, index in fields if tier == USID_TIER_T1), 0)
    return EvItem(ev_of(ports.index(port - 1), uplink, number), port, value)


def entry_of(item: EvItem, kind: str, destination: DestinationLike) -> EvEntry:
    """An EV as a QP to `destination` uses it."""
    if kind == STEV:
        return EvEntry(item.ev, destination.path(item.ev))
    if kind == ECMP:
        # No switch of ours hashes: the NIC stands in for them, with the same answer for the same packet.
        draw = crc32(item.value.to_bytes(2, "big") + destination.address)
        plane = destination.ports.port.index(item.port - 1) if item.port else draw % destination.planes
        return EvEntry(item.ev, destination.path(ev_of(plane, (draw >> 8) % destination.paths_per_plane, 0)))
    container, segment = _parts(item.value, kind)
    path = destination.path(item.ev)
    if _joined(container, segment) != path.outer:
        # A way that the fabric does not know: nobody can say what it shares with another.
        path = path._replace(number=destination.paths_per_plane + (item.ev >> EV_DRAW_SHIFT))
    outer = container if segment is None else srh.outer_with(container, segment)
    return EvEntry(item.ev, path._replace(outer=outer))


def _joined(container: bytes, segment: bytes | None) -> bytes:
    """The container of the whole way, as far as it can be written as one."""
    if segment is None or segment == container:
        return container
    usids = usid.usids(container) + usid.usids(segment)
    if len(usids) > usid.USIDS_MAX or not usids:
        return container + segment
    return usid.build(usid.block(container), usids)
