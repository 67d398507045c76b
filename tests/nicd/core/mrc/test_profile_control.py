"""What a controller does with EV profiles: ladders of commands and what follows for QPs."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.paths import ev_of
from nicd.core.commands import ConnectQp, CreateQp, DestroyQp
from nicd.core.commands_paths import (
    AllowProfileEv,
    CreateEvProfile,
    DenyPaths,
    DenyProfileEv,
    DestroyEvProfile,
    ModifyEvProfile,
    ReplaceEv,
)
from nicd.core.ev_state import EvState, EvTrigger
from nicd.core.events import CommandDone
from nicd.core.mrc.qp import Link
from tests.nicd.core.bench import Bench

EVS = [ev_of(plane, path, draw) for plane in range(2) for draw in range(2) for path in range(2)]


def refused(bench: Bench, command: Any, now: int = 0) -> str | None:
    """Why a command was refused, None when it was carried out."""
    bench.board.events.clear()
    bench.executor.execute(now, command)
    (done,) = bench.told(CommandDone)
    assert isinstance(done, CommandDone)
    return done.error


class Controlled(Bench):
    """A bench with profile 1 online: two EVs per path, two paths per plane, two planes."""

    def __init__(self, **nic: Any) -> None:
        super().__init__(**nic)
        self.ask(CreateEvProfile(1, 1))
        texts = [f"{ev:#010x}" for ev in EVS]
        self.ask(ModifyEvProfile(2, 1, mode="explicit", evs=texts, reserve=2, min_active=1, state="offline"))
        self.ask(ModifyEvProfile(3, 1, state="online"))

    def ask(self, command: Any, now: int = 0) -> dict[str, Any]:
        error = self.refused(command, now)
        assert error is None, error
        (done,) = self.told(CommandDone)
        result: dict[str, Any] = done.result
        return result

    def refused(self, command: Any, now: int = 0) -> str | None:
        return refused(self, command, now)

    def qp(self, qpn: int, peer: int = 2) -> Link:
        """A connected QP of profile 1."""
        self.ask(CreateQp(1, qpn, 1))
        self.ask(ConnectQp(1, qpn, peer, 200, 0, 0))
        link = self.table.find(qpn).link
        assert link is not None
        return link

    def state(self, ev: int) -> str:
        (row,) = [row for row in self.transport.ev_profile(1) if row["ev"] == ev]
        return str(row["state"])


@pytest.mark.spec("MRC 1.0", "6")
def test_a_qp_has_the_evs_of_its_profile() -> None:
    bench = Controlled()
    profile = bench.qp(101).profile
    assert sorted(profile.evs) == sorted(EVS)
    assert [len(deck.cards) for deck in profile.decks] == [3, 3]
    assert {profile.evs[profile.decks[1].pick(0)] for _ in range(20)} == set(EVS[4:7])


@pytest.mark.spec("MRC 1.0", "6")
def test_a_profile_in_use_cannot_go_away() -> None:
    bench = Controlled()
    bench.qp(101)
    assert "cannot go offline: 1 QPs" in str(bench.refused(ModifyEvProfile(1, 1, state="offline")))
    assert "cannot go away: 1 QPs" in str(bench.refused(DestroyEvProfile(1, 1)))
    bench.ask(DestroyQp(1, 101))
    assert bench.ask(ModifyEvProfile(1, 1, state="offline"))["users"] == 0
    bench.ask(DestroyEvProfile(1, 1))
    assert "no EV profile 1" in str(bench.refused(CreateQp(1, 101, 1)))


def test_a_qp_needs_an_online_profile() -> None:
    bench = Controlled()
    bench.ask(ModifyEvProfile(1, 1, state="offline"))
    assert "EV profile 1 is offline, not online" in str(bench.refused(CreateQp(1, 101, 1)))
    assert 101 not in bench.table.qps


def test_an_online_profile_keeps_what_it_has() -> None:
    bench = Controlled()
    assert "only its events may be changed" in str(bench.refused(ModifyEvProfile(1, 1, evs=["0x77"])))
    assert bench.ask(ModifyEvProfile(1, 1, good_events=False))["good_events"] is False
    assert "is no state" in str(bench.refused(ModifyEvProfile(1, 1, state="gone")))
    assert "built in" in str(bench.refused(ModifyEvProfile(1, 0, count=2)))


def test_a_step_that_cannot_be_made_changes_nothing() -> None:
    bench = Controlled()
    bench.ask(CreateEvProfile(1, 2))
    assert "from init to online" in str(bench.refused(ModifyEvProfile(1, 2, mode="explicit", state="online")))
    assert bench.ask(ModifyEvProfile(1, 2, state="offline"))["mode"] == "auto"


@pytest.mark.spec("MRC 1.0", "11.2")
def test_an_ev_of_a_profile_is_barred_for_all_its_qps() -> None:
    bench = Controlled()
    first = bench.qp(101)
    assert bench.state(EVS[0]) == "GOOD"
    bench.ask(DenyProfileEv(1, 1, EVS[0]))
    second = bench.qp(102, 3)
    for link in (first, second):
        assert link.profile.states[link.profile.index_of[EVS[0]]] == EvState.DENIED
    assert bench.state(EVS[0]) == "DENIED"
    bench.ask(AllowProfileEv(1, 1, EVS[0]))
    assert bench.state(EVS[0]) == "GOOD"
    assert "not in EV profile 1" in str(bench.refused(DenyProfileEv(1, 1, 0x7777)))
    assert "name the QP instead" in str(bench.refused(DenyProfileEv(1, 0, EVS[0])))


@pytest.mark.parametrize("evs", [["fdab::3@1", "fdab::4@2"], ["fdab::2@1", "fdab::1@2"]])
def test_a_bar_ends_with_its_ev(evs: list[str]) -> None:
    bench = Controlled()
    bench.ask(CreateEvProfile(1, 2))
    bench.ask(ModifyEvProfile(1, 2, mode="explicit", format="srv6", evs=["fdab::1@1", "fdab::2@2"], reserve=0))
    bench.ask(ModifyEvProfile(1, 2, state="offline"))
    (first, _) = bench.transport.ev_profile(2)
    bench.ask(DenyProfileEv(1, 2, int(first["ev"])))
    assert bench.ask(ModifyEvProfile(1, 2, reserve=1))["denied"] == 1
    # Other EVs, numbered from the start again.
    bench.ask(ModifyEvProfile(1, 2, mode="explicit", evs=evs))
    assert bench.transport.ev_profile(2)[0]["ev"] == first["ev"]
    assert {row["state"] for row in bench.transport.ev_profile(2)} == {"UNKNOWN"}
    assert bench.ask(ModifyEvProfile(1, 2, reserve=0))["denied"] == 0


def test_what_a_controller_sees_of_a_profile() -> None:
    bench = Controlled()
    assert bench.state(EVS[0]) == "UNKNOWN"
    link = bench.qp(101)
    link.profile.feedback(1, link.profile.index_of[EVS[0]], EvTrigger.ECN)
    assert bench.state(EVS[0]) == "GOOD", "SKIP is the NIC's own affair"
    link.profile.feedback(1, link.profile.index_of[EVS[0]], EvTrigger.GAP, 1)
    assert bench.state(EVS[0]) == "ASSUMED_BAD"
    assert [row["value"] for row in bench.transport.ev_profile(1)][:2] == ["0x00000000@1", "0x00000008@1"]


@pytest.mark.spec("MRC 1.0", "6")
def test_events_tell_what_failed_and_came_back_and_nothing_else() -> None:
    bench = Controlled()
    link = bench.qp(101)
    index = link.profile.index_of[EVS[0]]
    take = bench.board.ev_events.take
    for now, trigger in enumerate((EvTrigger.ECN, EvTrigger.GAP, EvTrigger.PROBED_MARKED, EvTrigger.DENY), 1):
        link.profile.feedback(now, index, trigger, now)
    assert [(event["at_ns"], event["state"], event["port"], event["profile"]) for event in take(9)] == [
        (2, "ASSUMED_BAD", 1, 1),
        (3, "GOOD", 1, 1),
    ]
    bench.ask(ModifyEvProfile(1, 1, bad_events=False))
    link.profile.feedback(5, link.profile.index_of[EVS[1]], EvTrigger.GAP, 5)
    assert take(9) == []


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_a_replaced_ev_takes_over_in_every_qp() -> None:
    bench = Controlled()
    link = bench.qp(101)
    old, new = EVS[0], ev_of(0, 1, 99)
    index = link.profile.index_of[old]
    link.profile.feedback(5, index, EvTrigger.GAP, 5)
    assert link.profile.bad_on[0] == {0: 1}
    assert bench.ask(ReplaceEv(1, 1, old, f"{new:#x}"), now=10) == {"profile": 1, "ev": old, "new": new}
    assert link.profile.index_of == {ev: link.profile.evs.index(ev) for ev in [new, *EVS[1:]]}
    assert (link.profile.path[index], link.profile.bad_on[0]) == (1, {0: 0})
    assert link.profile.states[index] == EvState.GOOD
    # A packet that was lost on the old one does not accuse it.
    link.profile.feedback(11, index, EvTrigger.GAP, 10)
    assert link.profile.states[index] == EvState.GOOD
    link.profile.feedback(12, index, EvTrigger.GAP, 11)
    assert link.profile.states[index] == EvState.ASSUMED_BAD
    assert bench.qp(102).profile.evs.count(new) == 1


def test_a_replacement_elsewhere_is_refused_and_changes_nothing() -> None:
    bench = Controlled()
    link = bench.qp(101)
    before = list(link.profile.evs)
    assert "leaves by port 2" in str(bench.refused(ReplaceEv(1, 1, EVS[0], f"{ev_of(1, 0, 5):#x}")))
    assert link.profile.evs == before
    bench.ask(ReplaceEv(1, 1, EVS[0], f"{ev_of(0, 0, 5):#x}"))


def test_a_replacement_by_hash_must_keep_its_plane_for_every_qp() -> None:
    bench = Controlled()
    bench.ask(CreateEvProfile(1, 2))
    evs = [f"{value}" for value in range(16)]
    bench.ask(ModifyEvProfile(1, 2, mode="explicit", format="ecmp", evs=evs, state="offline"))
    bench.ask(ModifyEvProfile(1, 2, state="online"))
    bench.ask(CreateQp(1, 101, 2))
    bench.ask(ConnectQp(1, 101, 2, 200, 0, 0))
    link = bench.table.find(101).link
    assert link is not None
    answers = [bench.refused(ReplaceEv(1, 2, 0, f"{value}")) for value in range(100, 120)]
    assert any("towards NIC 2 it would leave by plane" in str(answer) for answer in answers)
    assert None in answers


def test_a_replacement_on_a_denied_path_is_barred() -> None:
    bench = Controlled()
    link = bench.qp(101)
    bench.ask(DenyPaths(1, 0, 1))
    bench.ask(ReplaceEv(1, 1, EVS[0], f"{ev_of(0, 1, 99):#x}"))
    assert link.profile.states[link.profile.index_of[ev_of(0, 1, 99)]] == EvState.DENIED


TEXTS = st.text(st.sampled_from("0123456789abcdefx:/,@+- "), max_size=24)


@settings(max_examples=60, deadline=None)
@given(
    mode=st.sampled_from(["explicit", "generated", "auto"]),
    kind=st.sampled_from(["ecmp", "stev", "srv6", "srv6_srh"]),
    fields=st.none() | TEXTS,
    evs=st.none() | st.lists(TEXTS, max_size=3),
    rules=st.none() | st.lists(TEXTS, max_size=3),
    numbers=st.tuples(*[st.none() | st.integers(0, 1 << 64)] * 3),
)
def test_whatever_a_controller_says_ends_as_an_answer(
    mode: str,
    kind: str,
    fields: str | None,
    evs: list[str] | None,
    rules: list[str] | None,
    numbers: tuple[int | None, ...],
) -> None:
    count, reserve, min_active = numbers
    wanted = ModifyEvProfile(
        1, 2, None, mode, kind, fields, evs, rules, count=count, reserve=reserve, min_active=min_active
    )
    refused(FUZZED, wanted)
    for state in ("offline", "online"):
        refused(FUZZED, ModifyEvProfile(1, 2, state))
    if refused(FUZZED, CreateQp(1, 77, 2)) is None:
        refused(FUZZED, ConnectQp(1, 77, 2, 200, 0, 0))
        refused(FUZZED, DestroyQp(1, 77))
    for state in ("offline", "init"):
        refused(FUZZED, ModifyEvProfile(1, 2, state))


FUZZED = Bench()
FUZZED.executor.execute(0, CreateEvProfile(0, 2))
