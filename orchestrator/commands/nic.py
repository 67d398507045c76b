"""`mrcfabric nic state`: what the protocol state of a running fabric's NICs takes.

Owns arguments and what is printed; the figures are the daemons' (`nicd.core.state_report`).
"""

import json
from typing import Annotated, Any

import typer

from orchestrator.commands.fabric import JsonOption, NameOption, RunDirOption

nic_app = typer.Typer(no_args_is_help=True, help="Look into a running fabric's NICs.")

_MOMENTS = ("now", "peak", "reserved")


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
    from orchestrator.agent_client import find

    client = find(name, run_dir)
    topology = Topology.from_dict(client.state["topology"])
    if node is not None:
        topology.nic_index(node)
    nodes = [node] if node is not None else list(topology.nic_names())
    reports = {one: client.call(one, "state") for one in nodes}
    if as_json:
        typer.echo(json.dumps(reports, indent=2))
    elif node is not None:
        typer.echo(render_one(node, reports[node]))
    else:
        typer.echo(render_all(reports))


def render_all(reports: dict[str, dict[str, Any]]) -> str:
    """One line per NIC."""
    lines = ["nic    QPs  spilled  peers         now        peak    reserved   slot  process (Python)"]
    for node, report in reports.items():
        total, chip = report["total"], report["chip"]
        lines.append(
            f"{node:<5} {len(report['qps']):>4}  {chip['spilled']:>7}  {len(report['peers']):>5}"
            + "".join(f"  {total[moment]:>10,}" for moment in _MOMENTS)
            + f"  {chip['slot_bytes']:,}  {report['process_bytes']:,}"
        )
    return "\n".join(lines)


def render_one(node: str, report: dict[str, Any]) -> str:
    """The sums of one NIC, then each piece summed over its QPs, then its QPs."""
    chip, rows = report["chip"], report["qps"]
    size = f"{chip['sram_bytes']:,} bytes" if chip["sram_bytes"] else "unlimited"
    slot = f"a slot of {chip['slot_bytes']:,} bytes per QP"
    lines = [
        f"{node}: {len(rows)} QPs to {len(report['peers'])} NICs",
        f"on-chip memory {size}, {slot}; {chip['resident']} resident, {chip['spilled']} spilled",
        "",
        f"{'bytes on the chip':<18}" + "".join(f"{moment:>12}" for moment in _MOMENTS),
    ]
    for piece in rows[0]["now"]["pieces"] if rows else ():
        sums = [sum(row[moment]["pieces"][piece] for row in rows) for moment in _MOMENTS]
        note = "  (with the host)" if piece == "work_queue" else ""
        lines.append(f"{piece:<18}" + "".join(f"{one:>12,}" for one in sums) + note)
    peers = sum(row["bytes"] for row in report["peers"])
    lines.append(f"{'destinations':<18}" + f"{peers:>12,}" * len(_MOMENTS))
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
