"""What `status` says of a fabric of UET NICs: their sums at one look. Others have no such part."""

from dataclasses import asdict
from typing import Any

from orchestrator.fabric.verbs import Verbs
from orchestrator.live.live_view import LiveView
from orchestrator.live.uet_view import uet_sums
from orchestrator.planning.abilities import sprays_entropies


async def uet_status(fabric: Verbs) -> dict[str, Any] | None:
    """The sums of all UET NICs (`uet_sums`); None for other NICs."""
    if not sprays_entropies(fabric.topology):
        return None
    sums = uet_sums((await LiveView(fabric).look()).nics.values())
    return None if sums is None else asdict(sums)
