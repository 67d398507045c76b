"""`mrcfabric plan`: a topology on paper, and the placement of its nodes on hosts.

Starts nothing and writes nothing. `orchestrator.planning.plan` makes and formats a plan,
`orchestrator.hosts.placement.placement_view` does so for hosts.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.flags import (
    ENGINE,
    DelayOption,
    EngineOption,
    EvsOption,
    FileArgument,
    InventoryOption,
    JsonOption,
    NicsOption,
    NodesPerProcessOption,
    PlanesOption,
    RateOption,
    SetOption,
    SystemOption,
    T0Option,
    T1Option,
    over_hosts,
    overrides,
    refuse_alone,
    say,
    say_limits,
)

if TYPE_CHECKING:
    from mrcfabric.topology import Topology
    from orchestrator.hosts.placement.budget import Budget


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(plan)


def plan(
    file: FileArgument = None,
    system: SystemOption = None,
    fib: Annotated[str | None, typer.Option("--fib", metavar="SWITCH", help="Static table of a switch.")] = None,
    nic: Annotated[str | None, typer.Option("--nic", metavar="NIC", help="Ports and ways of a NIC.")] = None,
    towards: Annotated[str | None, typer.Option("--towards", metavar="NIC", help="With --nic: ways to whom.")] = None,
    state: Annotated[bool, typer.Option("--state", help="What the state of a NIC takes, in bytes.")] = False,
    qps: Annotated[int | None, typer.Option("--qps", metavar="N", help="With --state: QPs of a NIC.")] = None,
    peers: Annotated[int | None, typer.Option("--peers", metavar="N", help="With --state: NICs they lead to.")] = None,
    inventory: InventoryOption = None,
    engine: EngineOption = ENGINE,
    nodes_per_process: NodesPerProcessOption = None,
    planes: PlanesOption = None,
    t0: T0Option = None,
    t1: T1Option = None,
    nics_per_t0: NicsOption = None,
    rate: RateOption = None,
    link_delay: DelayOption = None,
    evs: EvsOption = None,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show sizes, figures and tables of a topology, or who would run where, without starting anything."""
    from mrcfabric.errors import ConfigError
    from mrcfabric.topology_file import read
    from orchestrator.planning import plan as plans

    sizes = {"planes": planes, "t0": t0, "t1": t1, "nics_per_t0": nics_per_t0, "evs": evs}
    flags = overrides(settings, system=system, rate=rate, link_delay=link_delay, **sizes)
    source = read(file, flags)
    if towards and not nic:
        raise ConfigError("--towards", "says where to, but not from where", "add --nic NIC")
    if not state and (qps or peers):
        raise ConfigError("--qps, --peers", "say how many, but not of what", "add --state")
    hosts = over_hosts(inventory, engine)
    if hosts and (fib or nic or state):
        option = "--inventory" if inventory else f"--engine {engine}"
        raise ConfigError(option, "shows hosts, not tables", "--fib, --nic and --state go without it")
    if not hosts:
        refuse_alone(engine, nodes_per_process)
    try:
        document = plans.summary(source.topology)
    except ConfigError as error:
        raise source.locate(error) from None
    if fib:
        document["fib"] = plans.fib_table(source.topology, fib)
    if nic:
        document["nic"] = plans.nic_table(source.topology, nic, towards)
    if state:
        from orchestrator.planning.state_plan import QPS, state_table

        document["state"] = state_table(source.topology, QPS if qps is None else qps, peers)
    say_limits(source.topology)
    if hosts:
        _show_hosts(_budget(source.topology, inventory, engine, nodes_per_process), document, as_json)
    else:
        typer.echo(json.dumps(document, indent=2) if as_json else plans.render(document))


def _budget(topology: "Topology", file: Path | None, engine: str, nodes_per_process: int | None) -> "Budget":
    """What a fabric needs of the hosts of an inventory, or of those that an engine knows. Raises ConfigError."""
    from orchestrator.hosts.build import hosts_meant, placed_on
    from orchestrator.hosts.placement.budget import budget

    return budget(placed_on(topology, hosts_meant(file, engine, say), nodes_per_process))


def _show_hosts(found: "Budget", document: dict[str, Any], as_json: bool) -> None:
    """Print the placement, as JSON beside the summary of the topology; then each refusal as a line of its own."""
    from orchestrator.cli.main import EXIT_CONFIG
    from orchestrator.hosts.placement import placement_view

    document["placement"] = placement_view.document(found)
    text = placement_view.render(document["name"], document["placement"])
    typer.echo(json.dumps(document, indent=2) if as_json else text)
    if refusals := placement_view.refusals(document["placement"]):
        typer.echo("\n".join(refusals), err=True)
        raise typer.Exit(EXIT_CONFIG)
