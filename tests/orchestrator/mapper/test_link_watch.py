"""The state between two looks: who must be told to probe, and which lists must change."""

from dataclasses import replace

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.mapper.deny_plan import DenyPlan
from orchestrator.mapper.fault_direction import Direction
from orchestrator.mapper.link_watch import LinkWatch, Order, WatchSettings, entries_of, rounds_to_find
from orchestrator.mapper.loss_statistics import probes_to_find
from orchestrator.mapper.mapping import check_settings
from tests.support.probed import ProbedFabric

SHAPE = Topology(
    name="watched", planes=2, t0_per_plane=2, t1_per_plane=3, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=8
)
LINK = "p0-t0-1~p0-t1-2"


def watched(deny: bool) -> tuple[LinkWatch, ProbedFabric]:
    return LinkWatch(SHAPE, WatchSettings.of(SHAPE, 1_000, deny=deny)), ProbedFabric(SHAPE)


def test_nics_that_do_not_probe_are_told_to() -> None:
    watch, fabric = watched(False)
    tables = fabric.tables()
    assert watch.asleep(tables) == [Order(nic, "probe_links", {"period_ns": 1_000}) for nic in range(4)]
    for table in tables.values():
        assert table is not None
        table["period_ns"] = 1_000
    tables[2] = None
    assert watch.asleep(tables) == []


def test_a_watch_counts_what_it_accuses_once() -> None:
    watch, fabric = watched(False)
    fabric.losses[LINK] = 1.0
    for look in range(12):
        watch.take(look * 8_000, fabric.tables())
        fabric.rounds(8)
    assert watch.latest is not None
    assert watch.latest.bad == [LINK]
    assert (watch.looks, watch.accusations) == (12, 1)
    assert watch.concerned() == [], "it was not asked to deny"


def test_lists_follow_the_map_and_its_end() -> None:
    watch, fabric = watched(True)
    fabric.losses[LINK] = 1.0
    for look in range(12):
        watch.take(look * 8_000, fabric.tables())
        fabric.rounds(8)
    assert watch.concerned() == [0, 1, 2, 3]
    orders = watch.orders({2: [], 3: [(0, 2, None)]})
    assert orders == [Order(2, "deny_paths", {"plane": 0, "path": 2})]
    assert orders[0].node == "h002"
    assert watch.lift_all() == [Order(nic, "probe_links", {"period_ns": 0}) for nic in range(4)]
    assert watch.plan == DenyPlan()
    assert watch.orders({2: [(0, 2, None)]}) == [Order(2, "allow_paths", {"plane": 0, "path": 2})]
    assert watch.concerned() == [3]


def test_answers_about_directions_leave_the_verdicts_alone_however_late_they_come() -> None:
    watch, fabric = LinkWatch(SHAPE, check_settings(SHAPE, rounds=20, period_ns=1_000)), ProbedFabric(SHAPE)
    fabric.losses[LINK] = 1.0
    watch.take(0, fabric.tables())
    fabric.rounds(20)
    found = watch.take(20_000, fabric.tables())
    assert [(order.nic, order.op) for order in watch.questions()] == [(2, "probe_loop")] * 2
    assert watch.questions() == [], "asked once"
    heard = watch.hear(fabric.tables())
    assert heard.bad == found.bad == [LINK]
    assert [replace(link, direction="") for link in heard.links] == list(found.links)
    assert {link.cable.name: link.direction for link in heard.links if link.direction} == {LINK: Direction.OPEN}
    assert watch.questions() == [], "and answered, though by silence"


def test_nics_that_probe_by_themselves_are_left_to_it() -> None:
    steady = Topology(**{**SHAPE.to_dict(), "nic": {"self_probe_period_ns": 7_000}})
    watch = LinkWatch(steady, WatchSettings.of(steady))
    tables = ProbedFabric(steady).tables()
    for table in tables.values():
        assert table is not None
        table["period_ns"] = 7_000
    assert watch.asleep(tables) == watch.lift_all() == []
    hasty = LinkWatch(steady, WatchSettings.of(steady, 5_000))
    assert hasty.lift_all()[0] == Order(0, "probe_links", {"period_ns": 7_000})


def test_entries_are_read_from_a_nics_answer() -> None:
    assert entries_of([{"plane": 1, "path": None, "peer_index": 3}]) == [(1, None, 3)]


def test_rounds_follow_from_the_loss_and_the_number_of_witnesses() -> None:
    assert rounds_to_find(SHAPE, 0.01) == -(-probes_to_find(0.01) // 2)
    lone = Topology(**{**SHAPE.to_dict(), "nics_per_t0": 1})
    assert rounds_to_find(lone, 0.01) == probes_to_find(0.01)


def test_a_look_takes_time() -> None:
    settings = WatchSettings.of(SHAPE)
    with pytest.raises(ConfigError, match="look_ns"):
        WatchSettings(settings.period_ns, 0, settings.mapper, settings.floor)


def test_nics_without_link_probes_are_not_watched() -> None:
    other = replace(Topology.demo(), nic={"transport": "rc"}, switch={"forwarding": "ecmp"})
    with pytest.raises(ConfigError, match="only MRC NICs probe links"):
        WatchSettings.of(other)
    with pytest.raises(ConfigError, match="only MRC NICs probe links"):
        check_settings(other)
