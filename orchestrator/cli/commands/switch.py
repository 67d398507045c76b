"""`mrcfabric switch`: shows the ports, queues and table of a running switch, and changes the settings of its queues.

Owns arguments and output; the switch daemon has the facts. A setting lasts until the daemon ends.
"""

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

import typer

from orchestrator.cli.flags import JsonOption, NameOption, RunDirOption

NodeArgument: TypeAlias = Annotated[str, typer.Argument(metavar="SWITCH", help="As p0-t0-1.")]
switch_app = typer.Typer(no_args_is_help=True, help="Look at a switch's ports and table; set trimming and marking.")


class Toggle(StrEnum):
    """On or off."""

    ON = "on"
    OFF = "off"


def register(app: typer.Typer) -> None:
    """Add `switch`."""
    app.add_typer(switch_app, name="switch")


@switch_app.command()
def show(
    node: NodeArgument,
    port: Annotated[int | None, typer.Option("--port", "-p", min=0, help="One port only, in full.")] = None,
    usids: Annotated[bool, typer.Option("--usids", help="The table with its counters instead of the ports.")] = False,
    routes: Annotated[bool, typer.Option("--routes", help="Sessions and routes, where switches route.")] = False,
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a switch's ports are set to, what their queues did, and what it dropped."""
    client = _client(node, name, run_dir, port)
    if usids:
        rows = client.call(node, "usids")
        typer.echo(json.dumps(rows, indent=2) if as_json else render_usids(rows))
        return
    if routes:
        found = client.call(node, "routes")
        typer.echo(json.dumps(found, indent=2) if as_json else render_routes(found))
        return
    rows = client.call(node, "ports", {} if port is None else {"port": port})
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    elif port is not None:
        typer.echo(render_port(rows[0]))
    else:
        core = client.call(node, "counters")["core"]
        typer.echo(render_switch(node, core, rows))


@switch_app.command("set")
def set_switch(
    node: NodeArgument,
    port: Annotated[int | None, typer.Option("--port", "-p", min=0, help="One port; without it, all of them.")] = None,
    trim: Annotated[Toggle | None, typer.Option("--trim", help="Off: what finds the queue full is dropped.")] = None,
    trim_dscp: Annotated[
        int | None, typer.Option("--trim-dscp", min=0, max=63, help="With --trim on: code point of trimmed packets.")
    ] = None,
    ecn: Annotated[Toggle | None, typer.Option("--ecn", help="Whether departures are marked.")] = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Switch trimming or marking on or off, at one port or at all, while packets are under way."""
    from mrcfabric.errors import ConfigError

    if trim is None and ecn is None:
        raise ConfigError("switch set", "nothing is to be set", "--trim on|off, --ecn on|off")
    if trim_dscp is not None and trim is not Toggle.ON:
        raise ConfigError("--trim-dscp", "says how trimmed packets leave", "give --trim on too")
    where = {} if port is None else {"port": port}
    dscp = {} if trim_dscp is None else {"dscp": trim_dscp}
    client = _client(node, name, run_dir, port)
    for what, toggle, more in (("trim", trim, dscp), ("ecn", ecn, {})):
        if toggle is not None:
            args = {"on": toggle is Toggle.ON, **where, **more}
            answer = client.call(node, "command", {"op": f"set_{what}", "args": args})
            ports = "all ports" if port is None else f"port {port}"
            typer.echo(f"{node} {ports}: {what} {toggle.value} at {answer['at_ns'] / 1000:.3f} us")


def _client(node: str, name: str | None, run_dir: Any, port: int | None = None) -> Any:
    """The fabric's agent. Raises ConfigError when the fabric has no switch of this name, or the switch no such port."""
    from mrcfabric.errors import ConfigError
    from mrcfabric.topology import Topology
    from orchestrator.client.agent_client import find

    client = find(name, run_dir)
    topology = Topology.from_dict(client.state["topology"])
    topology.own_usid(node)
    ports = len(topology.ports(node))
    if port is not None and port >= ports:
        raise ConfigError(f"--port {port}", f"{node} has no such port", f"0 to {ports - 1}")
    return client


def render_switch(node: str, core: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """The switch's drops, and a line per port."""
    drops = ", ".join(f"{count} {reason}" for reason, count in core["drops"].items() if count) or "nothing"
    head = (
        "port",
        "to",
        "trim",
        "ecn",
        "sent",
        "bytes",
        "waiting",
        "marked",
        "trimmed",
        "t-queued",
        "t-drop",
        "dropped",
    )
    lines = [f"{node}: {core['received']} packets received, dropped: {drops}"]
    return "\n".join([*lines, *_table([head, *map(_port_cells, rows)])])


def _port_cells(row: dict[str, Any]) -> tuple[str, ...]:
    data, control = row["data"], row["control"]
    return (
        str(row["port"]),
        row["towards"],
        f"{row['trim_dscp']}" if row["trim"] else "off",
        "on" if row["ecn"] else "off",
        str(data["sent_packets"] + control["sent_packets"]),
        str(data["sent_bytes"] + control["sent_bytes"]),
        str(data["waiting_packets"] + control["waiting_packets"]),
        str(data["marked"]),
        str(data["trimmed"]),
        str(control["trim_admitted"]),
        str(control["trim_dropped"]),
        str(data["dropped"] + control["dropped"] + control["trimmed_dropped"] + sum(row["lost"].values())),
    )


def render_port(row: dict[str, Any]) -> str:
    """One port in full: settings, then both queues side by side, then lossless classes if it has any."""
    trim = f"to {row['trim_bytes']} bytes as DSCP {row['trim_dscp']}" if row["trim"] else "off"
    ecn = f"{row['ecn_min_bytes']} to {row['ecn_max_bytes']} bytes" if row["ecn"] else "off"
    lost = ", ".join(f"{count} {reason}" for reason, count in row["lost"].items())
    classes = row.get("classes", {})
    # A port of eight classes has strict ones in place of a share.
    share = f"control share {row['control_share_ppm'] / 10_000:g} %"
    if classes:
        share = f"lossless classes {', '.join(classes)}"
    lines = [
        f"port {row['port']} towards {row['towards']}, {row['rate_bps'] / 1e9:g} Gb/s",
        f"trim {trim}; ecn {ecn}; {share}",
        f"lost on the link: {lost}",
    ]
    lines += _side_by_side("queue", {name: row[name] for name in ("data", "control")})
    return "\n".join([*lines, *_side_by_side("class", classes)] if classes else lines)


def _side_by_side(head: str, columns: dict[str, dict[str, int]]) -> list[str]:
    """A table with one row for each figure that any of the columns has."""
    keys = dict.fromkeys(key for column in columns.values() for key in column)
    cells = [(key.replace("_", " "), *(str(column.get(key, "-")) for column in columns.values())) for key in keys]
    return _table([(head, *columns), *cells])


def render_usids(rows: list[dict[str, Any]]) -> str:
    """The table: the port of each entry, and its packets and bytes."""
    cells = [
        (f"{row['usid']:04x}", row["kind"], *(str(row[key]) for key in ("port", "packets", "bytes"))) for row in rows
    ]
    return "\n".join(_table([("uSID", "kind", "port", "packets", "bytes"), *cells]))


def render_routes(found: dict[str, list[dict[str, Any]]]) -> str:
    """A line for each session, then one for each route: its group, and what stands in the table where that differs."""
    keys = ("port", "neighbor", "asn", "state", "prefixes", "updates_heard", "updates_sent")
    sessions = [(*(str(row[key]) for key in keys), _bfd(row["bfd"])) for row in found["sessions"]]
    routes = [
        (
            row["prefix"],
            "own" if row["own"] else _joined(row["ports"], ",") or "none",
            _joined(row["as_path"], " "),
            str(row["paths"]),
            "yes" if row["written"] == row["ports"] else _joined(row["written"], ",") or "no",
        )
        for row in found["routes"]
    ]
    heads = ("port", "neighbor", "AS", "state", "prefixes", "heard", "sent", "BFD")
    lines = _table([heads, *sessions])
    return "\n".join([*lines, "", *_table([("prefix", "ports", "AS path", "paths", "in the table"), *routes])])


def _bfd(up: bool | None) -> str:
    return "-" if up is None else "up" if up else "down"


def _joined(values: list[int], between: str) -> str:
    return between.join(map(str, values))


def _table(lines: Iterable[tuple[str, ...]]) -> list[str]:
    """Cells in columns, right-aligned."""
    rows = list(lines)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
