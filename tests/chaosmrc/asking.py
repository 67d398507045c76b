"""Calling what blocks beside the loop in which the fabric of the test is served."""

import asyncio
from collections.abc import Callable
from typing import Any


async def beside(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What the function returns, called in a thread."""
    return await asyncio.to_thread(function, *arguments, **named)
