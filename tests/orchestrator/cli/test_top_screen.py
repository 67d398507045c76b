"""The keys of `mrcfabric top`."""

from orchestrator.cli.top_screen import Keys
from orchestrator.cli.top_view import BY_PAUSE, ORDERS


async def test_keys() -> None:
    keys = Keys()
    keys.press("s")
    assert keys.order == ORDERS[1]
    for _ in ORDERS[1:]:
        keys.press("S")
    assert keys.order == ORDERS[0]
    keys.press(" ")
    assert keys.paused
    keys.press("p")
    assert not keys.paused
    keys.press("x")
    assert not keys.quit.is_set()
    keys.press("q")
    assert keys.quit.is_set()


def test_links_can_be_sorted_by_pauses_where_there_are_any() -> None:
    keys = Keys(pauses=True)
    for _ in ORDERS:
        keys.press("s")
    assert keys.order == BY_PAUSE
    keys.press("s")
    assert keys.order == ORDERS[0]
