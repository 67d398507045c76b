"""BFD between two neighbours: how it comes up, its pace, when silence counts, and what a peer may say."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, NS_PER_MS, NS_PER_S
from mrcfabric.wire.bfd import ADMIN_DOWN, DOWN, INIT, UP, Bfd
from switchd.core.routing.liveness import Liveness
from switchd.core.settings_bfd import BfdKnobs

MS = NS_PER_MS
DELAY = 1_000


class Pair:
    """Two ends, a link that only delays, and what was sent."""

    def __init__(self, *knobs: BfdKnobs) -> None:
        both = knobs if len(knobs) == 2 else knobs * 2
        self.ends = [Liveness(one, number + 1, Rng("bfd", number)) for number, one in enumerate(both)]
        self.now = 0
        self.flying: list[tuple[int, int, Bfd]] = []
        self.sent: list[tuple[int, int, Bfd]] = []
        self.lost: list[tuple[int, int]] = []
        self.deaf: set[int] = set()

    def start(self) -> None:
        for end in self.ends:
            end.start(0)
        self.pick_up()

    def pick_up(self) -> None:
        for number, end in enumerate(self.ends):
            for said in end.out:
                self.sent.append((self.now, number, said))
                if 1 - number not in self.deaf:
                    self.flying.append((self.now + DELAY, 1 - number, said))
            end.out = []

    def run(self, until: int) -> None:
        while True:
            due = [(end.send_ns, 2, number) for number, end in enumerate(self.ends)]
            due += [(end.detect_ns, 1, number) for number, end in enumerate(self.ends)]
            due += [(at_ns, 0, number) for number, (at_ns, _, _) in enumerate(self.flying)]
            at_ns, kind, number = min(due)
            if at_ns > until:
                self.now = until
                return
            self.now = at_ns
            if kind == 0:
                _, end, said = self.flying.pop(number)
                before = self.ends[end].state
                self.ends[end].hear(at_ns, said)
                if before == UP != self.ends[end].state:
                    self.lost.append((at_ns, end))
            elif kind == 1:
                if self.ends[number].expire(at_ns):
                    self.lost.append((at_ns, number))
            else:
                self.ends[number].send(at_ns)
            self.pick_up()


def knobs(send_ms: int = 300, receive_ms: int = 300, multiplier: int = 3) -> BfdKnobs:
    return BfdKnobs(True, send_ms * MS, receive_ms * MS, multiplier)


def test_both_are_up_after_two_delays() -> None:
    pair = Pair(knobs())
    pair.start()
    pair.run(2 * DELAY)
    assert [end.state for end in pair.ends] == [UP, UP]
    pair.run(10 * NS_PER_S)
    assert not pair.lost
    # The poll for the new pace was answered, and no longer is there one.
    assert any(said.final for _, _, said in pair.sent)
    assert not pair.sent[-1][2].poll


@pytest.mark.parametrize(
    ("mine", "theirs", "pace_ms"),
    [((300, 300, 3), (300, 300, 3), 300), ((50, 300, 3), (300, 50, 3), 50), ((50, 50, 3), (10, 400, 5), 400)],
)
def test_the_pace_is_the_slower_of_what_one_wants_to_send_and_the_other_to_hear(
    mine: tuple[int, int, int], theirs: tuple[int, int, int], pace_ms: int
) -> None:
    pair = Pair(knobs(*mine), knobs(*theirs))
    pair.start()
    pair.run(30 * NS_PER_S)
    times = [at_ns for at_ns, end, said in pair.sent if end == 0 and at_ns > 2 * NS_PER_S]
    gaps = [(later - sooner) / MS for sooner, later in pairwise(times)]
    assert all(0.75 * pace_ms <= gap <= pace_ms for gap in gaps)
    assert sum(gaps) / len(gaps) == pytest.approx(0.875 * pace_ms, rel=0.05)


@pytest.mark.parametrize("multiplier", [1, 2, 3, 10])
@pytest.mark.parametrize("pace_ms", [10, 50, 300])
def test_silence_counts_after_so_many_intervals_of_the_sender(multiplier: int, pace_ms: int) -> None:
    pair = Pair(knobs(pace_ms, pace_ms, multiplier))
    pair.start()
    pair.run(5 * NS_PER_S)
    assert not pair.lost
    pair.deaf = {1}
    heard_ns = max(at_ns for at_ns, end, _ in pair.sent if end == 0) + DELAY
    pair.run(20 * NS_PER_S)
    # Who hears nothing says so, and the other one ends the session when it hears that.
    lost_ns = heard_ns + multiplier * pace_ms * MS
    assert pair.lost[:2] == [(lost_ns, 1), (lost_ns + DELAY, 0)]
    pair.deaf = set()
    pair.run(22 * NS_PER_S)
    assert [end.state for end in pair.ends] == [UP, UP]


def test_it_sends_slowly_while_nobody_answers() -> None:
    pair = Pair(knobs(50, 50))
    pair.deaf = {0, 1}
    pair.start()
    pair.run(20 * NS_PER_S)
    times = [at_ns for at_ns, end, _ in pair.sent if end == 0]
    assert 20 <= len(times) <= 28


def test_a_stopped_end_is_silent_and_deaf() -> None:
    pair = Pair(knobs())
    pair.start()
    pair.run(NS_PER_S)
    assert pair.ends[0].stop()
    assert not pair.ends[0].stop()
    assert (pair.ends[0].send_ns, pair.ends[0].detect_ns) == (NEVER, NEVER)
    pair.ends[0].hear(pair.now, Bfd(UP, 3, 2, 1, 1, 1))
    assert pair.ends[0].state == DOWN
    assert not pair.ends[0].out


@pytest.mark.parametrize(
    ("state", "said", "then"),
    [
        (DOWN, DOWN, INIT), (DOWN, INIT, UP), (DOWN, UP, DOWN), (DOWN, ADMIN_DOWN, DOWN), (INIT, DOWN, INIT),
        (INIT, INIT, UP), (INIT, UP, UP), (INIT, ADMIN_DOWN, DOWN), (UP, DOWN, DOWN), (UP, INIT, UP), (UP, UP, UP),
        (UP, ADMIN_DOWN, DOWN),
    ],
)  # fmt: skip
def test_the_states_of_rfc_5880(state: int, said: int, then: int) -> None:
    end = Liveness(knobs(), 1, Rng("states"))
    end.start(0)
    end.state = state
    end.hear(5, Bfd(said, 3, 9, 1, 300_000, 300_000))
    assert end.state == then


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 255), st.integers(0, 2), st.integers(0, 1 << 31)), max_size=40)
)
def test_whatever_a_peer_says_it_is_answered_at_a_bounded_pace(said: list[tuple[int, int, int, int]]) -> None:
    end = Liveness(knobs(), 1, Rng("any"))
    end.start(0)
    for number, (state, multiplier, yours, interval) in enumerate(said):
        end.hear(number, Bfd(state, multiplier, 9, yours, interval, interval, poll=bool(interval & 1)))
        assert end.send_ns > number
    # At most the first one, a change and an answer for each.
    assert len(end.out) <= 1 + 2 * len(said)
