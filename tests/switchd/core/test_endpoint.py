"""The unusual packets: own uSIDs that repeat, adjacencies, holes, next segments, strays, and the drops."""

from dataclasses import replace
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.egress_config import EgressConfig
from mrcfabric.wire.layout import HOP_LIMIT_OFFSET
from mrcfabric.wire.usid import CONTAINER_IN_PACKET, build
from switchd.core.endpoint import settle
from switchd.core.settings import SwitchConfig
from switchd.core.stats import DROP_REASONS

BLOCK, OWN, NEXT, LAST, STRANGER, LOCAL = 0xFCBB_BB00, 0x4001, 0x8002, 0x4003, 0x9999, 0x0002
CONFIG = SwitchConfig("s", usid=OWN, block=BLOCK, fib={NEXT: 0, LAST: 1}, ports=(EgressConfig(),) * 2)
WITH_ADJACENCY = replace(CONFIG, adjacency={LOCAL: 1})
PER_SHIFT = replace(CONFIG, hop_limit_per_shift=True)
STRICT = replace(CONFIG, route_foreign=False)


def packet(*usids: int, segments: tuple[bytes, ...] = (), hop_limit: int = 64, block: int = BLOCK) -> bytearray:
    """A packet with these uSIDs and, where there are segments, a header that has all of them left."""
    outer = b"\x60" + bytes(5) + bytes([43 if segments else 41, hop_limit]) + bytes(16) + build(block, usids)
    count = len(segments)
    srh = bytes([41, 2 * count, 4, count, count - 1, 0, 0, 0]) if segments else b""
    return bytearray(outer + srh + b"".join(segments) + bytes(40))


def way(*usids: int) -> bytes:
    return build(BLOCK, usids)


def settled(body: bytearray, config: SwitchConfig = CONFIG) -> tuple[int | str, bytes, int]:
    found = settle(body, config)
    return found, bytes(body[CONTAINER_IN_PACKET]), body[HOP_LIMIT_OFFSET]


@pytest.mark.spec("RFC 9800", "4.1.1")
def test_own_usids_go_until_another_one_stands_there():
    assert settled(packet(OWN, OWN, NEXT, LAST)) == (NEXT, way(NEXT, LAST), 63)
    assert settled(packet(OWN, OWN, NEXT, LAST), PER_SHIFT) == (NEXT, way(NEXT, LAST), 62)


@pytest.mark.spec("RFC 9800", "4.1.2")
def test_an_adjacency_goes_with_the_own_usid_and_its_port_decides():
    assert settled(packet(OWN, LOCAL, STRANGER, LAST), WITH_ADJACENCY) == (LOCAL, way(STRANGER, LAST), 63)
    assert settled(packet(OWN, LOCAL), WITH_ADJACENCY)[0] == "no_usid_left"
    assert settled(packet(OWN, LOCAL, NEXT, hop_limit=1), WITH_ADJACENCY)[0] == "hop_limit"
    assert settled(packet(LOCAL, NEXT), WITH_ADJACENCY)[0] == "not_own_usid"
    assert settled(packet(OWN, LOCAL, NEXT))[0] == "unknown_usid"


def holed(*places: int) -> bytes:
    """A container that has zeros between its uSIDs."""
    return pack(">I6H", BLOCK, *places, *(0,) * (6 - len(places)))


def with_address(address: bytes, *segments: bytes) -> bytearray:
    body = packet(OWN, segments=segments)
    body[CONTAINER_IN_PACKET] = address
    return body


@pytest.mark.spec("RFC 9800", "4.1.1")
@pytest.mark.parametrize("segments", [(), (way(LAST),)])
@pytest.mark.parametrize("places", [(OWN, 0, NEXT), (OWN, 0, 0, 0, 0, 7), (OWN, 0, OWN)])
def test_a_hole_is_no_end_and_no_segment_comes(places, segments):
    body = with_address(holed(*places), *segments)
    assert settled(body) == ("unknown_usid", holed(*places[1:]), 64)


@pytest.mark.spec("RFC 9800", "4.1.1")
def test_a_hole_further_behind_is_not_looked_at():
    assert settled(with_address(holed(OWN, NEXT, 0, LAST))) == (NEXT, holed(NEXT, 0, LAST), 63)


@pytest.mark.spec("RFC 9800", "4.1.2")
@pytest.mark.parametrize("segments", [(), (way(LAST),)])
@pytest.mark.parametrize("behind", [(0, NEXT), (0, 0, 0, 9), (STRANGER,)])
def test_an_adjacency_takes_whatever_stands_behind_it(behind, segments):
    body = with_address(holed(OWN, LOCAL, *behind), *segments)
    assert settled(body, WITH_ADJACENCY) == (LOCAL, holed(*behind), 63)


@pytest.mark.spec("RFC 8754", "4.3")
def test_a_neighbours_active_usid_is_routed_or_dropped():
    assert settled(packet(NEXT, LAST)) == (NEXT, way(NEXT, LAST), 63)
    assert settled(packet(NEXT, LAST), PER_SHIFT) == (NEXT, way(NEXT, LAST), 63)
    assert settled(packet(NEXT, LAST, hop_limit=1))[0] == "hop_limit"
    assert settled(packet(STRANGER, LAST))[0] == "not_own_usid"
    assert settled(packet(NEXT, LAST), STRICT) == ("not_own_usid", way(NEXT, LAST), 64)


@pytest.mark.spec("RFC 8754", "4.3.1.1")
def test_the_next_segment_comes_when_the_container_is_used_up():
    assert settled(packet(OWN, segments=(way(NEXT, LAST),))) == (NEXT, way(NEXT, LAST), 63)
    assert settled(packet(OWN, NEXT, segments=(way(LAST),))) == (NEXT, way(NEXT), 63)
    assert settled(packet(OWN, LOCAL, segments=(way(LAST),)), WITH_ADJACENCY) == (LOCAL, way(LAST), 63)


def test_a_segment_may_begin_with_this_very_switch():
    assert settled(packet(OWN, segments=(way(OWN, LAST),))) == (LAST, way(LAST), 63)
    assert settled(packet(OWN, segments=(way(NEXT), way(OWN)))) == (NEXT, way(NEXT), 63)
    assert settled(packet(OWN, segments=(way(OWN, LAST),)), PER_SHIFT) == (LAST, way(LAST), 62)


@pytest.mark.spec("RFC 8986", "4.1")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (packet(OWN, block=BLOCK + 1), "unknown_block"),
        (packet(STRANGER, NEXT), "not_own_usid"),
        (packet(OWN, STRANGER), "unknown_usid"),
        (packet(OWN), "no_usid_left"),
        (packet(OWN, segments=(way(OWN),)), "no_usid_left"),
        (packet(OWN, segments=(way(STRANGER),)), "unknown_usid"),
        (packet(OWN, segments=(build(BLOCK + 1, (NEXT,)),)), "unknown_block"),
        (packet(OWN, segments=(way(NEXT),), hop_limit=1), "hop_limit"),
        (packet(OWN, segments=(way(NEXT),))[:60], "bad_srh"),
    ],
)
def test_every_reason(body, reason):
    assert settle(body, CONFIG) == reason


USIDS = st.sampled_from([OWN, NEXT, LAST, STRANGER, LOCAL])
CONTAINERS = st.lists(USIDS, min_size=1, max_size=6)


@given(CONTAINERS, st.lists(CONTAINERS, max_size=4), st.integers(0, 255), st.data())
def test_nothing_raises_and_the_end_is_an_entry_or_a_reason(usids, segments, hop_limit, data):
    body = packet(*usids, segments=tuple(way(*segment) for segment in segments), hop_limit=hop_limit)
    for at in data.draw(st.lists(st.integers(0, len(body) - 1), max_size=4)):
        body[at] ^= data.draw(st.integers(1, 255))
    body = body[: data.draw(st.integers(40, len(body)))]
    length, before = len(body), body[HOP_LIMIT_OFFSET]
    found = settle(body, WITH_ADJACENCY)
    assert len(body) == length
    assert found in (DROP_REASONS if isinstance(found, str) else (NEXT, LAST, LOCAL))
    assert isinstance(found, str) or body[HOP_LIMIT_OFFSET] == before - 1 > 0
