"""What stands in an EV profile: lists, rules and draws, and how a QP's EVs come of them."""

from collections import Counter
from typing import Any

import pytest

from mrcfabric.errors import RefusedError
from mrcfabric.naming import USID_TIER_DESTINATION, USID_TIER_T0, USID_TIER_T1, usid_of
from mrcfabric.paths import PathTable, ev_of
from mrcfabric.rng import Rng
from nicd.compose import nic_config
from nicd.core.mrc.ev_universe import Universe
from tests.nicd.core.bench import topology

BLOCK = topology().usid_block
TO = PathTable(topology(), 0).towards(2)


def universe(**wanted: Any) -> Universe:
    made = Universe(nic_config(topology(), "h000"), 1)
    made.configure(**wanted)
    return made


def rule(plane: int) -> str:
    """The ways from h000 to h002 in a plane: T0, any of two T1s, T0, down-link."""
    t0, far = usid_of(USID_TIER_T0, plane, 0), usid_of(USID_TIER_T0, plane, 1)
    t1, down = usid_of(USID_TIER_T1, plane, 0), usid_of(USID_TIER_DESTINATION, plane, 0)
    return f"{plane + 1}/32:{BLOCK:#x} 16:{t0:#x} 16:{t1:#x}:0x7:0:1 16:{far:#x} 16:{down:#x}"


def test_automatic_is_what_a_qp_always_had() -> None:
    evs = universe().draw(TO, Rng("draw"))
    active, reserve = TO.draw_evs(Rng("draw"), 8, 4)
    assert [entry.ev for entry in evs.active] == active
    assert [entry.ev for entry in evs.reserve] == reserve
    assert evs.min_active == 2


def test_automatic_with_figures_of_its_own() -> None:
    made = universe(count=12, reserve=4, min_active=3)
    made.check_complete()
    evs = made.draw(TO, Rng("draw"))
    assert (len(evs.active), len(evs.reserve), evs.min_active) == (8, 4, 3)
    odd = universe(count=13, reserve=4)
    with pytest.raises(RefusedError, match="same number in each of 2 planes"):
        odd.check_complete()


@pytest.mark.spec("MRC 1.0", "6")
def test_a_list_is_taken_in_order_and_its_tail_held_back_in_every_plane() -> None:
    evs = [ev_of(plane, path, draw) for plane in range(2) for draw in range(3) for path in range(2)]
    made = universe(mode="explicit", evs=[f"{ev:#x}" for ev in evs], reserve=4)
    made.check_complete()
    drawn = made.draw(TO, Rng("any"))
    assert [entry.ev for entry in drawn.active] == evs[:4] + evs[6:10]
    assert [entry.ev for entry in drawn.reserve] == evs[4:6] + evs[10:]


@pytest.mark.spec("MRC 1.0", "6")
def test_generated_addresses_are_the_ways_of_the_fabric() -> None:
    made = universe(mode="generated", kind="srv6", rules=[rule(0), rule(1)], count=8, reserve=0)
    made.check_complete()
    drawn = made.draw(TO, Rng("any"))
    assert Counter(entry.path[2:4] for entry in drawn.active) == {
        (plane, path): 1 for plane in range(2) for path in range(2)
    }
    for entry in drawn.active:
        assert entry.path == TO.path(entry.ev)


@pytest.mark.spec("MRC 1.0", "6")
def test_generated_structured_evs_stay_within_their_bounds() -> None:
    made = universe(mode="generated", rules=["18:0:0x3ffff 11:0:0x1:0:1 3:0:0x1"], count=64, reserve=16)
    made.check_complete()
    planes = Counter(entry.path.plane for entry in made.draw(TO, Rng("any")).active)
    assert sum(planes.values()) == 48
    assert {item.value >> 3 & 0x7FF for item in made.items} == {0, 1}


def test_two_profiles_of_the_same_rules_differ() -> None:
    made = []
    for number in (1, 2):
        one = Universe(nic_config(topology(), "h000"), number)
        one.configure(mode="generated", fields="32", rules=["32:0:0xffffffff"], count=16)
        one.check_complete()
        made.append({item.ev for item in one.items})
    assert made[0] != made[1]


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"mode": "random"}, "no mode of an EV profile; there are auto, explicit, generated"),
        ({"kind": "mpls"}, "no format of an EV profile; there are ecmp, stev, srv6, srv6_srh"),
        ({"evs": ["0x1"]}, "takes no EVs; set mode explicit first"),
        ({"rules": ["16:0"]}, "takes no rules; set mode generated first"),
        ({"mode": "explicit", "evs": ["1", "2", "1"]}, "is in the profile already"),
        ({"mode": "explicit", "kind": "ecmp", "evs": ["1@1", "1@2"]}, "cannot be told from one that is"),
        ({"mode": "generated", "rules": ["3/16:0"]}, "no egress port 3"),
        ({"mode": "generated", "kind": "srv6", "fields": "32,x"}, "are no widths"),
        ({"mode": "generated", "kind": "srv6", "fields": "128,1"}, "do not fit into the 128 of srv6"),
        ({"mode": "generated", "kind": "srv6", "fields": "16", "rules": ["1/32:0"]}, "the format gives it 16"),
        ({"count": 5000}, "5000 EVs; possible are 0 to 4096"),
        ({"count": 8, "reserve": 8}, "leave none active"),
        ({"count": 8, "reserve": 4, "min_active": 5}, "4 EVs are active at most"),
    ],
)
def test_a_mistake_changes_nothing(wanted: dict[str, Any], reason: str) -> None:
    made = universe(mode="explicit", evs=["0x7"])
    made.configure(mode="auto")
    before = made.record()
    with pytest.raises(RefusedError, match=reason):
        made.configure(**wanted)
    assert made.record() == before


@pytest.mark.parametrize(("wanted", "reason"), [({"mode": "explicit"}, "no EVs"), ({"mode": "generated"}, "no rules")])
def test_an_empty_one_is_not_complete(wanted: dict[str, Any], reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        universe(**wanted).check_complete()


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_an_ev_is_replaced_in_its_plane_or_not_at_all() -> None:
    made = universe(mode="explicit", evs=["0x0", "0x1", "0x8"])
    with pytest.raises(RefusedError, match="leaves by port 2, the one it would replace by port 1"):
        made.replace(made.items[0], "0x9")
    with pytest.raises(RefusedError, match="already"):
        made.replace(made.items[0], "0x8")
    made.replace(made.items[0], "0x10")
    assert [item.ev for item in made.items] == [0x10, 1, 8]
    made.replace(made.items[0], "0x0")
