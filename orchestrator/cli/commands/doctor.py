"""`mrcfabric doctor`: whether this machine can carry a fabric, and what to do where it cannot.

Starts nothing. `orchestrator.hosts.doctor` has the checks.
"""

import json
from dataclasses import asdict

import typer

from orchestrator.cli.flags import (
    DelayOption,
    EvsOption,
    FileArgument,
    JsonOption,
    NicsOption,
    PackOption,
    PlanesOption,
    RateOption,
    SetOption,
    T0Option,
    T1Option,
    overrides,
)

EXIT_LACKS = 1


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(
    file: FileArgument = None,
    pack: PackOption = "none",
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
    """Say what this machine has and lacks for a fabric, with a remedy for each.

    Exit codes: 0 it can carry it, 1 it cannot, 2 bad input.
    """
    from mrcfabric.topology_file import read
    from orchestrator.cli.progress import waiting
    from orchestrator.hosts.doctor import examine
    from orchestrator.hosts.placement.layout import pack_of

    flags = overrides(
        settings, planes=planes, t0=t0, t1=t1, nics_per_t0=nics_per_t0, rate=rate, link_delay=link_delay, evs=evs
    )
    with waiting("examining this machine", terminal_only=True):
        checks = list(examine(read(file, flags).topology, pack_of(pack)))
    if as_json:
        typer.echo(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        for check in checks:
            typer.echo(check.line())
    if any(check.needed and not check.holds for check in checks):
        raise typer.Exit(EXIT_LACKS)
