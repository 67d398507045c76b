"""BGP's UPDATE: prefixes of IPv6 that can be reached by a path of AS numbers, and prefixes that no longer can.

Owns the bytes of the message and of its attributes, and how many prefixes one message holds. Routes of IPv4 have no
place in these fabrics and are refused, and so are sets of AS numbers.

Sources: RFC 4271 4.3 and 5 (UPDATE, attributes), 6.3 (checks), RFC 4760 3 and 4 (reachable and unreachable prefixes),
RFC 2545 3 (next hops of IPv6), RFC 6793 4 (four bytes), RFC 1997 (communities), RFC 8326 (graceful shutdown),
RFC 4724 2 (end of RIB), RFC 9774 (no sets).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from mrcfabric.prefix import BITS, Prefix, prefix_of
from mrcfabric.wire.bgp import AFI_IPV6, BAD_UPDATE, HEADER_SIZE, MESSAGE_MAX, SAFI_UNICAST, UPDATE, BgpError, frame

IGP, EGP, INCOMPLETE = range(3)
GRACEFUL_SHUTDOWN: Final = 0xFFFF_0000
"""The community by which a speaker asks its neighbours to prefer other ways."""

# Subcodes of an UPDATE error.
ATTRIBUTE_LIST, _, MISSING_ATTRIBUTE, ATTRIBUTE_FLAGS, ATTRIBUTE_LENGTH, BAD_ORIGIN = range(1, 7)
BAD_NEXT_HOP, BAD_OPTIONAL, BAD_NETWORK, BAD_AS_PATH = range(8, 12)

_ORIGIN, _AS_PATH = 1, 2
_COMMUNITIES: Final = 8
_REACH: Final = 14
_UNREACH: Final = 15
_OPTIONAL: Final = 0x80
_TRANSITIVE: Final = 0x40
_EXTENDED: Final = 0x10
_AS_SEQUENCE: Final = 2
_SEQUENCE_MAX: Final = 255
_FAMILY: Final = bytes((0, AFI_IPV6, SAFI_UNICAST))
_FLAGS: Final = {
    _ORIGIN: _TRANSITIVE, _AS_PATH: _TRANSITIVE, _COMMUNITIES: _OPTIONAL | _TRANSITIVE, _REACH: _OPTIONAL,
    _UNREACH: _OPTIONAL,
}  # fmt: skip
_ROOM: Final = MESSAGE_MAX - HEADER_SIZE - 4
"""For attributes: behind the header stand two lengths."""
_NEXT_HOPS: Final = (16, 32)


class Attributes(NamedTuple):
    """What prefixes that travel in one message have in common."""

    as_path: tuple[int, ...]
    """The nearest AS first."""
    next_hop: bytes
    """A link-local address, or a global one."""
    origin: int = IGP
    communities: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """What an UPDATE says."""

    reach: tuple[Prefix, ...] = ()
    attributes: Attributes | None = None
    """Of the prefixes in `reach`; None without any."""
    unreach: tuple[Prefix, ...] = ()
    end_of_rib: bool = False
    """The first table has been told in full."""


def end_of_rib() -> bytes:
    """The message that ends a first table."""
    return _message(_attribute(_UNREACH, _FAMILY))


def withdrawals(prefixes: Sequence[Prefix]) -> Iterator[bytes]:
    """Messages that take these prefixes back."""
    for part in _parts(prefixes, _ROOM - 4 - len(_FAMILY)):
        yield _message(_attribute(_UNREACH, _FAMILY + part))


def announcements(attributes: Attributes, prefixes: Sequence[Prefix]) -> Iterator[bytes]:
    """Messages that tell of these prefixes, which have the same attributes."""
    hop = _FAMILY + bytes((len(attributes.next_hop),)) + attributes.next_hop + b"\0"
    common = _attribute(_ORIGIN, bytes((attributes.origin,))) + _attribute(_AS_PATH, _path(attributes.as_path))
    if attributes.communities:
        values = b"".join(one.to_bytes(4, "big") for one in attributes.communities)
        common += _attribute(_COMMUNITIES, values)
    for part in _parts(prefixes, _ROOM - 4 - len(common) - len(hop)):
        # RFC 7606 5.1: reachable prefixes stand first.
        yield _message(_attribute(_REACH, hop + part) + common)


def parse(body: bytes) -> Update:
    """What the body of an UPDATE says. Raises BgpError."""
    withdrawn = int.from_bytes(body[:2], "big")
    if len(body) < 4 + withdrawn:
        raise BgpError(BAD_UPDATE, ATTRIBUTE_LIST)
    length = int.from_bytes(body[2 + withdrawn : 4 + withdrawn], "big")
    if len(body) < 4 + withdrawn + length:
        raise BgpError(BAD_UPDATE, ATTRIBUTE_LIST)
    # What stands in front of the attributes and behind them are routes of IPv4.
    if withdrawn or len(body) > 4 + length:
        raise BgpError(BAD_UPDATE, BAD_NETWORK)
    found = _attributes(body[4 : 4 + length])
    unreach = _unreachable(found[_UNREACH]) if _UNREACH in found else ()
    if _REACH not in found:
        return Update(unreach=unreach, end_of_rib=_UNREACH in found and not unreach)
    hop, reach = _reachable(found[_REACH])
    for code in (_ORIGIN, _AS_PATH):
        if code not in found:
            raise BgpError(BAD_UPDATE, MISSING_ATTRIBUTE, bytes((code,)))
    if len(found[_ORIGIN]) != 1 or found[_ORIGIN][0] > INCOMPLETE:
        raise BgpError(BAD_UPDATE, BAD_ORIGIN)
    said = found.get(_COMMUNITIES, b"")
    if len(said) % 4:
        raise BgpError(BAD_UPDATE, BAD_OPTIONAL)
    communities = tuple(int.from_bytes(said[at : at + 4], "big") for at in range(0, len(said), 4))
    attributes = Attributes(_parse_path(found[_AS_PATH]), hop, found[_ORIGIN][0], communities)
    return Update(reach, attributes, unreach)


def _message(attributes: bytes) -> bytes:
    return frame(UPDATE, b"\0\0" + len(attributes).to_bytes(2, "big") + attributes)


def _attribute(code: int, value: bytes) -> bytes:
    flags = _FLAGS[code]
    if len(value) > 255:
        return bytes((flags | _EXTENDED, code)) + len(value).to_bytes(2, "big") + value
    return bytes((flags, code, len(value))) + value


def _path(as_path: tuple[int, ...]) -> bytes:
    found = b""
    for at in range(0, len(as_path), _SEQUENCE_MAX):
        part = as_path[at : at + _SEQUENCE_MAX]
        found += bytes((_AS_SEQUENCE, len(part))) + b"".join(asn.to_bytes(4, "big") for asn in part)
    return found


def _parse_path(value: bytes) -> tuple[int, ...]:
    found: list[int] = []
    at = 0
    while at < len(value):
        end = at + 2 + 4 * (value[at + 1] if at + 1 < len(value) else len(value))
        if end > len(value) or value[at] != _AS_SEQUENCE or end == at + 2:
            raise BgpError(BAD_UPDATE, BAD_AS_PATH)
        found += (int.from_bytes(value[one : one + 4], "big") for one in range(at + 2, end, 4))
        at = end
    return tuple(found)


def _parts(prefixes: Sequence[Prefix], room: int) -> Iterator[bytes]:
    """The prefixes as they are written, as many at a time as have room."""
    part = b""
    for prefix in prefixes:
        size = -(-prefix.length // 8)
        entry = bytes((prefix.length,)) + prefix.value.to_bytes(16, "big")[:size]
        if len(part) + len(entry) > room:
            yield part
            part = b""
        part += entry
    if part:
        yield part


def _prefixes(data: bytes) -> tuple[Prefix, ...]:
    found, at = [], 0
    while at < len(data):
        length = data[at]
        end = at + 1 + -(-length // 8)
        if length > BITS or end > len(data):
            raise BgpError(BAD_UPDATE, BAD_NETWORK)
        # RFC 4271 4.3: bits behind the length mean nothing.
        found.append(prefix_of(int.from_bytes(data[at + 1 : end].ljust(16, b"\0"), "big"), length))
        at = end
    return tuple(found)


def _attributes(data: bytes) -> dict[int, bytes]:
    """The value of each attribute; optional ones that nobody here knows are left out."""
    found: dict[int, bytes] = {}
    at = 0
    while at < len(data):
        wide = 2 if data[at] & _EXTENDED else 1
        start = at + 2 + wide
        end = start + int.from_bytes(data[at + 2 : start], "big")
        if start > len(data) or end > len(data):
            raise BgpError(BAD_UPDATE, ATTRIBUTE_LENGTH)
        flags, code = data[at] & (_OPTIONAL | _TRANSITIVE), data[at + 1]
        if code in found:
            raise BgpError(BAD_UPDATE, ATTRIBUTE_LIST)
        if code in _FLAGS and flags != _FLAGS[code]:
            raise BgpError(BAD_UPDATE, ATTRIBUTE_FLAGS, data[at:end])
        found[code] = data[start:end]
        at = end
    return found


def _unreachable(value: bytes) -> tuple[Prefix, ...]:
    if value[:3] != _FAMILY:
        raise BgpError(BAD_UPDATE, BAD_OPTIONAL)
    return _prefixes(value[3:])


def _reachable(value: bytes) -> tuple[bytes, tuple[Prefix, ...]]:
    """The next hop and the prefixes. Of a global and a link-local address, the second one."""
    if value[:3] != _FAMILY or len(value) < 4:
        raise BgpError(BAD_UPDATE, BAD_OPTIONAL)
    size = value[3]
    # One reserved byte stands between.
    if size not in _NEXT_HOPS or len(value) < 5 + size:
        raise BgpError(BAD_UPDATE, BAD_OPTIONAL)
    return value[4 + size - 16 : 4 + size], _prefixes(value[5 + size :])
