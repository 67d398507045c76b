"""What `status` says of a fabric of RC NICs: their sums between two looks, of which the first is taken for it.

Owns the length between the looks. Others have no such part.
"""

import asyncio
from typing import Any, Final

from orchestrator.fabric.polling import SHARED_WALL_S
from orchestrator.fabric.verbs import Verbs
from orchestrator.live.live_view import LiveView
from orchestrator.live.rc_view import rc_path, rc_sums

BETWEEN_WALL_S: Final = 2 * SHARED_WALL_S
"""Long enough for the second look to ask the daemons anew."""


async def rc_status(fabric: Verbs) -> dict[str, Any] | None:
    """The sums of all RC NICs (`rc_sums`), `span_ns` of fabric time between the looks, and how many directions of links
    were paused in it, as `paused`. While the fabric sleeps one look is enough. None for other NICs."""
    if rc_path(fabric.topology) is None:
        return None
    live_view = LiveView(fabric)
    shot = await live_view.look()
    if shot.running:
        await asyncio.sleep(BETWEEN_WALL_S)
        shot = await live_view.look()
    sums = rc_sums(shot.nics.values()) or {}
    return {**sums, "span_ns": shot.span_ns, "paused": len(shot.pauses)}
