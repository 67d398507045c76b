"""What the path policies decide, and that a QP abides by it."""

from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.impairment import Impairment
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from nicd.core.ev_state import EvState, EvTrigger, Rule, step
from nicd.core.events import Completion
from nicd.core.mrc.path_policy import POLICIES, MrcPolicy, leaves_lost
from nicd.core.settings import NicSettings
from tests.nicd.core.bench import Bench
from tests.nicd.core.fabric import Fabric

CONTROLLERS = (EvTrigger.DENY, EvTrigger.ALLOW)
SIZE = 256 * 1024


def fabric(policy: str, **nic: Any) -> Fabric:
    return Fabric(
        Topology(
            name="policies", planes=2, t0_per_plane=2, t1_per_plane=4, nics_per_t0=1, evs_per_qp=16,
            reserve_evs_per_qp=8, nic={"path_policy": policy, **nic},
        )
    )  # fmt: skip


def used(fabric: Fabric, name: str = "h000", qpn: int = 100) -> set[tuple[int, int]]:
    """(plane, path) of the active EVs of a QP."""
    return {(row["plane"], row["path"]) for row in fabric.core(name).ev_table(qpn) if row["active"]}  # type: ignore[misc]


def test_the_knob_takes_the_names_of_policies() -> None:
    assert {NicSettings(path_policy=name).path_policy for name in POLICIES} == set(POLICIES)
    with pytest.raises(ConfigError, match="one of mrc, oblivious, single"):
        NicSettings(path_policy="flowlet")


class Forgetful(MrcPolicy):
    """One of somebody's own: congestion is no reason to leave an EV out."""

    def judge(self, state: EvState, trigger: EvTrigger) -> Rule:
        return Rule(state, "own") if trigger == EvTrigger.ECN else super().judge(state, trigger)


def test_another_policy_can_be_plugged_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, "forgetful", Forgetful())
    bench = Bench(path_policy="forgetful")
    profile = bench.link.profile
    profile.feedback(1, 1, EvTrigger.GAP, 1)
    profile.feedback(1, 0, EvTrigger.ECN)
    assert profile.states[:2] == [EvState.GOOD, EvState.ASSUMED_BAD]


@pytest.mark.parametrize("trigger", list(EvTrigger))
@pytest.mark.parametrize("state", list(EvState))
def test_mrc_follows_the_table_and_the_others_the_controller_alone(state: EvState, trigger: EvTrigger) -> None:
    assert POLICIES["mrc"].judge(state, trigger) == step(state, trigger)
    for name in ("oblivious", "single"):
        follows = step(state, trigger).target if trigger in CONTROLLERS else state
        assert POLICIES[name].judge(state, trigger).target == follows


def test_which_evs_are_kept() -> None:
    active, reserve = list(range(8)), [8, 9]
    assert POLICIES["mrc"].keep(active, reserve, Rng("keep")) == (active, reserve)
    assert POLICIES["oblivious"].keep(active, reserve, Rng("keep")) == (active, [])
    picks = {tuple(POLICIES["single"].keep(active, reserve, Rng("keep", seed))[0]) for seed in range(100)}
    assert picks == {(ev,) for ev in active}


def test_a_single_path_stays_the_same_through_losses() -> None:
    bench = Bench(path_policy="single")
    (index,) = (index for deck in bench.link.profile.decks for index in deck.cards)
    plane = bench.link.profile.plane[index]
    assert bench.link.planes == 1 << plane
    bench.post(0, 4096)
    (first,) = bench.pump(1_000)
    for trigger in (EvTrigger.GAP, EvTrigger.TIMEOUT, EvTrigger.TRIM, EvTrigger.ECN, EvTrigger.ALWAYS_SKIP):
        bench.link.profile.feedback(2_000, index, trigger, 1_000)
    assert bench.link.profile.pick_other(0, plane, index) == index
    assert bench.link.profile.states == [EvState.GOOD]
    assert first[6] == bench.link.profile.evs[index]


def test_acknowledgements_of_a_single_path_keep_one_too() -> None:
    bench = Bench(path_policy="single")
    assert len({bench.reply_port() for _ in range(10)}) == 1
    before = list(bench.peer.reverse)
    bench.peer.data_arrived(0)
    bench.peer.confirm(1, 0, 0, 99, bytes(16))
    bench.fire(1_000_000)
    assert bench.peer.reverse == before
    assert bench.sent(1_000_000) == []


def test_oblivious_acknowledgements_go_everywhere() -> None:
    bench = Bench(path_policy="oblivious")
    ways = set()
    for _ in range(100):
        port = bench.reply_port()
        ways.add((port, bench.peer.destination.path(bench.peer.reverse[port][1]).number))
    assert ways == {(plane, path) for plane in range(2) for path in range(2)}


@pytest.mark.parametrize("policy", list(POLICIES))
def test_bytes_arrive_whatever_the_policy(policy: str) -> None:
    whole = fabric(policy)
    whole.permutation(1, SIZE)
    whole.write_all(SIZE, 4)
    assert whole.finish(100_000_000)
    whole.verify(SIZE)
    assert len(used(whole)) == (1 if policy == "single" else 8)


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_a_dead_path_is_learnt_by_mrc_alone() -> None:
    lost = {}
    for policy in ("mrc", "oblivious"):
        whole = fabric(policy)
        whole.permutation(1, SIZE)
        # The up-link of NIC 0's T0 towards the first T1 of plane 0.
        whole.impair("p0-t0-0", 1, Impairment(up=False), 1)
        whole.write_all(SIZE, 4)
        assert whole.finish(1_000_000_000)
        whole.verify(SIZE)
        states = {row["state"] for row in whole.core("h000").ev_table(100)}
        assert states == ({"GOOD", "ASSUMED_BAD"} if policy == "mrc" else {"GOOD"})
        lost[policy] = whole.core("h000").counters()["packets_lost"]
    assert lost["oblivious"] > lost["mrc"]


def test_a_dead_single_path_is_never_left() -> None:
    whole = fabric("single", retry_linear=1, retry_exponential=2)
    whole.permutation(1, SIZE)
    for port in range(5):
        whole.impair("p0-t0-0", port, Impairment(up=False), 1)
        whole.impair("p1-t0-0", port, Impairment(up=False), 1)
    whole.write_all(SIZE, 1)
    assert whole.finish(1_000_000_000)
    statuses = {event.status for event in whole.found(Completion) if event.qpn == 100}
    assert statuses == {"retry_exceeded"}
    assert {row["state"] for row in whole.core("h000").ev_table(100)} == {"GOOD"}


def test_only_that_of_mrc_leaves_a_path_that_has_lost_a_packet() -> None:
    assert {name for name in POLICIES if leaves_lost(name)} == {"mrc"}
