"""Rounds of a search: they grow, are bounded, and become rarer."""

from nicd.core.mrc.search_rounds import ROUND_MAX, Rounds


def test_rounds_grow_to_all_paths_and_become_rarer() -> None:
    rounds = Rounds()
    assert [rounds.next(1_000) for _ in range(4)] == [8, 64, ROUND_MAX, ROUND_MAX]
    assert rounds.sent == 72 + 2 * ROUND_MAX
    rounds.reset()
    assert rounds.sent == 0
    assert [(rounds.next(5), rounds.pause(5)) for _ in range(5)] == [(5, 1)] * 4 + [(5, 4)]
    rounds.reset()
    rounds.widen()
    assert rounds.next(1_000) == ROUND_MAX
