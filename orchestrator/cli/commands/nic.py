"""`mrcfabric nic state` and `mrcfabric nic sram`: what the protocol state of NICs takes, and the cost of too little.

Owns arguments and output. The daemons have the figures of a running fabric (`state_report` of the NIC's transport);
`orchestrator.sim.state_sweep` runs the sweep.
"""

import json
from typing import Annotated, Any

import typer

from mrcfabric.errors import RefusedError
from orchestrator.cli.flags import JsonOption, NameOption, RunDirOption, SetOption
from orchestrator.client.agent_client import AgentClient

nic_app = typer.Typer(no_args_is_help=True, help="What the state of NICs takes, and what it costs not to fit.")

_MOMENTS = ("now", "peak", "reserved")
_QPS = 64
_QPS_MAX = 4_096
_BURST_MAX = 64


def register(app: typer.Typer) -> None:
    """Add `nic`."""
    app.add_typer(nic_app, name="nic")


@nic_app.command("state")
def state(
    node: Annotated[str | None, typer.Argument(metavar="NIC", help="As h003; all NICs without it.")] = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the bytes of protocol state: now, at the peak, and with every table at its limit."""
    from mrcfabric.topology import Topology
    from orchestrator.client.agent_client import find

    client = find(name, run_dir)
    topology = Topology.from_dict(client.state["topology"])
    if node is not None:
        topology.nic_index(node)
        reports = {node: client.call(node, "state")}
    else:
        reports = {one: _state_or_reason(client, one) for one in topology.nic_names()}
    if as_json:
        typer.echo(json.dumps(reports, indent=2))
    elif node is not None:
        typer.echo(render_one(node, reports[node]))
    else:
        typer.echo(render_all(reports))


def _state_or_reason(client: AgentClient, node: str) -> dict[str, Any]:
    """The report of a NIC, or `error`, so that a NIC that is down does not hide the others."""
    try:
        report: dict[str, Any] = client.call(node, "state")
    except RefusedError as error:
        return {"error": str(error)}
    return report


@nic_app.command("sram")
def sram(
    qps: Annotated[int, typer.Option("--qps", metavar="N", help=f"QPs of the NIC, up to {_QPS_MAX}.")] = _QPS,
    burst: Annotated[int, typer.Option("--burst", metavar="N", help="Packets per QP and round.")] = 1,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show goodput over the size of the on-chip memory, in virtual time: nothing is started."""
    from mrcfabric.errors import ConfigError
    from mrcfabric.topology_file import read
    from orchestrator.sim.state_sweep import CAPACITY_SHARES, PAIR_FLAGS, sweep

    if not 2 <= qps <= _QPS_MAX or not 1 <= burst <= _BURST_MAX:
        raise ConfigError("--qps, --burst", f"{qps} QPs, bursts of {burst}", f"2 to {_QPS_MAX} and 1 to {_BURST_MAX}")
    source = read(None, [*PAIR_FLAGS, *(settings or ())])
    capacities = [0, *(max(1, qps * share // 100) for share in CAPACITY_SHARES)]
    try:
        points = sweep(source.topology, capacities, qps=qps, burst=burst)
    except ConfigError as error:
        raise source.locate(error) from None
    rows = [point._asdict() for point in points]
    typer.echo(json.dumps(rows, indent=2) if as_json else render_sweep(rows))


def render_sweep(rows: list[dict[str, Any]]) -> str:
    """One line per size of memory."""
    lines = ["sram bytes     contexts  spilled  goodput Gb/s  formula Gb/s   hits  misses  evictions  resent"]
    for row in rows:
        size = f"{row['sram_bytes']:,}" if row["sram_bytes"] else "unlimited"
        lines.append(
            f"{size:<13}  {row['capacity']:>8}  {row['spilled']:>7}  {row['goodput_bps'] / 1e9:>12.1f}"
            f"  {row['predicted_bps'] / 1e9:>12.1f}  {row['hit_share']:>4.0%}  {row['misses']:>6,}"
            f"  {row['evictions']:>9,}  {row['retransmits']:>6,}"
        )
    return "\n".join(lines)


def render_all(reports: dict[str, dict[str, Any]]) -> str:
    """One line per NIC; for a NIC without figures, the reason."""
    lines = ["nic    QPs  spilled  peers         now        peak    reserved   slot  process (Python)"]
    for node, report in reports.items():
        if "error" in report:
            lines.append(report["error"])
            continue
        total, chip = report["total"], report["chip"]
        lines.append(
            f"{node:<5} {len(report['qps']):>4}  {chip['spilled']:>7}  {_peers(report):>5}"
            + "".join(f"  {total[moment]:>10,}" for moment in _MOMENTS)
            + f"  {chip['slot_bytes']:,}  {report['process_bytes']:,}"
        )
    return "\n".join(lines)


def _peers(report: dict[str, Any]) -> int:
    """NICs that QPs lead to. A transport that keeps nothing about destinations has no rows of them."""
    return len(report["peers"]) or len({row["peer_index"] for row in report["qps"]})


def render_one(node: str, report: dict[str, Any]) -> str:
    """The sums of one NIC, then each piece summed over its QPs, then its QPs."""
    chip, rows = report["chip"], report["qps"]
    size = f"{chip['sram_bytes']:,} bytes" if chip["sram_bytes"] else "unlimited"
    slot = f"a slot of {chip['slot_bytes']:,} bytes per QP"
    lines = [
        f"{node}: {len(rows)} QPs to {_peers(report)} NICs",
        f"on-chip memory {size}, {slot}; {chip['resident']} resident, {chip['spilled']} spilled",
        "",
        f"{'bytes on the chip':<18}" + "".join(f"{moment:>12}" for moment in _MOMENTS),
    ]
    for piece in rows[0]["now"]["pieces"] if rows else ():
        sums = [sum(row[moment]["pieces"][piece] for row in rows) for moment in _MOMENTS]
        note = "  (with the host)" if piece == "work_queue" else ""
        lines.append(f"{piece:<18}" + "".join(f"{one:>12,}" for one in sums) + note)
    if report["peers"]:
        shared = sum(row["bytes"] for row in report["peers"])
        lines.append(f"{'destinations':<18}" + f"{shared:>12,}" * len(_MOMENTS))
    for piece, now in report["nic"]["now"].items():
        lines.append(f"{piece:<18}{now:>12,}{now:>12,}{report['nic']['reserved'][piece]:>12,}")
    lines.append(f"{'total':<18}" + "".join(f"{report['total'][moment]:>12,}" for moment in _MOMENTS))
    lines += [
        "",
        "  qpn  peer  where     " + "".join(f"{moment:>12}" for moment in _MOMENTS) + "  Python objects, bytes",
    ]
    for row in rows:
        where = "on chip" if row["resident"] else "spilled"
        sizes = "".join(f"{row[moment]['on_chip']:>12,}" for moment in _MOMENTS)
        process = f"{row['process']['objects']:>10,} {row['process']['bytes']:>10,}"
        lines.append(f"{row['qpn']:>5}  {row['peer_index']:>4}  {where:<10}{sizes}{process}")
    return "\n".join(lines)
