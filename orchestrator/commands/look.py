"""`mrcfabric ev` and `mrcfabric events`: what a running fabric's NICs think of their paths, and what happened where.

Owns arguments and what is printed; the facts are the daemons' and the agent's.
"""

import json
import time
from collections import Counter
from typing import Annotated, Any, TypeAlias

import typer

from orchestrator.agent_client import AgentClient
from orchestrator.commands.fabric import JsonOption, NameOption, RunDirOption

NicArgument: TypeAlias = Annotated[str, typer.Argument(metavar="NIC", help="As h003.")]
QpnArgument: TypeAlias = Annotated[int, typer.Argument(metavar="QPN", help="One of the NIC's QPs.")]
EvArgument: TypeAlias = Annotated[str, typer.Argument(metavar="EV", help="As `ev list` prints it, or any integer.")]

FOLLOW_POLL_S = 0.3
EVENTS_PER_CALL = 1000
EV_STATES = ("good", "skip", "assumed_bad", "denied")

ev_app = typer.Typer(no_args_is_help=True, help="Look at the EVs of a NIC's QPs; bar one, or lift the bar.")


def register(app: typer.Typer) -> None:
    """Add `ev` and `events`."""
    app.add_typer(ev_app, name="ev")
    app.command("events")(events)


@ev_app.command("list")
def list_evs(
    nic: NicArgument,
    qpn: Annotated[int | None, typer.Option("--qpn", help="One QP only.")] = None,
    state: Annotated[str | None, typer.Option("--state", help="Only EVs in this state, as assumed_bad.")] = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show every EV of a NIC's QPs with its plane, path and state."""
    from mrcfabric.errors import ConfigError
    from orchestrator.agent_client import find

    if state is not None and state.lower() not in EV_STATES:
        raise ConfigError(f"--state {state}", "no such state", "one of " + ", ".join(EV_STATES))
    client = find(name, run_dir)
    _check_nic(client, nic)
    rows = [
        {"qpn": number, **row}
        for number in ([qpn] if qpn is not None else _qpns(client, nic))
        for row in client.call(nic, "ev_table", {"qpn": number})
        if state is None or row["state"].lower() == state.lower()
    ]
    typer.echo(json.dumps(rows, indent=2) if as_json else render_evs(nic, rows, state is not None))


def _check_nic(client: AgentClient, nic: str) -> None:
    """Raises ConfigError when the fabric has no NIC of this name."""
    from mrcfabric.topology import Topology

    Topology.from_dict(client.state["topology"]).nic_index(nic)


def _qpns(client: AgentClient, nic: str) -> list[int]:
    return [row["qpn"] for row in client.call(nic, "qp_table")]


def render_evs(nic: str, rows: list[dict[str, Any]], filtered: bool = False) -> str:
    """A table, and the sums per state."""
    if not rows:
        return f"{nic}: no EVs in that state" if filtered else f"{nic}: no EVs (a QP has them once it is connected)"
    lines = ["  qpn          ev  plane  path  state        use"]
    lines += [
        f"{row['qpn']:>5}  0x{row['ev']:08x}  {row['plane']:>5}  {row['path']:>4}  {row['state'].lower():<11}  "
        + ("active" if row["active"] else "reserve")
        for row in rows
    ]
    sums = Counter(row["state"].lower() for row in rows)
    lines.append(f"{len(rows)} EVs: " + ", ".join(f"{count} {state}" for state, count in sums.most_common()))
    return "\n".join(lines)


@ev_app.command()
def deny(
    nic: NicArgument, qpn: QpnArgument, ev: EvArgument, name: NameOption = None, run_dir: RunDirOption = None
) -> None:
    """Bar an EV, as a controller does: it is not used and not probed until allowed again."""
    _bar("deny_ev", nic, qpn, ev, name, run_dir)


@ev_app.command()
def allow(
    nic: NicArgument, qpn: QpnArgument, ev: EvArgument, name: NameOption = None, run_dir: RunDirOption = None
) -> None:
    """Lift the bar on an EV."""
    _bar("allow_ev", nic, qpn, ev, name, run_dir)


def _bar(op: str, nic: str, qpn: int, ev: str, name: NameOption, run_dir: RunDirOption) -> None:
    from mrcfabric.errors import ConfigError
    from orchestrator.agent_client import find

    try:
        number = int(ev, 0)
    except ValueError:
        raise ConfigError(ev, "is no EV", "wanted: an integer, as 0x00010203") from None
    client = find(name, run_dir)
    _check_nic(client, nic)
    answer = client.call(nic, "command", {"op": op, "args": {"qpn": qpn, "ev": number}})
    typer.echo(f"{op.removesuffix('_ev')}: {nic} QP {qpn} EV 0x{number:08x} at {answer['at_ns'] / 1000:.3f} us")


def events(
    node: Annotated[
        str | None, typer.Argument(metavar="[NODE]", help="A node; without one the agent's journal.")
    ] = None,
    since: Annotated[int, typer.Option("--since", help="Only after this number.")] = 0,
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many of the latest.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what happened: deaths and faults, or the events inside a node."""
    from orchestrator.agent_client import find

    client = find(name, run_dir)
    found, number = _events_after(client, node, since)
    _print(found[-lines:] if lines else [], as_json)
    while follow:
        time.sleep(FOLLOW_POLL_S)
        found, number = _events_after(client, node, number)
        _print(found, as_json)


def _events_after(client: AgentClient, node: str | None, number: int) -> tuple[list[dict[str, Any]], int]:
    """Events after a number, and the number to go on from."""
    if node is None:
        notes = client.get(f"/journal?after={number}")
        return notes, notes[-1]["n"] if notes else number
    found: list[dict[str, Any]] = []
    while True:
        answer = client.call(node, "events", {"since": number, "limit": EVENTS_PER_CALL})
        found += answer["events"]
        number = answer["last"]
        if not answer["more"]:
            return found, number


def _print(found: list[dict[str, Any]], as_json: bool) -> None:
    from orchestrator.journal import describe

    for one in found:
        typer.echo(json.dumps(one) if as_json else describe(one))
