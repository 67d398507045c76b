"""`mrcfabric validate`: whether topology files, scenario files, inventories and systems are good.

Starts nothing and writes nothing. `orchestrator.planning.plan`, `orchestrator.scenario`, `mrcfabric.topology_file` and
`orchestrator.hosts.placement.inventory_file` check the files; the outermost keys of a file tell which of the four it
is.
"""

from pathlib import Path
from typing import Annotated

import typer

from mrcfabric.errors import one_line
from orchestrator.cli.flags import InventoryOption, hosts_of

OF_SYSTEMS = frozenset({"about", "source"})
"""Keys that no other file has."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("validate")(validate)


def validate(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Topologies, scenarios, inventories and systems in YAML.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="In topologies as rate_bps=25G, in scenarios as fabric.planes=8."
        ),
    ] = None,
    inventory: InventoryOption = None,
) -> None:
    """Check files: of each the line and the mistake, or one line that says what it describes."""
    from mrcfabric.errors import ConfigError
    from orchestrator.cli.main import EXIT_CONFIG

    wrong = 0
    for file in files:
        try:
            typer.echo(f"{one_line(str(file))}: good: {_described(str(file), settings or [], inventory)}")
        except ConfigError as error:
            wrong += 1
            typer.echo(f"mrcfabric: {error}", err=True)
    if wrong:
        raise typer.Exit(EXIT_CONFIG)


def _described(file: str, settings: list[str], inventory: Path | None) -> str:
    """One line about a good file. Raises ConfigError for a bad one."""
    from mrcfabric.topology import Topology
    from orchestrator.hosts.placement.inventory_file import InventoryTable
    from orchestrator.scenario.model import ScenarioFile
    from orchestrator.yamlfile.document import FABRIC_KEY, top_keys

    own = {FABRIC_KEY, *ScenarioFile.__struct_encode_fields__} - set(Topology.__dataclass_fields__)
    keys = top_keys(file)
    if keys & set(InventoryTable.__struct_encode_fields__):
        return _inventory(file, settings)
    if keys & OF_SYSTEMS:
        return _system(file, settings)
    return _scenario(file, settings, inventory) if keys & own else _topology(file, settings, inventory)


def _topology(file: str | None, settings: list[str], inventory: Path | None) -> str:
    from mrcfabric.errors import ConfigError
    from mrcfabric.topology_file import read
    from orchestrator.planning import plan as plans

    source = read(file, settings)
    try:
        plans.check(source.topology)
    except ConfigError as error:
        raise source.locate(error) from None
    good = source.topology
    if (hosts := hosts_of(inventory)) is not None:
        hosts(good)
    return (
        f"{good.name}, {good.planes} planes of {good.t0_per_plane} T0s and {good.t1_per_plane} T1s, "
        f"{good.nics:,} NICs, {good.nodes:,} nodes"
    )


def _system(file: str, settings: list[str]) -> str:
    """A system, tried beneath the demonstration's settings."""
    from mrcfabric import bundles
    from mrcfabric.topology_file import read_system

    path = file if bundles.is_path(file) else f"./{file}"
    system = read_system(path)
    _topology(None, [f"system={path}", *settings], None)
    count = sum(map(len, system.tables.values()))
    return f"system {system.name}, {count} setting{'' if count == 1 else 's'}: {system.about}"


def _inventory(file: str, settings: list[str]) -> str:
    from mrcfabric.errors import ConfigError
    from orchestrator.hosts.placement.inventory_file import load

    if settings:
        raise ConfigError(f"--set {settings[0]}", f"says nothing about the inventory {file}")
    inventory = load(file)
    count, rules = len(inventory.hosts), inventory.rules
    told = sum(host.cores is not None for host in inventory.hosts)
    cores = sum(host.cores or 0 for host in inventory.hosts)
    known = f"{cores:,} cores" if told == count else f"{told or 'none'} of them tell their cores"
    placed = f"nics {rules.nics}, switches {rules.switches}"
    return f"inventory, {count} host{'' if count == 1 else 's'}, {known}, IPv{inventory.ip_version}, {placed}"


def _scenario(file: str, settings: list[str], inventory: Path | None) -> str:
    from orchestrator.scenario.resolve import load

    plan = load(file, settings, hosts=hosts_of(inventory))
    counted = (
        (len(plan.programs), "workload"),
        (len(plan.faults), "fault"),
        (len(plan.triggers), "condition"),
        (len(plan.expectations), "expectation"),
    )
    words = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counted if count]
    if plan.unplaced is not None:
        words.append("hosts not checked: that needs --inventory FILE")
    return ", ".join([f"scenario {plan.name}, {plan.topology.nics:,} NICs", *words])
