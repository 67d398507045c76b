"""Picking, forgiving, replacing: the EV profile of one QP."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.paths import PathTable
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER
from nicd.core.ev_state import EvState, EvTrigger
from nicd.core.events import EvTransition
from nicd.core.mrc.ev_format import EvEntry
from nicd.core.mrc.ev_profile import EvProfile
from nicd.core.mrc.ev_universe import EvSet
from nicd.core.mrc.path_policy import POLICIES
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats

DEMO = Topology.demo()


class Bench:
    """A profile, and what it reported."""

    def __init__(
        self,
        peer: int = 4,
        *,
        skip_ns: int = NEVER,
        tally: list[list[int]] | None = None,
        keep_ppt: int = 0,
        forget_ns: int = 1,
        dead_losses: int = 3,
        **knobs: Any,
    ) -> None:
        self.tally = tally
        self.now = 20
        self.events: list[EvTransition] = []
        self.bad: list[int] = []
        self.stats = NicStats()
        settings = NicSettings(**knobs)
        self.destination = PathTable(DEMO, 0).towards(peer)
        active, reserve = self.destination.draw_evs(Rng("profile"), settings.evs_active // 8, settings.evs_reserve // 8)
        self.profile = EvProfile(
            100,
            EvSet([self.entry(ev) for ev in active], [self.entry(ev) for ev in reserve], settings.ev_min_active),
            8,
            POLICIES["mrc"],
            Rng("profile"),
            self.stats,
            self.events.append,
            lambda now, index: self.bad.append(index),
            skip_ns,
            tally,
            keep_ppt=keep_ppt,
            forget_ns=forget_ns,
            dead_losses=dead_losses,
        )

    def entry(self, ev: int) -> EvEntry:
        return EvEntry(ev, self.destination.path(ev))

    def lose(self, index: int, sent_ns: int = 10) -> None:
        self.profile.feedback(self.now, index, EvTrigger.GAP, sent_ns)


@pytest.mark.spec("MRC 1.0", "6.2")
def test_every_plane_and_every_path_is_used_equally() -> None:
    profile = Bench().profile
    planes = Counter(profile.pick_plane(0xFF) for _ in range(800))
    assert set(planes.values()) == {100}
    for plane in range(8):
        picks = [profile.decks[plane].pick(0) for _ in range(160)]
        assert set(Counter(picks).values()) == {10}
        assert set(Counter(profile.path[index] for index in picks).values()) == {40}
        assert {profile.plane[index] for index in picks} == {plane}


def test_turns_differ() -> None:
    deck = Bench().profile.decks[0]
    turns = {tuple(deck.pick(0) for _ in range(16)) for _ in range(20)}
    assert len(turns) > 10


def test_a_path_that_delivers_stays_in_use_while_the_others_have_queues() -> None:
    bench = Bench(forget_ns=100)
    profile = bench.profile
    one, other = profile.decks[0].cards[:2]
    far = profile.decks[1].cards[0]
    assert profile.path[one] != profile.path[other]
    for index in (one, other):
        profile.records.delivered_ns[profile.records.way[index]] = 15
    profile.feedback(bench.now, far, EvTrigger.ECN)
    profile.feedback(bench.now, one, EvTrigger.ECN)
    bench.lose(one)
    # Queues of its own, or of another plane, are no reason to stay.
    assert profile.states[one] == EvState.ASSUMED_BAD
    bench.lose(other)
    assert profile.states[other] == EvState.GOOD, "another path of its plane had a queue"
    bench.now += 100
    bench.lose(other)
    assert profile.states[other] == EvState.ASSUMED_BAD


def test_a_dead_path_is_left_whatever_the_others_have() -> None:
    bench = Bench(forget_ns=100)
    profile = bench.profile
    one, other = profile.decks[0].cards[:2]
    profile.feedback(bench.now, other, EvTrigger.ECN)
    for sent_ns in (10, 11, 12):
        assert profile.states[one] == EvState.GOOD
        bench.lose(one, sent_ns)
    assert profile.states[one] == EvState.ASSUMED_BAD


def on_path(profile: EvProfile, plane: int, path: int) -> list[int]:
    """Active EVs on one path."""
    return [index for index in profile.decks[plane].cards if profile.path[index] == path]


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_a_dead_path_is_left_with_all_evs_that_use_it() -> None:
    bench = Bench()
    profile = bench.profile
    own, other = on_path(profile, 2, 1), on_path(profile, 2, 3)
    assert len(own) == 4
    bench.lose(own[0], 10)
    bench.lose(own[1], 11)
    assert bench.bad == own[:2], "two losses in a row may be chance: each costs its own EV"
    bench.lose(own[2], 12)
    assert sorted(bench.bad) == sorted(own), "the last EV has lost nothing itself"
    assert [event.cause for event in bench.events] == ["gap", "gap", "gap", "path"]
    assert not on_path(profile, 2, 1), "no reserve EV of that path came in"
    assert all(profile.states[index] == EvState.GOOD for index in other)
    assert all(len(deck.cards) == 16 for deck in profile.decks[3:])


def test_a_path_that_delivers_between_losses_is_not_left_as_dead() -> None:
    bench = Bench()
    profile = bench.profile
    own = on_path(profile, 2, 1)
    for sent_ns, index in zip((10, 20, 30), own, strict=False):
        bench.lose(index, sent_ns)
        profile.records.proved(sent_ns + 5, index)
    assert bench.bad == own[:3]


@pytest.mark.parametrize("losses", [1, 2, 5])
def test_how_many_losses_make_a_path_dead_is_a_setting(losses: int) -> None:
    bench = Bench(dead_losses=losses)
    own = on_path(bench.profile, 0, 0)
    for number in range(losses - 1):
        bench.lose(own[0], 10 + number)
    assert bench.bad == own[: min(1, losses - 1)]
    # The EV itself has left already: its packets that were on their way tell of the path, too.
    bench.lose(own[0], 30)
    assert sorted(bench.bad) == sorted(own)


@given(st.integers(1, 255))
def test_a_plane_without_room_is_never_picked(mask: int) -> None:
    profile = Bench().profile
    assert all(mask >> profile.pick_plane(mask) & 1 for _ in range(20))


@pytest.mark.spec("MRC 1.0", "11.2.2")
def test_a_skipped_ev_sits_out_one_turn() -> None:
    bench = Bench()
    deck = bench.profile.decks[0]
    skipped = deck.cards[5]
    bench.profile.feedback(0, skipped, EvTrigger.ECN)
    assert bench.stats.ev_skips == 1
    while bench.profile.states[skipped] == EvState.SKIP:
        assert deck.pick(0) != skipped
    assert skipped in {deck.pick(0) for _ in range(32)}
    assert bench.events == []


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_a_lost_ev_is_replaced_in_its_plane_by_another_path() -> None:
    bench = Bench()
    profile = bench.profile
    failed = profile.decks[3].cards[0]
    bench.lose(failed)
    assert bench.bad == [failed]
    assert len(profile.decks[3].cards) == 16
    assert failed not in profile.decks[3].cards
    (substitute,) = [index for index in profile.decks[3].cards if index >= 128]
    assert profile.plane[substitute] == 3
    assert profile.path[substitute] != profile.path[failed]
    (event,) = bench.events
    assert (event.plane, event.path, event.cause) == (3, profile.path[failed], "gap")


def test_a_path_is_left_when_all_its_evs_fail_and_taken_again_when_they_are_back() -> None:
    bench = Bench()
    profile = bench.profile
    failed = [index for index in profile.decks[2].cards if profile.path[index] == 1]
    assert len(failed) == 4
    for index in failed:
        bench.lose(index)
    assert all(profile.path[index] != 1 for index in profile.decks[2].cards)
    assert len(profile.decks[2].cards) == 15
    for index in failed:
        profile.feedback(30, index, EvTrigger.PROBED_CLEAR)
    load = Counter(profile.path[index] for index in profile.decks[2].cards)
    assert len(profile.decks[2].cards) == 16
    assert max(load.values()) - min(load.values()) <= 1
    assert all(len(deck.cards) == 16 for deck in profile.decks)


def test_where_there_is_one_path_the_plane_runs_dry() -> None:
    bench = Bench(peer=1)
    for index in list(bench.profile.decks[0].cards):
        bench.lose(index)
    assert bench.profile.filled == 0xFE
    bench.profile.feedback(30, bench.bad[0], EvTrigger.PROBED_MARKED)
    assert bench.profile.filled == 0xFF
    assert bench.profile.states[bench.bad[0]] == EvState.SKIP


def test_the_floor_holds() -> None:
    bench = Bench(ev_min_active=100)
    for index in range(128):
        bench.lose(index)
    assert sum(len(deck.cards) for deck in bench.profile.decks) == 100


def test_a_dead_path_goes_even_at_the_floor_while_another_delivers() -> None:
    bench = Bench(ev_min_active=128)
    profile = bench.profile
    dead, living = profile.decks[0].cards[0], profile.decks[1].cards[0]
    for _ in range(4):
        bench.lose(dead, 10)
    assert bench.bad == [], "for all that is known everything is dead"
    profile.records.proved(15, living)
    bench.lose(dead, 10)
    gone = [index for index in range(128) if profile.records.way[index] == profile.records.way[dead]]
    assert bench.bad == gone
    # This path delivers now and then.
    for sent_ns in range(20, 60, 10):
        profile.records.proved(sent_ns + 1, living)
        bench.lose(living, sent_ns)
    assert bench.bad == gone


def test_where_most_paths_of_a_plane_lose_packets_half_of_its_evs_stay() -> None:
    bench = Bench(evs_reserve=8, ev_min_active=0, keep_ppt=500)
    profile = bench.profile
    for _ in range(3):
        for index in range(len(profile.evs)):
            if profile.plane[index] == 2 and profile.path[index] != 3:
                profile.records.proved(10, index)
                bench.lose(index, 9)
    assert [len(deck.cards) for deck in profile.decks] == [16, 16, 8, 16, 16, 16, 16, 16]
    # One of them dies.
    dead = profile.decks[2].cards[0]
    for _ in range(3):
        bench.lose(dead, 11)
    assert profile.states[dead] == EvState.ASSUMED_BAD


def fail_in_turn(bench: Bench, plane: int, rounds: int, times: Callable[[int], int]) -> None:
    """Every path of a plane loses packets, so many per round as `times` says of it, and delivers in between."""
    profile = bench.profile
    for _ in range(rounds):
        for path in range(4):
            for _ in range(times(path)):
                cards = [card for card in profile.decks[plane].cards if profile.path[card] == path]
                if cards:
                    bench.now += 10
                    profile.records.proved(bench.now - 1, cards[0])
                    bench.lose(cards[0], bench.now - 2)


def test_paths_of_a_plane_that_lose_alike_keep_their_evs_and_their_balance() -> None:
    bench = Bench(evs_reserve=0, ev_min_active=0, forget_ns=10_000)
    profile = bench.profile
    fail_in_turn(bench, 2, 40, lambda path: 1)
    left = Counter(profile.path[card] for card in profile.decks[2].cards)
    assert sorted(left.values()) == [3, 3, 3, 4], "only the first failure of a path tells it from the others"
    assert [profile.relapses(bench.now, card) for card in profile.decks[2].cards] == [0] * 13
    # One of them dies.
    dead = profile.decks[2].cards[0]
    for _ in range(3):
        bench.lose(dead, bench.now + 1)
    assert profile.states[dead] == EvState.ASSUMED_BAD


def test_a_path_that_fails_far_more_often_than_the_others_of_its_plane_is_left() -> None:
    bench = Bench(evs_reserve=0, ev_min_active=0, forget_ns=10_000)
    profile = bench.profile
    fail_in_turn(bench, 2, 1, lambda path: 6 if path == 1 else 1)
    left = Counter(profile.path[card] for card in profile.decks[2].cards)
    assert left[1] == 0
    assert min(left[path] for path in (0, 2, 3)) >= 3
    worst = next(index for index, plane in enumerate(profile.plane) if plane == 2 and profile.path[index] == 1)
    assert profile.relapses(bench.now, worst) >= 2


def test_a_plane_that_was_down_excuses_its_evs() -> None:
    bench = Bench()
    bench.profile.down_ns[0] = 50
    bench.lose(bench.profile.decks[0].cards[0], sent_ns=50)
    assert bench.bad == []
    bench.lose(bench.profile.decks[0].cards[0], sent_ns=51)
    assert len(bench.bad) == 1


@pytest.mark.spec("MRC 1.0", "11.2")
def test_denied_evs_come_back_by_the_controller_alone() -> None:
    bench = Bench()
    profile = bench.profile
    index = profile.decks[0].cards[0]
    profile.feedback(0, index, EvTrigger.DENY)
    profile.feedback(0, index, EvTrigger.PROBED_CLEAR)
    assert profile.table()[index]["state"] == "DENIED"
    assert profile.counts()[0][EvState.DENIED] == 1
    profile.feedback(0, index, EvTrigger.ALLOW)
    assert profile.states[index] == EvState.GOOD


@pytest.mark.spec("MRC 1.0", "3")
def test_a_retransmission_takes_another_path() -> None:
    profile = Bench().profile
    for plane in range(8):
        for index in profile.decks[plane].cards:
            assert profile.path[profile.pick_other(0, plane, index)] != profile.path[index]
    same = Bench(peer=1).profile
    assert all(same.pick_other(0, 0, index) != index for index in same.decks[0].cards)


CHANGES = st.one_of(
    st.tuples(st.just("feedback"), st.integers(0, 400), st.sampled_from(EvTrigger)),
    st.tuples(st.just("pick"), st.integers(0, 7), st.just(EvTrigger.SCAN)),
    st.tuples(st.just("resend"), st.integers(0, 400), st.just(EvTrigger.SCAN)),
    st.tuples(st.just("replace"), st.integers(0, 400), st.just(EvTrigger.SCAN)),
    st.tuples(st.just("leave"), st.just(0), st.just(EvTrigger.SCAN)),
)


@given(st.lists(CHANGES, max_size=60), st.sampled_from([0, 30, NEVER]))
def test_the_tally_is_what_is_counted_one_by_one(history: list[tuple[str, int, EvTrigger]], skip_ns: int) -> None:
    other = [[7, 3, 2, 1] for _ in range(8)]
    bench = Bench(skip_ns=skip_ns, tally=[list(row) for row in other], evs_active=32, evs_reserve=8)
    profile, left = bench.profile, False
    for what, number, trigger in history:
        index = number % len(profile.evs)
        plane = profile.plane[index]
        if what == "feedback":
            profile.feedback(20, index, trigger, 10)
        elif what == "leave":
            profile.leave()
            left = True
        elif what == "replace":
            profile.replace(20, index, bench.entry(profile.evs[index]))
        elif profile.decks[plane].cards:
            profile.decks[plane].pick(0) if what == "pick" else profile.pick_other(0, plane, index)
        own = [[0] * 4] * 8 if left else profile.counts()
        assert bench.tally == [
            [more + one for more, one in zip(*rows, strict=True)] for rows in zip(other, own, strict=True)
        ]
