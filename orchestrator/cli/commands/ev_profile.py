"""`mrcfabric ev profile` and `ev replace`: the EV profiles of a running NIC.

Owns arguments and output; the NIC decides what is possible, and gives the reason when it refuses
(`nicd.core.mrc.profile_control`).
"""

import json
from typing import Annotated, Any, TypeAlias

import typer

from orchestrator.cli.commands.ev import EvArgument, agent_beside, ev_app
from orchestrator.cli.flags import JsonOption, NameOption, NicArgument, RunDirOption, ev_number

ProfileArgument: TypeAlias = Annotated[int, typer.Argument(metavar="PROFILE", help="Its number; 0 is built in.")]
profile_app = typer.Typer(no_args_is_help=True, help="Make, configure and look at the EV profiles of a NIC.")
ev_app.add_typer(profile_app, name="profile")
SHOWN = ("profile", "state", "mode", "format", "count", "reserve", "min_active", "users", "denied")


@profile_app.command("list")
def list_profiles(
    nic: NicArgument, name: NameOption = None, run_dir: RunDirOption = None, as_json: JsonOption = False
) -> None:
    """Show a NIC's EV profiles."""
    rows = _call(nic, "ev_profiles", {}, name, run_dir)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        typer.echo("  ".join(f"{key}={row[key]}" for key in SHOWN))


@profile_app.command("show")
def show(
    nic: NicArgument,
    profile: ProfileArgument,
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the EVs of a profile that lists or has generated them, as a controller sees them."""
    rows = _call(nic, "ev_profile", {"profile": profile}, name, run_dir)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        typer.echo(f"0x{row['ev']:08x}  {row['state']:<11}  {row['value']}")
    if not rows:
        typer.echo(f"{nic}: profile {profile} holds no EVs (it draws them for each QP, or is not online yet)")


@profile_app.command("create")
def create(
    nic: NicArgument,
    profile: Annotated[int | None, typer.Option("--number", help="Its number; default: the next free one.")] = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Create an EV profile in state init."""
    _ask(nic, "create_ev_profile", {"profile": profile}, name, run_dir)


@profile_app.command("modify")
def modify(
    nic: NicArgument,
    profile: ProfileArgument,
    state: Annotated[str | None, typer.Option("--state", help="init, offline or online.")] = None,
    mode: Annotated[str | None, typer.Option("--mode", help="auto, explicit or generated.")] = None,
    kind: Annotated[str | None, typer.Option("--format", help="ecmp, stev, srv6 or srv6_srh.")] = None,
    fields: Annotated[str | None, typer.Option("--fields", help="Widths of the value's fields, as 32,16,16.")] = None,
    evs: Annotated[list[str] | None, typer.Option("--ev", help="Add VALUE[@PORT]; may be repeated.")] = None,
    rules: Annotated[
        list[str] | None, typer.Option("--rule", help="[PORT,PORT/]WIDTH:INIT[:MASK[:MIN:MAX]] ...; may be repeated.")
    ] = None,
    count: Annotated[int | None, typer.Option("--count", help="EVs to draw or generate.")] = None,
    reserve: Annotated[int | None, typer.Option("--reserve", help="How many of them are held back.")] = None,
    min_active: Annotated[int | None, typer.Option("--min-active", help="The floor of active EVs.")] = None,
    good_events: Annotated[bool | None, typer.Option("--good-events/--no-good-events")] = None,
    bad_events: Annotated[bool | None, typer.Option("--bad-events/--no-bad-events")] = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Change attributes of an EV profile, then its state."""
    args = {
        "profile": profile, "state": state, "mode": mode, "format": kind, "fields": fields, "evs": evs or None,
        "rules": rules or None, "count": count, "reserve": reserve, "min_active": min_active,
        "good_events": good_events, "bad_events": bad_events,
    }  # fmt: skip
    _ask(nic, "modify_ev_profile", args, name, run_dir)


@profile_app.command("destroy")
def destroy(nic: NicArgument, profile: ProfileArgument, name: NameOption = None, run_dir: RunDirOption = None) -> None:
    """Forget an EV profile that is not online."""
    _ask(nic, "destroy_ev_profile", {"profile": profile}, name, run_dir)


@profile_app.command("deny")
def deny(
    nic: NicArgument, profile: ProfileArgument, ev: EvArgument, name: NameOption = None, run_dir: RunDirOption = None
) -> None:
    """Bar an EV of a profile for all QPs that use it, now and later."""
    _ask(nic, "deny_profile_ev", {"profile": profile, "ev": ev_number(ev)}, name, run_dir)


@profile_app.command("allow")
def allow(
    nic: NicArgument, profile: ProfileArgument, ev: EvArgument, name: NameOption = None, run_dir: RunDirOption = None
) -> None:
    """Lift the bar on an EV of a profile."""
    _ask(nic, "allow_profile_ev", {"profile": profile, "ev": ev_number(ev)}, name, run_dir)


@ev_app.command()
def replace(
    nic: NicArgument,
    profile: ProfileArgument,
    ev: EvArgument,
    value: Annotated[str, typer.Argument(metavar="NEW", help="VALUE[@PORT] in the profile's format.")],
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Put another EV of the same plane in the place of one, in a profile and its QPs."""
    _ask(nic, "replace_ev", {"profile": profile, "ev": ev_number(ev), "value": value}, name, run_dir)


def _call(nic: str, op: str, args: dict[str, Any], name: NameOption, run_dir: RunDirOption) -> Any:
    return agent_beside(nic, name, run_dir).call(nic, op, args)


def _ask(nic: str, op: str, args: dict[str, Any], name: NameOption, run_dir: RunDirOption) -> None:
    """Send a command to the NIC and print its result in one line."""
    wanted = {key: value for key, value in args.items() if value is not None}
    answer = _call(nic, "command", {"op": op, "args": wanted}, name, run_dir)
    facts = " ".join(f"{key}={value}" for key, value in answer["result"].items())
    typer.echo(f"{op}: {nic} {facts}")
