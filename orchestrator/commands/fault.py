"""`mrcfabric fault`: break and heal links, switches and NIC ports of a running fabric, by name.

Owns arguments and what is printed. Times are fabric time; without `--at` a fault happens as soon as it can be exact.
"""

import json
from enum import StrEnum
from typing import Annotated, TypeAlias

import typer

from orchestrator.flags import JsonOption, NameOption, NicArgument, PlaneArgument, RunDirOption, instant

AtOption: TypeAlias = Annotated[
    str | None, typer.Option("--at", help="Fabric time, as 250us; default: as soon as possible.")
]
fault_app = typer.Typer(no_args_is_help=True, help="Break links, switches and NIC ports, and heal them.")


class LinkAction(StrEnum):
    """What can be done to a cable."""

    DOWN = "down"
    UP = "up"
    LOSS = "loss"


class SwitchAction(StrEnum):
    """What can be done to a node."""

    KILL = "kill"
    CRASH = "crash"
    RESTART = "restart"


class PortAction(StrEnum):
    """What can be done to a NIC's port."""

    DOWN = "down"
    UP = "up"


def register(app: typer.Typer) -> None:
    """Add `fault`."""
    app.add_typer(fault_app, name="fault")


@fault_app.command()
def link(
    name_of_link: Annotated[str, typer.Argument(metavar="LINK", help="As p0-t0-1~p0-t1-2 or h003~p5-t0-0.")],
    action: Annotated[LinkAction, typer.Argument(help="down, up, or loss with --ppm.")],
    ppm: Annotated[int, typer.Option("--ppm", help="With loss: packets lost per million, each direction.")] = 10_000,
    at: AtOption = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Cut a cable, make it lose packets at random, or heal it."""
    from orchestrator.agent_client import find

    loss_ppm = ppm if action is LinkAction.LOSS else 0
    up = action is not LinkAction.DOWN
    answer = find(name, run_dir).post("/link", link=name_of_link, up=up, loss_ppm=loss_ppm, at_ns=instant("--at", at))
    _say(f"link {name_of_link} {action.value}", answer["at_ns"])


@fault_app.command()
def switch(
    node: Annotated[str, typer.Argument(metavar="SWITCH", help="As p2-t1-0; a NIC's name will do too.")],
    action: Annotated[SwitchAction, typer.Argument(help="kill now, crash at an exact instant, or restart.")],
    away: Annotated[str | None, typer.Option("--for", help="With crash: return after this, as 300us.")] = None,
    at: AtOption = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Kill a node's daemon with SIGKILL, or start it again."""
    from orchestrator.agent_client import find

    answer = find(name, run_dir).post(
        "/node", node=node, action=action.value, at_ns=instant("--at", at), for_ns=instant("--for", away)
    )
    _say(f"{node} {action.value}", answer["at_ns"])


@fault_app.command("nic-port")
def nic_port(
    nic: NicArgument,
    plane: PlaneArgument,
    action: Annotated[PortAction, typer.Argument(help="down or up.")],
    at: AtOption = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Take a port of a NIC down, or up again."""
    from orchestrator.agent_client import find

    up = action is PortAction.UP
    answer = find(name, run_dir).post("/nic-port", nic=nic, plane=plane, up=up, at_ns=instant("--at", at))
    _say(f"{nic} port {plane} {action.value}", answer["at_ns"])


@fault_app.command("list")
def list_faults(name: NameOption = None, run_dir: RunDirOption = None, as_json: JsonOption = False) -> None:
    """Show the faults in force."""
    from orchestrator.agent_client import find
    from orchestrator.status_text import render_fault

    faults = find(name, run_dir).get("/status")["faults"]
    if as_json:
        typer.echo(json.dumps(faults, indent=2))
        return
    for fault in faults:
        typer.echo(render_fault(fault))
    if not faults:
        typer.echo("no faults")


@fault_app.command()
def clear(name: NameOption = None, run_dir: RunDirOption = None) -> None:
    """Heal every link and port; dead nodes are brought back by `fault switch NODE restart`."""
    from orchestrator.agent_client import find

    _say("all links and ports healed", find(name, run_dir).post("/clear")["at_ns"])


def _say(what: str, at_ns: int) -> None:
    typer.echo(f"{what} at {at_ns / 1000:.3f} us")
