"""`mrcfabric mapper`: which links of a running fabric are bad, by probes that every NIC sends to itself.

Owns arguments, output, and the exit code: 0 all links good, 1 something is not, 2 bad input.
"""

import json
import time
from typing import Annotated, Any

import typer

from orchestrator.cli.flags import JsonOption, NameOption, RunDirOption, duration
from orchestrator.client.agent_client import AgentClient

FOLLOW_POLL_S = 0.5
EXIT_BAD = 1
FIND = "1%"


def register(app: typer.Typer) -> None:
    """Add `mapper`."""
    app.command("mapper")(mapper)


def mapper(
    once: Annotated[bool, typer.Option("--once", help="Check all links and end: the check before a job.")] = False,
    deny: Annotated[bool, typer.Option("--deny", help="Keep NICs off bad links while the watch is on.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="End a watch or a check that was left behind.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Print good links too.")] = False,
    find: Annotated[
        str | None,
        typer.Option("--find", help="With --once: the smallest loss per direction to find, as 0.01; default 1%."),
    ] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", help="With --once: so many rounds instead.")] = None,
    period: Annotated[
        str | None, typer.Option("--period", help="Fabric time of a round, as 20us; default 4 base RTT.")
    ] = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Test every link, with or without a job, and name the bad ones; without --once watch until interrupted."""
    from mrcfabric.errors import ConfigError
    from orchestrator.client.agent_client import find as find_fabric

    if once and (deny or stop):
        raise ConfigError("--once", "denies nothing and ends by itself", "leave out --deny and --stop")
    if not once and (find is not None or rounds is not None):
        raise ConfigError("--find, --rounds", "say how long a check lasts, and a watch goes on", "add --once")
    period_ns = duration("--period", period)
    if period_ns is not None:
        from orchestrator.mapper.link_watch import check_period

        check_period("--period", str(period), period_ns)
    loss = share(find or FIND)
    client = find_fabric(name, run_dir)
    if stop:
        before = client.post("/links", action="map")
        client.post("/links", action="stop")
        ended = "watch" if before["watching"] else "check" if before["checking"] else None
        typer.echo(f"the {ended} has ended" if ended else "nothing was under way")
        return
    if once:
        answer = _check(client, rounds=rounds, period_ns=period_ns, loss=loss)
        _print(answer, every, as_json)
        _end(answer)
    else:
        _follow(client, period_ns, deny, every, as_json)


def _check(client: AgentClient, **figures: Any) -> dict[str, Any]:
    """The answer to a check; if the operator presses Ctrl-C, the fabric stops the check too."""
    from orchestrator.cli.progress import waiting

    what = f"{figures['rounds']} rounds" if figures["rounds"] else f"until a loss of {figures['loss']:.2%} would show"
    try:
        with waiting(f"testing every link, {what}"):
            answer: dict[str, Any] = client.post("/links", action="check", **figures)
    except KeyboardInterrupt:
        client.post("/links", action="stop")
        raise
    return answer


def share(text: str) -> float:
    """A share such as 1% or 0.01. Raises ConfigError."""
    from mrcfabric.errors import ConfigError

    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise ConfigError(f"--find {text}", "is no share", "wanted: as 1% or 0.01")
    return value


def _follow(client: AgentClient, period_ns: int | None, deny: bool, every: bool, as_json: bool) -> None:
    answer = client.post("/links", action="watch", period_ns=period_ns, deny=deny)
    shown = ""
    try:
        while answer["watching"]:
            if _subject(answer) != shown:
                shown = _subject(answer)
                typer.echo(_first(answer) if _is_blank(answer) and not as_json else _shown(answer, every, as_json))
            time.sleep(FOLLOW_POLL_S)
            answer = client.post("/links", action="map")
    except KeyboardInterrupt:
        _end(client.post("/links", action="stop"))


def _is_blank(answer: dict[str, Any]) -> bool:
    """Whether the map has no verdict yet."""
    record = answer["map"]
    return not record["dead"] and all(link["verdict"] == "unknown" for link in record["links"])


def _first(answer: dict[str, Any]) -> str:
    """The text before the first verdicts."""
    record = answer["map"]
    return f"at {record['at_ns'] / 1000:.3f} us\nwatching {len(record['links'])} links; nothing is known of them yet"


def _subject(answer: dict[str, Any]) -> str:
    """The part of a map whose change is worth another print: verdicts, not counts."""
    verdicts = [[link["link"], link["verdict"]] for link in answer["map"]["links"]]
    return json.dumps([answer["map"]["dead"], verdicts, answer.get("plan")])


def _shown(answer: dict[str, Any], every: bool, as_json: bool) -> str:
    from orchestrator.cli.map_view import render_map

    record = {**answer["map"], "plan": answer.get("plan")}
    if as_json:
        return json.dumps(record)
    return f"at {record['at_ns'] / 1000:.3f} us\n" + render_map(record, everything=every)


def _print(answer: dict[str, Any], every: bool, as_json: bool) -> None:
    typer.echo(_shown(answer, every, as_json))


def _end(answer: dict[str, Any]) -> None:
    from orchestrator.cli.map_view import is_all_good

    if not is_all_good(answer["map"]):
        raise typer.Exit(EXIT_BAD)
