"""The metrics of all nodes of a fabric on one page, for one scrape of the whole fabric.

Owns the order of asking and rendering. A busy daemon answers when it gets the CPU, so all are asked at once. A process
that carries many daemons renders the series of all of them, family by family, beside its other work; those are only put
together here, and processes render at the same time. A daemon with a process of its own says what it counts, and its
answer is rendered here, so that rendering never stalls its data path. If so many daemons share a core that their
processes would be a crowd, fabric time stands still until all have answered: each answer would otherwise wait for the
work of all others. A node that is down or has not answered in time has no series, as on its own page.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any, Final

import nicd.metrics
import switchd.metrics
from mrcfabric.control import NoAnswerError
from mrcfabric.crowd import is_crowd
from mrcfabric.errors import RefusedError
from mrcfabric.metrics import COMMON, Definition, Family, merged, text
from mrcfabric.together import series_of
from orchestrator.fabric.launched import LaunchedFabric

SCRAPE_WALL_S = 4.0
"""A daemon that has not answered by then is left out: to Prometheus a scrape longer than five seconds has failed."""
RENDER_WALL_S = 2.5
"""How long a process renders series; nodes for which it has not come to that by then are left out."""
_DEFINITIONS: Final[Mapping[str, Definition]] = {
    one.name: one for one in (*COMMON, *nicd.metrics.DEFINITIONS, *switchd.metrics.DEFINITIONS)
}


async def page_of_all(fabric: LaunchedFabric) -> bytes:
    """Make the page in the exposition format."""
    async with fabric.time.still() if is_crowd(fabric.layout.daemons_max) else nullcontext():
        alive = [node for node in fabric.topology.node_names() if fabric.alive(node)]
        groups = fabric.daemons.batches.groups(alive)
        together = [group for group in groups if len(group) > 1]
        alone = [group[0] for group in groups if len(group) == 1]
        rendered, counted = await asyncio.gather(
            asyncio.gather(*(_rendered(fabric, group) for group in together)),
            fabric.counters(alone, timeout_s=SCRAPE_WALL_S, silent=[]),
        )
        left_out = [node for _, rest in rendered for node in rest]
        if left_out:  # dead, cut off, or started again meanwhile: their own answers say so
            counted |= await fabric.counters(left_out, timeout_s=SCRAPE_WALL_S / 4, silent=[])
        pages = [page for page, _ in rendered]
        for node, counters in counted.items():
            nic = fabric.topology.parse_node(node).tier == "nic"
            collect = nicd.metrics.collect if nic else switchd.metrics.collect
            pages.append(collect(fabric.topology.name, node, counters))
            await asyncio.sleep(0)
        return await asyncio.to_thread(_page, pages)


async def _rendered(fabric: LaunchedFabric, group: list[str]) -> tuple[list[Family], list[str]]:
    """The families of the nodes of one process, each with all its series as one block, and the nodes left out."""
    try:
        answer: dict[str, Any] = await fabric.daemons.batches.ask_group(
            group, "metrics", {"within_s": RENDER_WALL_S}, SCRAPE_WALL_S
        )
    except NoAnswerError:
        return [], []
    except RefusedError:  # the one that was asked has died
        return [], group
    found = await asyncio.to_thread(_families, answer["families"])
    told = frozenset((*answer["nodes"], *answer["late"]))
    return found, [node for node in group if node not in told]


def _families(block: bytes) -> list[Family]:
    return [Family(_DEFINITIONS[name], [series]) for name, series in series_of(block) if name in _DEFINITIONS]


def _page(pages: Iterable[list[Family]]) -> bytes:
    """Put pages together, families in the order of their definitions."""
    found = {family.definition.name: family for family in merged(pages)}
    return text([found[name] for name in _DEFINITIONS if name in found])
