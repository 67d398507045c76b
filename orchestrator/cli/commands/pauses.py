"""`mrcfabric pauses`: who pauses whom in a running lossless fabric, as trees from the reason to those that stand still.

Owns arguments and output; `orchestrator.live` takes two looks, and shows what happened between them.
"""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.flags import JsonOption, NameOption, RunDirOption, wall_time

if TYPE_CHECKING:
    from mrcfabric.topology import Topology
    from orchestrator.live.pause_tree import PauseTree
    from orchestrator.live.snapshot import Snapshot

OVER_S = (0.1, 60.0)
"""The shortest and the longest time between the two looks."""


def register(app: typer.Typer) -> None:
    """Add `pauses`."""
    app.command("pauses")(pauses)


def pauses(
    parts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PART]...", help="Only trees with this node, link or direction of one: p0-t0-0>h003."),
    ] = None,
    over: Annotated[str, typer.Option("--over", help="Wall time between the two looks, as 5s.")] = "1s",
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who pauses whom (PFC), or who waits for whose credit (InfiniBand), and why.

    Trees from a congested port or a slow receiver down to the NICs that wait.
    """
    import asyncio

    from orchestrator.cli.pause_text import render_trees
    from orchestrator.client.agent_client import find
    from orchestrator.client.agent_fabric import AgentFabric
    from orchestrator.live.live_view import LiveView
    from orchestrator.live.pause_tree import trees_of
    from orchestrator.planning.abilities import lossless

    over_s = wall_time("--over", over, *OVER_S)
    folder = find(name, run_dir).folder

    async def looked() -> "tuple[Topology, Snapshot]":
        async with AgentFabric.open(run_dir=folder) as fabric:
            _check(parts or (), fabric.topology)
            live_view = LiveView(fabric)
            await live_view.look()
            await asyncio.sleep(over_s)
            return fabric.topology, await live_view.look()

    topology, shot = asyncio.run(looked())
    trees = shot.pause_trees
    if parts:
        trees = tuple(tree for tree in trees if any(tree in trees_of(trees, part) for part in parts))
    waits = lossless(topology)
    if as_json:
        typer.echo(json.dumps(_record(shot, trees, waits)))
    elif trees:
        typer.echo(render_trees(shot.pauses, trees))
    else:
        typer.echo(_nothing(shot, waits, bool(parts)))


def _record(shot: "Snapshot", trees: "tuple[PauseTree, ...]", lossless: bool) -> dict[str, Any]:
    """These trees with their pauses, as a snapshot has them, and whether switches pause at all."""
    told = shot.record()
    wanted = {(step.link, tree.cls) for tree in trees for step in tree.steps}
    return {
        "lossless": lossless,
        "at_ns": shot.at_ns,
        "span_ns": shot.span_ns,
        "pauses": [pause for pause in told["pauses"] if (pause["link"], pause["cls"]) in wanted],
        "pause_trees": [row for row, tree in zip(told["pause_trees"], shot.pause_trees, strict=True) if tree in trees],
    }


def _nothing(shot: "Snapshot", lossless: bool, narrowed: bool) -> str:
    if not lossless:
        return "nobody pauses: the switches of this fabric are not lossless (switch.lossless)"
    where = "there" if narrowed else "anywhere"
    if not shot.span_ns:
        return f"nobody is paused {where}: fabric time stands still"
    return f"nobody was paused {where} in {shot.span_ns / 1000:,.1f} us of fabric time"


def _check(parts: Iterable[str], topology: "Topology") -> None:
    """Raises ConfigError for a part that the fabric does not have."""
    from mrcfabric.errors import ConfigError
    from mrcfabric.naming import shown

    known = {*topology.node_names()}
    for link in topology.links():
        known |= {link.name, f"{link.a}>{link.b}", f"{link.b}>{link.a}"}
    for part in parts:
        if part not in known:
            raise ConfigError(shown(part), "no such node, link or direction", "as h003, h003~p0-t0-0 or p0-t0-0>h003")
