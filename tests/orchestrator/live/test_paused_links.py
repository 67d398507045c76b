"""Pauses of links from the glances of both ends: by figures, and of a fabric in virtual time."""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.topology import Topology
from orchestrator.faults.fault import Fault, once
from orchestrator.live.live_view import Sight
from orchestrator.live.pause_tree import PauseView, sender
from orchestrator.live.snapshot import Snapshot
from tests.orchestrator.live.said import SMALL, all_say, look, nic, switch
from tests.support.hosted import Hosted, program
from tests.support.sim_looks import SimLooks

US = 1000
ROCE: dict[str, Any] = {"transport": "rc"}
PFC: dict[str, Any] = {
    "forwarding": "ecmp", "lossless": "pfc", "ecn": False, "pfc_threshold": "static", "pfc_xoff_bytes": 40_000,
}  # fmt: skip


def paused_nic(now_ns: int, pauses: Any = (), asks: Any = ()) -> Any:
    head, ports, rest = nic(now_ns)
    return [head, ports, [*rest, list(pauses), list(asks)]]


def paused_switch(now_ns: int, name: str, pauses: Any = (), asks: Any = ()) -> Any:
    head, ports, rest = switch(now_ns, [[0] * 5 for _ in SMALL.ports(name)])
    return [head, ports, [*rest, list(pauses), list(asks)]]


def pauses_of(first: dict[str, Any], second: dict[str, Any], **said: Any) -> tuple[PauseView, ...]:
    sight = Sight(SMALL)
    sight.see(look(10 * US, all_say(10 * US, **first)), ())
    return sight.see(look(20 * US, all_say(20 * US, **second), **said), ()).pauses


def test_the_sender_says_for_how_long_and_who_pauses_it_says_why() -> None:
    found = pauses_of(
        {
            "h000": paused_nic(10 * US, [[0, 3, 1_000, 5, 0]]),
            "p0_t0_0": paused_switch(10 * US, "p0-t0-0", asks=[[0, 3, 5, 0, "queue", [[1, 2, 0]]]]),
        },
        {
            "h000": paused_nic(20 * US, [[0, 3, 7_000, 9, 1]]),
            "p0_t0_0": paused_switch(20 * US, "p0-t0-0", asks=[[0, 3, 9, 1, "queue", [[1, 4, 900]]]]),
        },
    )
    assert found == (PauseView("h000>p0-t0-0", 3, 0.6, 4, True, "queue", ("p0-t0-0>p0-t1-0",)),)


def test_a_pause_of_before_is_no_pause_of_now() -> None:
    row = [[0, 3, 7_000, 9, 0]]
    assert pauses_of({"h000": paused_nic(10 * US, row)}, {"h000": paused_nic(20 * US, row)}) == ()


def test_one_pause_that_lasts_has_the_queue_that_is_full_now_for_a_reason() -> None:
    asks = [[0, 3, 5, 1, "queue", [[0, 9, 10], [1, 1, 900]]]]
    (found,) = pauses_of(
        {
            "h000": paused_nic(10 * US, [[0, 3, 0, 5, 1]]),
            "p0_t0_0": paused_switch(10 * US, "p0-t0-0", asks=asks),
        },
        {
            "h000": paused_nic(20 * US, [[0, 3, 10_000, 5, 1]]),
            "p0_t0_0": paused_switch(20 * US, "p0-t0-0", asks=asks),
        },
    )
    assert (found.share, found.because) == (1.0, ("p0-t0-0>p0-t1-0",))


@pytest.mark.parametrize("cause", ["slow_receiver", "storm"])
def test_a_nic_says_why_it_asks(cause: str) -> None:
    (found,) = pauses_of(
        {},
        {
            "p0_t0_0": paused_switch(20 * US, "p0-t0-0", [[0, 3, 2_000, 1, 0]]),
            "h000": paused_nic(20 * US, asks=[[0, 3, 1, 0, cause]]),
        },
    )
    assert (found.link, found.cause, found.because) == ("p0-t0-0>h000", cause, ())


def test_a_reason_that_nobody_tells_is_unknown() -> None:
    paused = {"h000": paused_nic(20 * US, [[0, 3, 2_000, 1, 1]])}
    assert [one.cause for one in pauses_of({}, paused)] == ["unknown"]
    assert [one.cause for one in pauses_of({}, {**paused, "p0_t0_0": None}, down=("p0-t0-0",))] == ["unknown"]
    assert pauses_of({}, {**paused, "h000": None}, down=("h000",)) == ()


def test_a_daemon_that_waits_for_the_cpu_is_shown_as_it_was() -> None:
    sight, busy = Sight(SMALL), paused_nic(20 * US, [[0, 3, 5_000, 4, 1]])
    sight.see(look(10 * US, all_say(10 * US)), ())
    before = sight.see(look(20 * US, all_say(20 * US, h000=busy)), ())
    shot = sight.see(look(30 * US, all_say(30 * US, h000=busy), late=("h000",)), ())
    assert before.pauses == shot.pauses != ()
    assert shot.nics["h000"].paused == (0.5, 0.0)


def incast(senders: int, fault: Fault | None = None, **switch: Any) -> Snapshot:
    """`senders` NICs below another T0 send to one; 300 us of it, seen after 100 us."""
    topology = Topology(
        planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=senders, evs_per_qp=8, reserve_evs_per_qp=0,
        nic=ROCE, switch={**PFC, **switch},
    )  # fmt: skip
    ranks = (0, *range(senders, 2 * senders))
    work = program("incast", len(ranks), {"message_bytes": 1 << 20, "for_ns": 400 * US, "window": 1})
    hosted = Hosted(replace(work, ranks=ranks), topology=topology)
    if fault is not None:
        hosted.fabric.inject(fault)
    looks = SimLooks(hosted.fabric)
    looks.look(100 * US)
    found = looks.look(400 * US)
    assert not hosted.refused
    return found


@pytest.mark.parametrize("xoff", [20_000, 80_000])
@pytest.mark.parametrize("senders", [3, 6])
def test_an_incast_has_one_tree_from_the_full_port_to_every_sender(senders: int, xoff: int) -> None:
    shot = incast(senders, pfc_xoff_bytes=xoff)
    (tree,) = shot.pause_trees
    assert (tree.cls, tree.cause, tree.root, tree.link) == (3, "congested_port", "p0-t0-0", "p0-t0-0>h000")
    assert tree.leaves == tuple(f"h{number:03}" for number in range(senders, 2 * senders))
    assert max(step.depth for step in tree.steps) == 3


def test_a_slow_receiver_and_a_storm_are_roots() -> None:
    slow = once("slow_receiver", "h000", at_ns=20 * US, rate_bps=5_000_000_000, buffer_bytes=20_000)
    storm = once("pause_storm", "h000:0", at_ns=20 * US)
    for fault, cause in ((slow, "slow_receiver"), (storm, "storm")):
        shot = incast(3, fault)
        (tree,) = shot.pause_trees
        assert (tree.cause, tree.root, tree.leaves) == (cause, "h000", ("h003", "h004", "h005"))
        assert (tree.steps[0].link, tree.steps[0].depth) == ("p0-t0-0>h000", 1)
        assert min(shot.nics[sender(step.link)].paused[0] for step in tree.steps if step.link[0] == "h") > 0.3


IB: dict[str, Any] = {"transport": "rc", "rc_path": "lid", "cc": "none", "lid_sl": 1}


def credited_incast(senders: int, local: bool = True, **switch: Any) -> Snapshot:
    """The same over InfiniBand, on VL 1, `local`: with senders below the receiver's own T0 too."""
    topology = Topology(
        planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=senders, evs_per_qp=8, reserve_evs_per_qp=0,
        nic=IB, switch={"forwarding": "lft", "lossless": "credits", **switch},
    )  # fmt: skip
    ranks = (0, *range(1 if local else senders, 2 * senders))
    work = program("incast", len(ranks), {"message_bytes": 1 << 20, "for_ns": 400 * US, "window": 1})
    hosted = Hosted(replace(work, ranks=ranks), topology=topology)
    looks = SimLooks(hosted.fabric)
    looks.look(100 * US)
    found = looks.look(400 * US)
    assert not hosted.refused
    return found


@pytest.mark.parametrize("blocks", [520, 1_024])
@pytest.mark.parametrize("senders", [3, 6])
def test_who_waits_for_whose_credit_is_a_tree_too(senders: int, blocks: int) -> None:
    shot = credited_incast(senders, vl_blocks=blocks)
    tree = shot.pause_trees[0]
    assert (tree.cls, tree.cause, tree.root, tree.link) == (1, "congested_port", "p0-t0-0", "p0-t0-0>h000")
    assert tree.leaves == tuple(f"h{number:03}" for number in range(1, 2 * senders))
    assert max(step.depth for step in tree.steps) == 3
    assert all(pause.frames > 0 for pause in shot.pauses)
    assert min(shot.nics[leaf].paused[0] for leaf in tree.leaves) > 0.3


def test_flows_to_one_lid_meet_at_the_up_link_of_the_table() -> None:
    """Whose switch is then the root, though they all go to one NIC."""
    shot = credited_incast(3, local=False)
    (tree,) = shot.pause_trees
    assert (tree.cause, tree.link, tree.leaves) == ("congested_port", "p0-t0-1>p0-t1-0", ("h003", "h004", "h005"))


def test_nobody_waits_for_credit_without_need() -> None:
    shot = credited_incast(1, local=False)
    assert (shot.pauses, shot.pause_trees) == ((), ())


def test_mrc_over_the_same_switches_has_no_tree_of_its_own_accord() -> None:
    shot = incast(3, lossless="off")
    assert (shot.pauses, shot.pause_trees) == ((), ())
    assert shot.nics["h003"].paused == (0.0,)
