"""`mrcfabric plan`: a topology on paper.

Nothing is started and nothing is written. What a plan holds and how it looks is `orchestrator.plan`'s.
"""

import json
from typing import Annotated

import typer

from orchestrator.flags import (
    DelayOption,
    EvsOption,
    FileArgument,
    JsonOption,
    NicsOption,
    PlanesOption,
    RateOption,
    SetOption,
    T0Option,
    T1Option,
    overrides,
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(plan)


def plan(
    file: FileArgument = None,
    fib: Annotated[str | None, typer.Option("--fib", metavar="SWITCH", help="Static table of a switch.")] = None,
    nic: Annotated[str | None, typer.Option("--nic", metavar="NIC", help="Ports and ways of a NIC.")] = None,
    towards: Annotated[str | None, typer.Option("--towards", metavar="NIC", help="With --nic: ways to whom.")] = None,
    state: Annotated[bool, typer.Option("--state", help="What the state of a NIC takes, in bytes.")] = False,
    qps: Annotated[int | None, typer.Option("--qps", metavar="N", help="With --state: QPs of a NIC.")] = None,
    peers: Annotated[int | None, typer.Option("--peers", metavar="N", help="With --state: NICs they lead to.")] = None,
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
    """Show sizes, figures and tables of a topology without starting anything."""
    from mrcfabric.errors import ConfigError
    from mrcfabric.topology_file import read
    from orchestrator import plan as plans

    flags = overrides(
        settings, planes=planes, t0=t0, t1=t1, nics_per_t0=nics_per_t0, rate=rate, link_delay=link_delay, evs=evs
    )
    source = read(file, flags)
    if towards and not nic:
        raise ConfigError("--towards", "says where to, but not from where", "add --nic NIC")
    if not state and (qps or peers):
        raise ConfigError("--qps, --peers", "say how many, but not of what", "add --state")
    try:
        document = plans.summary(source.topology)
    except ConfigError as error:
        raise source.locate(error) from None
    if fib:
        document["fib"] = plans.fib_table(source.topology, fib)
    if nic:
        document["nic"] = plans.nic_table(source.topology, nic, towards)
    if state:
        from orchestrator.state_plan import QPS, state_table

        document["state"] = state_table(source.topology, QPS if qps is None else qps, peers)
    typer.echo(json.dumps(document, indent=2) if as_json else plans.render(document))
