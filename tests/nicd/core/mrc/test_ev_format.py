"""EV values: how they are written, what travels, and which way they go."""

import pytest

from mrcfabric.errors import RefusedError
from mrcfabric.paths import EV_DRAW_SHIFT, Destination, PathTable, ev_of
from mrcfabric.topology import Topology
from mrcfabric.wire import srh, usid
from nicd.core.mrc import ev_format
from nicd.core.mrc.ev_format import ECMP, SRV6, SRV6_SRH, STEV, EvItem

PLANES = 8
FAR = PathTable(Topology.demo(), 0).towards(4)
NEAR = PathTable(Topology.demo(), 0).towards(1)


def item(text: str, kind: str, number: int = 0) -> EvItem:
    return ev_format.item_of(*ev_format.parse(text, kind), kind, number, range(PLANES))


def address(plane: int, path: int, towards: Destination = FAR) -> bytes:
    return towards.path(ev_of(plane, path, 0)).outer


def text_of(container: bytes) -> str:
    return f"0x{container.hex()}"


@pytest.mark.spec("MRC 1.0", "6")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0xbeef", ECMP),
        ("0xbeef@3", ECMP),
        ("0x00010203@4", STEV),
        ("fdab:0:4000:8001::@1", SRV6),
        ("fdab:0:4000::+fdab:0:8001::@2", SRV6_SRH),
        ("fdab:0:4000::@2", SRV6_SRH),
    ],
)
def test_what_is_shown_can_be_read_again(text: str, kind: str) -> None:
    assert ev_format.shown(item(text, kind), kind) == text


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("fdab::", STEV, "is no EV of format stev"),
        ("0x10000", ECMP, "does not fit into 16 bits"),
        ("-1", STEV, "does not fit"),
        ("fdab::x", SRV6, "is no EV of format srv6; wanted: ADDRESS@PORT"),
        ("fdab::+fdab::@1", SRV6, "is no EV"),
        ("fdab::@9", SRV6, "no egress port 9; this NIC has ports 1 to 8"),
        ("fdab::@x", SRV6, "is no EV"),
        ("fdab::", SRV6, "needs its egress port"),
        ("0x3@3", STEV, "names port 4 by its bits, not 3"),
    ],
)
def test_an_ev_that_cannot_be_is_refused(text: str, kind: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        item(text, kind)


@pytest.mark.spec("MRC 1.0", "6")
def test_a_structured_ev_goes_where_its_bits_say() -> None:
    ev = ev_of(5, 2, 77)
    one = item(f"{ev:#x}", STEV)
    assert (one.ev, one.port) == (ev, 6)
    entry = ev_format.entry_of(one, STEV, FAR)
    assert entry.path == (5, 5, 5, 2, FAR.path(ev).outer)


@pytest.mark.spec("MRC 1.0", "6")
def test_an_ecmp_ev_is_hashed_over_ports_and_paths() -> None:
    ways = set()
    for value in range(400):
        one = item(f"{value}", ECMP)
        entry = ev_format.entry_of(one, ECMP, FAR)
        assert entry.ev == value
        assert entry == ev_format.entry_of(one, ECMP, FAR)
        assert entry.path.outer == address(*entry.path[2:4])
        ways.add(entry.path[2:4])
    assert len(ways) == PLANES * FAR.paths_per_plane
    assert {ev_format.entry_of(item(f"{value}@3", ECMP), ECMP, FAR).path.plane for value in range(50)} == {2}


@pytest.mark.spec("MRC 1.0", "6")
def test_an_address_travels_as_a_number_that_names_plane_and_up_link() -> None:
    one = item(f"{text_of(address(3, 2))}@4", SRV6, 9)
    assert one.ev == ev_of(3, 2, 9)
    entry = ev_format.entry_of(one, SRV6, FAR)
    assert entry.path[2:] == (3, 2, address(3, 2))
    near = item(f"{text_of(address(3, 0, NEAR))}@4", SRV6, 1)
    assert ev_format.entry_of(near, SRV6, NEAR).path.number == 0


def test_a_container_that_leads_elsewhere_is_a_path_of_its_own() -> None:
    wrong_port = item(f"{text_of(address(3, 2))}@1", SRV6, 5)
    entry = ev_format.entry_of(wrong_port, SRV6, FAR)
    assert entry.path[2:4] == (0, FAR.paths_per_plane + 5)
    assert wrong_port.ev >> EV_DRAW_SHIFT == 5


@pytest.mark.spec("RFC 8754", "4.1.1")
def test_container_and_segment_are_one_way() -> None:
    whole = address(3, 2)
    usids = usid.usids(whole)
    first, rest = usid.build(usid.block(whole), usids[:1]), usid.build(usid.block(whole), usids[1:])
    entry = ev_format.entry_of(item(f"0x{first.hex()}{rest.hex()}@4", SRV6_SRH), SRV6_SRH, FAR)
    assert entry.path[2:] == (3, 2, srh.outer_with(first, rest))
    copy = ev_format.entry_of(item(f"0x{whole.hex() * 2}@4", SRV6_SRH), SRV6_SRH, FAR)
    assert copy.path[3:] == (2, srh.outer_with(whole, whole))
    without = ev_format.entry_of(item(f"0x{whole.hex()}{bytes(16).hex()}@4", SRV6_SRH), SRV6_SRH, FAR)
    assert without.path[3:] == (2, whole)
    long = ev_format.entry_of(item(f"0x{whole.hex()}{rest.hex()}@4", SRV6_SRH), SRV6_SRH, FAR)
    assert long.path.number >= FAR.paths_per_plane
