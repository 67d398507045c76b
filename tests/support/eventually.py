"""Waiting for something to become true, with a deadline instead of a fixed sleep."""

import asyncio
import time
from collections.abc import Callable


async def eventually(predicate: Callable[[], bool], what: str, deadline_s: float = 10.0) -> None:
    """Return as soon as `predicate()` holds; AssertionError naming `what` after `deadline_s`."""
    end = time.monotonic() + deadline_s
    while not predicate():
        assert time.monotonic() < end, f"never happened: {what}"
        await asyncio.sleep(0.002)
