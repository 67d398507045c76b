"""Waiting for something that happens in wall time: a predicate and a deadline, never a fixed sleep."""

import asyncio
import time
from collections.abc import Awaitable, Callable

POLL_S = 0.005


async def eventually(predicate: Callable[[], object], deadline_s: float) -> None:
    """Return as soon as the predicate holds; AssertionError when it does not within the deadline."""
    end = time.monotonic() + deadline_s
    while not predicate():
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s} s: {getattr(predicate, '__name__', predicate)}")
        await asyncio.sleep(POLL_S)


async def eventually_true(ask: Callable[[], Awaitable[object]], deadline_s: float) -> None:
    """The same for a predicate that has to ask somebody."""
    end = time.monotonic() + deadline_s
    while not await ask():
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s} s: {getattr(ask, '__name__', ask)}")
        await asyncio.sleep(POLL_S)


def eventually_blocking(predicate: Callable[[], object], deadline_s: float) -> None:
    """The same for tests without a loop."""
    end = time.monotonic() + deadline_s
    while not predicate():
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s} s: {getattr(predicate, '__name__', predicate)}")
        time.sleep(POLL_S)
