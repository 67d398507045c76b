"""Which paths are denied to whom, what a floor keeps, and how a list is brought to what is wanted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from nicd.core.mrc.deny_list import DenyList, Entry
from orchestrator.mapper.clustermapper import Clustermapper
from orchestrator.mapper.deny_plan import DenyFloor, arguments, changes, plan_denials
from orchestrator.mapper.link_verdicts import LinkMap, LinkVerdict, Verdict
from orchestrator.mapper.t0_view import MapperSettings

SHAPE = Topology(
    name="denied", planes=4, t0_per_plane=2, t1_per_plane=4, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=8
)
FLOOR = DenyFloor.of(SHAPE)


def mapped(dead: tuple[str, ...] = (), **verdicts: Verdict) -> LinkMap:
    """A map in which everything else is good; links with _ for - and __ for ~."""
    named = {name.replace("__", "~").replace("_", "-"): verdict for name, verdict in verdicts.items()}
    cables = Clustermapper(SHAPE, MapperSettings(1, 1, 1)).cables()
    links = tuple(
        LinkVerdict(cable, named.get(cable.name, Verdict.GOOD), loss=0.1 if cable.name in named else 0.0)
        for cable in cables
    )
    assert {link.cable.name for link in links} >= named.keys()
    return LinkMap(0, links, dead)


def test_a_healthy_fabric_denies_nothing() -> None:
    assert plan_denials(SHAPE, mapped(), FLOOR).entries == {}


def test_a_bad_up_link_is_avoided_outwards_and_towards() -> None:
    for verdict in (Verdict.GRAY, Verdict.DOWN):
        plan = plan_denials(SHAPE, mapped(p2_t0_1__p2_t1_3=verdict), FLOOR)
        assert plan.entries == {
            0: {(2, 3, 2), (2, 3, 3)},
            1: {(2, 3, 2), (2, 3, 3)},
            2: {(2, 3, None)},
            3: {(2, 3, None)},
        }
        assert plan.rules == ["p2-t0-1~p2-t1-3"]


def test_a_gray_nic_link_is_avoided_by_its_nic_and_by_its_peers() -> None:
    plan = plan_denials(SHAPE, mapped(h002__p1_t0_1=Verdict.GRAY), FLOOR)
    assert plan.entries == {0: {(1, None, 2)}, 1: {(1, None, 2)}, 2: {(1, None, None)}, 3: {(1, None, 2)}}


def test_a_nic_link_that_is_down_needs_no_entry() -> None:
    assert plan_denials(SHAPE, mapped(h002__p1_t0_1=Verdict.DOWN), FLOOR).entries == {}


def test_suspects_are_not_avoided() -> None:
    suspects = {"h002__p1_t0_1": Verdict.SUSPECT, "p2_t0_1__p2_t1_3": Verdict.UNKNOWN}
    assert plan_denials(SHAPE, mapped(**suspects), FLOOR).entries == {}


def test_a_dead_t1_is_avoided_by_everybody() -> None:
    plan = plan_denials(SHAPE, mapped(dead=("p3-t1-0",)), FLOOR)
    assert plan.entries == {nic: {(3, 0, None)} for nic in range(4)}


def test_a_floor_of_planes_holds_for_every_pair() -> None:
    bad = mapped(
        h000__p0_t0_0=Verdict.GRAY, h001__p1_t0_0=Verdict.GRAY, h002__p2_t0_1=Verdict.GRAY, h002__p3_t0_1=Verdict.DOWN
    )
    plan = plan_denials(SHAPE, bad, FLOOR)
    assert plan.rules == ["h000~p0-t0-0", "h001~p1-t0-0"]
    assert plan.kept == {"h002~p2-t0-1": "would leave 1 planes, fewer than 2"}


def test_a_floor_of_paths_holds_for_every_pair_of_t0s() -> None:
    bad = mapped(
        p0_t0_0__p0_t1_0=Verdict.GRAY, p0_t0_1__p0_t1_1=Verdict.GRAY, p0_t0_0__p0_t1_2=Verdict.GRAY,
        p1_t0_0__p1_t1_2=Verdict.GRAY,
    )  # fmt: skip
    plan = plan_denials(SHAPE, bad, FLOOR)
    assert plan.rules == ["p0-t0-0~p0-t1-0", "p0-t0-0~p0-t1-2", "p1-t0-0~p1-t1-2"]
    assert plan.kept == {"p0-t0-1~p0-t1-1": "would leave 1 paths in plane 0, fewer than 2"}


def test_the_plan_as_data() -> None:
    plan = plan_denials(SHAPE, mapped(h002__p1_t0_1=Verdict.GRAY), FLOOR)
    assert plan.record() == {
        "avoided": ["h002~p1-t0-1"], "kept": {}, "entries": {"0": 1, "1": 1, "2": 1, "3": 1},
    }  # fmt: skip


def test_a_floor_of_nothing_is_refused() -> None:
    for floor in ((0, 1), (1, 0)):
        with pytest.raises(ConfigError, match="at least 1"):
            DenyFloor(*floor)


def test_arguments_leave_out_what_stands_for_all() -> None:
    assert arguments((2, None, 7)) == {"plane": 2, "peer_index": 7}
    assert arguments((2, 0, None)) == {"plane": 2, "path": 0}


ENTRIES = st.sets(
    st.tuples(st.integers(0, 1), st.one_of(st.none(), st.integers(0, 2)), st.one_of(st.none(), st.integers(0, 2)))
)


@given(ENTRIES, ENTRIES, ENTRIES)
def test_the_changes_bring_a_list_to_what_is_wanted(wanted: set[Entry], mine: set[Entry], foreign: set[Entry]) -> None:
    held = DenyList(1000)
    for entry in mine | foreign:
        held.deny(entry)
    for op, entry in changes(wanted, list(held), mine):
        if op == "allow_paths":
            assert held.allow(entry)
        else:
            held.deny(entry)
    assert set(held) == wanted | (foreign - mine)
