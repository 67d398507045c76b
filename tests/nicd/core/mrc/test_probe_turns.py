"""How often reverse paths are probed, over all peers of a NIC."""

import pytest

from nicd.core.mrc.probe_turns import ProbeTurns

REFRESH = 1_000


def turns_taken(peers: int, most: int, spans: int = 50) -> list[int]:
    """Turns of each peer in so many refresh times."""
    turns = ProbeTurns(REFRESH, most)
    due = [REFRESH] * peers
    taken = [0] * peers
    for now in range(REFRESH, spans * REFRESH + 1):
        for peer in range(peers):
            if due[peer] == now:
                taken[peer] += 1
                due[peer] = turns.next(now)
    return taken


def test_few_peers_have_a_turn_per_refresh_time() -> None:
    assert min(turns_taken(8, 8)) >= 49, "spread over it, once"
    assert turns_taken(20, 0) == [50] * 20, "without bound"


@pytest.mark.parametrize("peers", [9, 31, 127])
def test_many_share_what_there_is_alike(peers: int) -> None:
    taken = turns_taken(peers, 8)
    assert sum(taken) <= 8 * 50 + peers
    assert max(taken) - min(taken) <= 1


def test_who_comes_after_a_pause_waits_no_longer_than_a_refresh_time() -> None:
    turns = ProbeTurns(REFRESH, 2)
    for _ in range(10):
        turns.next(0)
    assert turns.next(100 * REFRESH) == 101 * REFRESH
