"""`mrcfabric manifests`: a fabric over the nodes of a Kubernetes cluster, as a folder for `kubectl apply -k`.

Owns arguments and output; starts nothing and contacts no cluster. `orchestrator.kubernetes` writes the folder's files.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrcfabric.errors import one_line
from orchestrator.cli.flags import (
    DelayOption,
    EvsOption,
    FileArgument,
    NicsOption,
    NodesPerProcessOption,
    PlanesOption,
    RateOption,
    SetOption,
    T0Option,
    T1Option,
    overrides,
)

if TYPE_CHECKING:
    from mrcfabric.topology import Topology
    from orchestrator.kubernetes.workloads import Workloads

NAMESPACE = "mrcfabric"
TOPOLOGY, SCENARIO = "topology.yaml", "scenario.yaml"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("manifests")(manifests)


def manifests(
    inventory: Annotated[
        Path,
        typer.Option("--inventory", metavar="FILE", help="Hosts in YAML: nodes of the cluster, and who runs where."),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder to write; empty, new, or of an earlier time.")
    ],
    file: FileArgument = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="SCENARIO", help="Carry a scenario out once; default: a fabric stands."),
    ] = None,
    image: Annotated[str | None, typer.Option("--image", help="Image of the pods; default: mrcfabric:VERSION.")] = None,
    namespace: Annotated[str, typer.Option("--namespace", help="Namespace of everything.")] = NAMESPACE,
    port_base: Annotated[
        int | None, typer.Option("--port-base", help="First port of the fabric on every host; default: 10048.")
    ] = None,
    nodes_per_process: NodesPerProcessOption = None,
    planes: PlanesOption = None,
    t0: T0Option = None,
    t1: T1Option = None,
    nics_per_t0: NicsOption = None,
    rate: RateOption = None,
    link_delay: DelayOption = None,
    evs: EvsOption = None,
    settings: SetOption = None,
) -> None:
    """Write Kubernetes manifests for a fabric on the hosts of an inventory: a pod per share, and the orchestrator's."""
    from importlib.metadata import version

    from orchestrator.hosts.build import placed
    from orchestrator.hosts.placement.budget import budget
    from orchestrator.hosts.placement.fit import refuse
    from orchestrator.kubernetes import folder
    from orchestrator.kubernetes.workloads import INVENTORY, PORT_BASE, Leading, Workloads

    flags = overrides(
        settings, planes=planes, t0=t0, t1=t1, nics_per_t0=nics_per_t0, rate=rate, link_delay=link_delay, evs=evs
    )
    files = {INVENTORY: inventory}
    if run is None:
        topology, name, source = _topology(file, flags), TOPOLOGY if file else "", file
    else:
        topology, name, source = _scenario(run, file, flags, settings, nodes_per_process), SCENARIO, run
    if source is not None:
        files[name] = source
    found = budget(placed(topology, inventory, nodes_per_process))
    refuse(found)
    leading = Leading("run" if run else "up", name, tuple(map(str, flags)), nodes_per_process)
    workloads = Workloads(found, leading, PORT_BASE if port_base is None else port_base)
    read = {name: path.read_bytes() for name, path in files.items()}
    folder.write(
        out, folder.files_of(workloads, read, image or f"mrcfabric:{version('mrcfabric')}", namespace), workloads
    )
    typer.echo(_summary(out, namespace, workloads))


def _topology(file: Path | None, flags: list[str]) -> "Topology":
    """The topology of the arguments. Raises ConfigError."""
    from mrcfabric.errors import ConfigError
    from mrcfabric.topology_file import read
    from orchestrator.planning import plan

    source = read(file, flags)
    try:
        plan.check(source.topology)
    except ConfigError as error:
        raise source.locate(error) from None
    return source.topology


def _scenario(
    file: Path, topology: Path | None, flags: list[str], settings: list[str] | None, nodes_per_process: int | None
) -> "Topology":
    """The topology of a scenario file. Raises ConfigError."""
    from mrcfabric.errors import ConfigError
    from orchestrator.scenario.resolve import load

    if topology is not None or len(flags) > len(settings or []):
        raise ConfigError(f"--run {file}", "has a fabric of its own", "change it with --set, as fabric.planes=8")
    if nodes_per_process is not None:
        raise ConfigError("--nodes-per-process", "goes without --run", "nodes_per_process in the inventory's rules")
    return load(str(file), settings or []).topology


def _summary(out: Path, namespace: str, workloads: "Workloads") -> str:
    from orchestrator.kubernetes.workloads import LEADER

    shares = len(workloads.hosts)
    at = "anywhere" if workloads.leader is None else f"on {workloads.leader.name}"
    kind = "deployment" if workloads.stands else "job"
    where = one_line(str(out))
    lines = [
        f"wrote {where}: fabric {workloads.fabric} in namespace {namespace}",
        f"  shares   {shares}: " + " ".join(host.name for host in workloads.hosts),
        f"  led      by a {kind} {at}",
        f"  keys     in {where}/secret, to be kept as the cluster's key is",
        f"  start    kubectl apply -k {where}",
        f"  look     kubectl -n {namespace} logs -f {kind}/{LEADER}",
    ]
    if workloads.stands:
        lines.append(f"           kubectl -n {namespace} exec {kind}/{LEADER} -- mrcfabric status")
    lines.append(f"  stop     kubectl delete -k {out}")
    return "\n".join(lines)
