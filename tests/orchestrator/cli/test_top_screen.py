"""The keys of `mrcfabric top`."""

from orchestrator.cli.top_screen import Keys
from orchestrator.cli.top_view import ORDERS


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
