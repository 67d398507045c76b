"""`mrcfabric ev`: what a running NIC knows of its paths, and a controller's commands about them.

Owns arguments and output; the daemons have the facts. `ev_profile` has the commands for EV profiles.
"""

import json
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from orchestrator.cli.flags import JsonOption, NameOption, NicArgument, PlaneArgument, RunDirOption, ev_number
from orchestrator.client.agent_client import AgentClient

if TYPE_CHECKING:
    from mrcfabric.topology import Topology
    from nicd.core.mrc.deny_list import Entry

QpnArgument: TypeAlias = Annotated[int, typer.Argument(metavar="QPN", help="One of the NIC's QPs.")]
EvArgument: TypeAlias = Annotated[str, typer.Argument(metavar="EV", help="As `ev list` prints it, or any integer.")]
PathOption: TypeAlias = Annotated[int | None, typer.Option("--path", help="One path (T1) of the plane only.")]
PeerOption: TypeAlias = Annotated[str | None, typer.Option("--peer", metavar="NIC", help="Towards one NIC only.")]
CutOffOption: TypeAlias = Annotated[bool, typer.Option("--cut-off", help="Even if this leaves no path to a NIC.")]

PEERS_NAMED = 4
QPS_AT_ONCE = 256
"""QPs of one question: with 256 EVs each an answer of some MiB."""
_CUT_OFF = "--cut-off denies it all the same"
PROBE_POLL_S = 0.1
PROBE_WALL_S = 60.0

ev_app = typer.Typer(no_args_is_help=True, help="Look at the EVs of a NIC's QPs; bar one, or lift the bar.")


def register(app: typer.Typer) -> None:
    """Add `ev`."""
    app.add_typer(ev_app, name="ev")


@ev_app.command("list")
def list_evs(
    nic: NicArgument,
    towards: Annotated[str | None, typer.Argument(metavar="[NIC]", help="Only QPs towards this NIC.")] = None,
    qpn: Annotated[int | None, typer.Option("--qpn", help="One QP only.")] = None,
    state: Annotated[str | None, typer.Option("--state", help="Only EVs in this state, as assumed_bad.")] = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show every EV of a NIC's QPs with its plane, path and state; of all QPs, or of those towards one other NIC."""
    from mrcfabric.errors import ConfigError
    from nicd.core.ev_state import EV_STATES

    if state is not None and state.lower() not in EV_STATES:
        raise ConfigError(f"--state {state}", "no such state", "one of " + ", ".join(EV_STATES))
    client = agent_beside(nic, name, run_dir)
    if towards is None and qpn is not None:
        rows = [{"qpn": qpn, **row} for row in client.call(nic, "ev_table", {"qpn": qpn})]
    else:
        rows = _evs(client, nic, _qpns(client, nic, towards, qpn))
    rows = [row for row in rows if state is None or row["state"].lower() == state.lower()]
    way = nic if towards is None else f"{nic} to {towards}"
    typer.echo(json.dumps(rows, indent=2) if as_json else render_evs(way, rows, state is not None))


def agent_beside(nic: str, name: str | None, run_dir: Path | None) -> AgentClient:
    """The agent of the chosen fabric. Raises ConfigError when it has no NIC of this name, or its NICs have no EVs."""
    from orchestrator.client.agent_client import find
    from orchestrator.planning.abilities import need_mrc, sprays_entropies

    client = find(name, run_dir)
    topology = _topology(client)
    topology.nic_index(nic)
    paths = "entropies choose paths" if sprays_entropies(topology) else "each QP keeps to one path"
    hint = f"{paths}: `mrcfabric events` tells of QPs, `mrcfabric capture` shows their packets"
    need_mrc(topology, nic, "only MRC has EVs", hint)
    return client


def _topology(client: AgentClient) -> "Topology":
    from mrcfabric.topology import Topology

    return Topology.from_dict(client.state["topology"])


def _index_of(client: AgentClient, nic: str) -> int:
    return _topology(client).nic_index(nic)


def _peer_of(client: AgentClient, nic: str, peer: str) -> int:
    """Raises ConfigError for what is no NIC, and for the NIC itself."""
    from mrcfabric.errors import ConfigError

    index = _index_of(client, peer)
    if peer == nic:
        raise ConfigError(f"--peer {peer}", f"{nic} has no path towards itself", "the name of another NIC")
    return index


def _evs(client: AgentClient, nic: str, qpns: list[int]) -> list[dict[str, Any]]:
    """The EVs of QPs, with as few questions as answers of a bounded size allow."""
    groups = [qpns[start : start + QPS_AT_ONCE] for start in range(0, len(qpns), QPS_AT_ONCE)]
    return [row for group in groups for row in client.call(nic, "ev_tables", {"qpns": group})]


def _qpns(client: AgentClient, nic: str, towards: str | None, qpn: int | None) -> list[int]:
    """QPNs of the NIC's QPs, or of those towards another NIC. Raises ConfigError when there are none of the latter."""
    from mrcfabric.errors import ConfigError

    rows = client.call(nic, "qp_table")
    if towards is None:
        return [row["qpn"] for row in rows]
    peer = _index_of(client, towards)
    found = [row["qpn"] for row in rows if row.get("peer_index") == peer and qpn in (None, row["qpn"])]
    if not found:
        what = f"has no QP towards {towards}" if qpn is None else f"has no QP {qpn} towards {towards}"
        raise ConfigError(nic, what, f"mrcfabric ev list {nic} shows those it has")
    return found


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
    nic: NicArgument,
    qpn: QpnArgument,
    ev: EvArgument,
    cut_off: CutOffOption = False,
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Bar an EV, as a controller does: it is not used and not probed until allowed again."""
    from mrcfabric.errors import RefusedError

    number = ev_number(ev)
    if not cut_off:
        rows = agent_beside(nic, name, run_dir).call(nic, "ev_table", {"qpn": qpn})
        others = [row for row in rows if row["ev"] != number]
        if len(others) < len(rows) and all(row["state"] == "DENIED" for row in others):
            raise RefusedError(f"QP {qpn} of {nic} has no other EV that is not denied, and would fail; {_CUT_OFF}")
    _bar("deny_ev", nic, qpn, ev, name, run_dir)


@ev_app.command()
def allow(
    nic: NicArgument, qpn: QpnArgument, ev: EvArgument, name: NameOption = None, run_dir: RunDirOption = None
) -> None:
    """Lift the bar on an EV."""
    _bar("allow_ev", nic, qpn, ev, name, run_dir)


def _bar(op: str, nic: str, qpn: int, ev: str, name: NameOption, run_dir: RunDirOption) -> None:
    number = ev_number(ev)
    client = agent_beside(nic, name, run_dir)
    answer = client.call(nic, "command", {"op": op, "args": {"qpn": qpn, "ev": number}})
    typer.echo(f"{op.removesuffix('_ev')}: {nic} QP {qpn} EV 0x{number:08x} at {answer['at_ns'] / 1000:.3f} us")


@ev_app.command("deny-path")
def deny_path(
    nic: NicArgument,
    plane: PlaneArgument,
    path: PathOption = None,
    peer: PeerOption = None,
    cut_off: CutOffOption = False,
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Bar a path, or a whole plane, for all QPs of a NIC, those to come and their acknowledgements included."""
    client = agent_beside(nic, name, run_dir)
    if not cut_off:
        _keep_a_path(client, nic, (plane, path, None if peer is None else _peer_of(client, nic, peer)))
    _bar_path("deny_paths", nic, plane, path, peer, name, run_dir)


@ev_app.command("allow-path")
def allow_path(
    nic: NicArgument,
    plane: PlaneArgument,
    path: PathOption = None,
    peer: PeerOption = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Lift the bar on a path; without --path and --peer, all bars of the plane."""
    _bar_path("allow_paths", nic, plane, path, peer, name, run_dir)


def _keep_a_path(client: AgentClient, nic: str, entry: "Entry") -> None:
    """Raises RefusedError when this entry on the NIC's deny list takes the last path to a peer away."""
    from mrcfabric.errors import RefusedError
    from orchestrator.planning.cut_off import cut_off

    topology = _topology(client)
    listed = [(row["plane"], row["path"], row["peer_index"]) for row in client.call(nic, "denied_paths")]
    number = topology.nic_index(nic)
    before = cut_off(topology, number, listed)
    peers = [peer for peer in cut_off(topology, number, [*listed, entry]) if peer not in before]
    if peers:
        named = ", ".join(peers[:PEERS_NAMED]) + (
            f" and {len(peers) - PEERS_NAMED} more" if peers[PEERS_NAMED:] else ""
        )
        raise RefusedError(f"{nic} would have no path left to {named}, and its QPs to them would fail; {_CUT_OFF}")


def _bar_path(
    op: str, nic: str, plane: int, path: int | None, peer: str | None, name: NameOption, run_dir: RunDirOption
) -> None:
    client = agent_beside(nic, name, run_dir)
    args = {"plane": plane, "path": path, "peer_index": None if peer is None else _peer_of(client, nic, peer)}
    result = client.call(nic, "command", {"op": op, "args": args})["result"]
    way = f"plane {plane}" + ("" if path is None else f" path {path}") + ("" if peer is None else f" towards {peer}")
    changed, entries = result["evs"], result["entries"]
    typer.echo(f"{op.removesuffix('_paths')}: {nic} {way}: {changed} EVs changed, {entries} entries on the list")


@ev_app.command("probe")
def probe(
    nic: NicArgument,
    qpn: QpnArgument,
    evs: Annotated[list[str] | None, typer.Option("--ev", help="This EV; may be repeated. Default: all.")] = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the peer on EVs of a QP, barred ones too, and show who answered and how soon; states stay as they are."""
    client = agent_beside(nic, name, run_dir)
    args = {"qpn": qpn, "evs": [f"0x{ev_number(ev):08x}" for ev in evs or ()] or None}
    batch = client.call(nic, "command", {"op": "probe_evs", "args": args})["result"]["batch"]
    deadline_s = time.monotonic() + PROBE_WALL_S
    answer = client.call(nic, "ev_probes", {"batch": batch})
    while not answer["done"] and time.monotonic() < deadline_s:
        time.sleep(PROBE_POLL_S)
        answer = client.call(nic, "ev_probes", {"batch": batch})
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    for row in answer["rows"]:
        rtt = "" if row["rtt_ns"] is None else f"  {row['rtt_ns'] / 1000:.3f} us, answer by port {row['answer_port']}"
        typer.echo(f"0x{row['ev']:08x}  port {row['port']}  {row['outcome']}{rtt}")


@ev_app.command("denied")
def list_denied(
    nic: NicArgument, name: NameOption = None, run_dir: RunDirOption = None, as_json: JsonOption = False
) -> None:
    """Show the paths that no QP of a NIC may use."""
    client = agent_beside(nic, name, run_dir)
    rows = client.call(nic, "denied_paths")
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        path, peer = ("all" if row[key] is None else row[key] for key in ("path", "peer_index"))
        typer.echo(f"plane {row['plane']}  path {path}  peer {peer}")
    if not rows:
        typer.echo(f"{nic}: no path is denied")


@ev_app.command("events")
def ev_events(
    nic: NicArgument,
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most so many.")] = 256,
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take EV events off a NIC's queue: EVs that became ASSUMED_BAD or GOOD, and how many events were lost."""
    client = agent_beside(nic, name, run_dir)
    for event in client.call(nic, "ev_events", {"limit": limit}):
        lost = f"  ({event['drop_count']} lost before it)" if event["drop_count"] else ""
        what = f"profile {event['profile']} QP {event['qpn']} EV 0x{event['ev']:08x} port {event['port']}"
        typer.echo(json.dumps(event) if as_json else f"{event['at_ns'] / 1000:.3f} us  {what}  {event['state']}{lost}")
