"""Tasks that nobody waits for: keeps them, and reports their failures.

Owns the tasks. The caller decides what they do and which errors it expects. `on_trouble` gets those, the loop gets the
others.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """The tasks of one owner. `start` them inside a running loop; `close` at the end."""

    def __init__(self, expected: tuple[type[Exception], ...], on_trouble: Callable[[str, Exception], None]) -> None:
        """`on_trouble` is called with the `about` of a task and its error, if that has an `expected` type."""
        self._expected = expected
        self._on_trouble = on_trouble
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], about: str = "") -> "asyncio.Task[T]":
        """Start a task. It also raises its error where the caller awaits it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(lambda finished: self._finished(finished, about))
        return task

    async def close(self) -> None:
        """Cancel all tasks that run, and wait for them."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _finished(self, task: "asyncio.Task[Any]", about: str) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, self._expected):
            self._on_trouble(about, error)
        elif error is not None:
            asyncio.get_running_loop().call_exception_handler({"message": str(error), "exception": error})


async def first_to_end(*works: Any, forever: Any) -> None:
    """Run everything at once until all of `works` have ended. The first exception, also of `forever`, ends all."""
    background = asyncio.ensure_future(forever)
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        waiting = {background, *tasks}
        while not all(task.done() for task in tasks):
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        for task in (background, *tasks):
            task.cancel()
        await asyncio.gather(background, *tasks, return_exceptions=True)
