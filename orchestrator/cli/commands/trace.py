"""`mrcfabric trace`: where did packet N go.

Owns arguments and output; `orchestrator.tracing` follows the packets.
"""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.flags import JsonOption, NameOption, RunDirOption, wall_time

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.client.agent_fabric import AgentFabric
    from orchestrator.tracing.follower import Follower
    from orchestrator.tracing.journey import Journey

FOR_S_MAX = 3600.0
SHARE_COUNT = 100


def register(app: typer.Typer) -> None:
    """Add `trace`."""
    app.command("trace")(trace)


def trace(
    qp: Annotated[str | None, typer.Option("--qp", metavar="NIC:QPN", help="What this QP sends.")] = None,
    psn: Annotated[
        str | None, typer.Option("--psn", metavar="PSN", help="next, a PSN to come, or FIRST-LAST. Default: next.")
    ] = None,
    share: Annotated[
        str | None, typer.Option("--share", help="A share of the packets, as 0.1% or 0.001; without --qp of all QPs.")
    ] = None,
    count: Annotated[int | None, typer.Option("--count", "-n", min=1, help="Stop after so many packets.")] = None,
    length: Annotated[str, typer.Option("--for", help="Wall time after which it stops, as 30s.")] = "10s",
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Follow packets through a running fabric: every hop, its queues, marks, trims, drops, answers, and repeats."""
    import asyncio

    from mrcfabric.errors import ConfigError

    if qp is None and share is None:
        raise ConfigError("trace", "which packets?", "name a QP as --qp h000:17, or a share of all as --share 0.1%")
    if psn is not None and (qp is None or share is not None):
        raise ConfigError("--psn", "a PSN is one QP's", "with --qp, and without --share")
    for_s = wall_time("--for", length, most_s=FOR_S_MAX)
    asyncio.run(_trace(qp, psn, share, count, for_s, name, run_dir, as_json))


async def _trace(
    qp: str | None, psn: str | None, share: str | None, count: int | None, for_s: float,
    name: str | None, run_dir: "Path | None", as_json: bool,
) -> None:  # fmt: skip
    import asyncio

    from mrcfabric.choice import Choice
    from orchestrator.client.agent_fabric import AgentFabric
    from orchestrator.process.end_signals import end_signals
    from orchestrator.tracing.follower import Follower, choice_of
    from orchestrator.tracing.hindsight import hindsight
    from orchestrator.tracing.joiner import JOURNEYS_MAX

    every = 1 if share is None else every_of(share)
    async with AgentFabric.open(name, run_dir) as fabric:
        if qp is None:
            choice, usual = Choice(every=every), SHARE_COUNT
        else:
            nic, qpn = qp_of(qp)
            choice = await choice_of(fabric, nic, qpn, psn, every)
            ranged = psn is not None and psn != "next"
            usual = SHARE_COUNT if share is not None else min(choice.count, JOURNEYS_MAX) if ranged else 1
        follower = Follower(fabric, choice, usual if count is None else count, for_s)
        for number in end_signals():
            asyncio.get_running_loop().add_signal_handler(number, follower.stop.set)
        journeys = await follower.follow(lambda journey: None if _later(fabric, journey) else _tell(journey, as_json))
        lines = await _routing_lines(fabric) if any(_later(fabric, journey) for journey in journeys) else []
        for journey in journeys:
            if _later(fabric, journey) or not journey.complete:
                _tell(replace(journey, learnt=hindsight(fabric.topology, journey, lines)), as_json)
    _tell_end(follower)
    if not journeys:
        typer.echo("no such packet was sent" + ("" if follower.ended else f" within {for_s:g} s"), err=True)
        raise typer.Exit(1)


def _tell_end(follower: "Follower") -> None:
    """Print why the trace ended, and what is missing from it."""
    from orchestrator.tracing.joiner import REPLIES_MAX, UNDER_WAY_MAX

    if follower.ended:
        typer.echo(follower.ended, err=True)
    packets, replies = follower.left_out
    if packets:
        typer.echo(f"{packets} packets were not followed: {UNDER_WAY_MAX} others were under way", err=True)
    if replies:
        typer.echo(f"{replies} acknowledgements were not followed: {REPLIES_MAX} others were wanted", err=True)
    if follower.lost:
        typer.echo(f"{follower.lost} statements were forgotten before they were read: ways may have gaps", err=True)


def _later(fabric: "AgentFabric", journey: "Journey") -> bool:
    """Whether switches may learn later why a packet was lost: it is told when the trace ends."""
    from orchestrator.planning.abilities import routes
    from orchestrator.tracing.hindsight import lost_ways

    return routes(fabric.topology) and bool(lost_ways(journey))


async def _routing_lines(fabric: "AgentFabric") -> list[dict[str, Any]]:
    """What routing cores have told, from the agent's event log."""
    from orchestrator.measures.convergence import KINDS

    found: list[dict[str, Any]] = []
    answer: dict[str, Any] = {"last": 0, "more": True}
    while answer["more"]:
        answer = await fabric.post("/log", after=answer["last"], kinds=list(KINDS))
        found += answer["events"]
    return found


def _tell(journey: "Journey", as_json: bool) -> None:
    from orchestrator.tracing.text import render

    typer.echo(json.dumps(journey.record()) if as_json else render(journey) + "\n")


def qp_of(text: str) -> tuple[str, int]:
    """(NIC, QPN) of NIC:QPN. Raises ConfigError."""
    from mrcfabric.errors import ConfigError

    nic, _, number = text.partition(":")
    try:
        return nic, int(number, 0)
    except ValueError:
        raise ConfigError("--qp", f"{text!r} is no QP", "wanted: NIC:QPN, as h000:17") from None


def every_of(text: str) -> int:
    """The N of "one packet in N" for a share such as 0.1% or 0.001. Raises ConfigError."""
    from mrcfabric.choice import EVERY_MAX
    from mrcfabric.errors import ConfigError

    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 1 / EVERY_MAX <= share <= 1:
        raise ConfigError("--share", f"{text!r} is no share", f"as 0.1% or 0.001; from 1/{EVERY_MAX} to 100%")
    return round(1 / share)
