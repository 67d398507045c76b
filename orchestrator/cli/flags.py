"""Command-line parameters that several commands share: which topology, which running fabric, which node of it.

Owns their names and help texts, the spelling of instants and EVs, and the order of precedence: file, then the size
flags, then `--set`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, overload

import typer

from mrcfabric.naming import shown

if TYPE_CHECKING:
    from mrcfabric.topology import Topology
    from orchestrator.hosts.cluster import Cluster
    from orchestrator.scenario.resolve import Hosts

FileArgument: TypeAlias = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="Topology in YAML; the demonstration's without one.")
]
SetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a setting, as rate_bps=25G or nic.rto_ns=200us."),
]
SystemOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--system", metavar="NAME", help="Settings beneath all others: mrc, roce, ... (`systems`), or a file's path."
    ),
]
PlanesOption: TypeAlias = Annotated[int | None, typer.Option("--planes", help="Planes, 1 to 8.")]
T0Option: TypeAlias = Annotated[int | None, typer.Option("--t0", help="T0 switches per plane.")]
T1Option: TypeAlias = Annotated[int | None, typer.Option("--t1", help="T1 switches per plane.")]
NicsOption: TypeAlias = Annotated[int | None, typer.Option("--nics-per-t0", help="NICs per T0.")]
RateOption: TypeAlias = Annotated[str | None, typer.Option("--rate", help="Rate of every port, as 100G.")]
DelayOption: TypeAlias = Annotated[str | None, typer.Option("--link-delay", help="Delay of every link, as 1us.")]
EvsOption: TypeAlias = Annotated[int | None, typer.Option("--evs", help="EVs in use per QP.")]

NameOption: TypeAlias = Annotated[str | None, typer.Option("--name", help="Which fabric, by name.")]
RunDirOption: TypeAlias = Annotated[Path | None, typer.Option("--run-dir", help="Which fabric, by its folder.")]
PackOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--pack",
        help="none: a process per daemon; plane: one per plane; cores: one per core, NICs among them; auto: by cores "
        "beyond a few daemons per core.",
    ),
]
InventoryOption: TypeAlias = Annotated[
    Path | None, typer.Option("--inventory", metavar="FILE", help="Hosts in YAML, and who runs where.")
]
EngineOption: TypeAlias = Annotated[
    str, typer.Option("--engine", help="What starts the hosts' shares: ssh, service or local of --inventory, or slurm.")
]
WheelhouseOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--wheelhouse", metavar="DIR", help="With --inventory: wheels for hosts that lack packages."),
]
LeaseOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--lease",
        help="With --inventory: wall time for which hosts that do not hear each other are waited for; 15s, detached "
        "600s.",
    ),
]
JobsOption: TypeAlias = Annotated[
    int | None, typer.Option("--jobs", metavar="N", min=1, help="Runs at a time; as many as there are CPUs.")
]
DaskOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--dask", metavar="ADDRESS", help="Workers of the Dask cluster with this scheduler, as tcp://HOST:8786."
    ),
]
NodesPerProcessOption: TypeAlias = Annotated[
    int | None, typer.Option("--nodes-per-process", metavar="N", help="With --inventory: switches that share one.")
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]

NicArgument: TypeAlias = Annotated[str, typer.Argument(metavar="NIC", help="As h003.")]
PlaneArgument: TypeAlias = Annotated[int, typer.Argument(metavar="PLANE", help="Number of the plane.")]
SenderOption: TypeAlias = Annotated[str, typer.Option("--from", metavar="NIC", help="The NIC that sends.")]
ReceiverOption: TypeAlias = Annotated[str, typer.Option("--to", metavar="NIC", help="The NIC it is for.")]

ENGINE = "ssh"
"""The default."""
WALL_S_MAX = 86_400.0
"""A day: the longest wall time that a flag takes."""
KNOWS_HOSTS = ("slurm",)
"""Engines that need no inventory."""
_KEYS = {
    "planes": "planes",
    "t0": "t0_per_plane",
    "t1": "t1_per_plane",
    "nics_per_t0": "nics_per_t0",
    "rate": "rate_bps",
    "link_delay": "link_delay_ns",
    "evs": "evs_per_qp",
    "system": "system",
}


def overrides(settings: list[str] | None, **flags: int | str | None) -> list[str]:
    """Size flags (those that were given) and `--set` flags as `key=value`, the latter last."""
    from mrcfabric.topology_file import OptionValue

    given = []
    for name, value in flags.items():
        if value is not None:
            one = OptionValue(f"{_KEYS[name]}={value}")
            one.written = f"--{name.replace('_', '-')} {shown(str(value))}"
            given.append(one)
    return [*given, *(settings or [])]


def cluster_asked_for(
    topology: "Topology",
    inventory: Path | None,
    engine: str,
    nodes_per_process: int | None = None,
    wheelhouse: Path | None = None,
    lease: str | None = None,
    *,
    detached: bool = False,
) -> "Cluster | None":
    """The hosts of an inventory's file, or of an engine that knows them, not yet started; None without either.

    Raises ConfigError.
    """
    from mrcfabric.errors import ConfigError
    from orchestrator.process.host_lease import lease_of

    lease_s = lease_of(wall_time("--lease", lease), detached=detached)
    if not over_hosts(inventory, engine):
        refuse_alone(engine, nodes_per_process)
        if wheelhouse is not None:
            raise ConfigError("--wheelhouse", "is for other hosts", "name them with --inventory")
        if lease is not None:
            raise ConfigError(f"--lease {lease}", "one host has nobody to wait for", "add --inventory FILE")
        return None
    from orchestrator.hosts.build import build

    return build(topology, inventory, engine, nodes_per_process, lease_s, say, wheelhouse)


def over_hosts(inventory: Path | None, engine: str) -> bool:
    """Whether the flags ask for several hosts."""
    return inventory is not None or engine in KNOWS_HOSTS


def refuse_alone(engine: str, nodes_per_process: int | None) -> None:
    """Raises ConfigError for flags about other hosts when there are none."""
    from mrcfabric.errors import ConfigError

    if engine != ENGINE:
        raise ConfigError(f"--engine {engine}", "there are no hosts to start anything on", "add --inventory FILE")
    if nodes_per_process is not None:
        raise ConfigError(
            "--nodes-per-process", "says how many, but not where", "add --inventory FILE, or take --pack plane"
        )


def say(line: str) -> None:
    """Print a line beside the work, on standard error."""
    typer.echo(line, err=True)


def say_limits(topology: "Topology") -> None:
    """Warn, in a line on standard error each, of limits that keep QPs below the rate of their links, and of settings
    that are not those of the fabric's system."""
    from orchestrator.planning import window_limits
    from orchestrator.planning.combination import departures

    for line in (*window_limits.warnings(topology), *departures(topology)):
        typer.echo(f"warning: {line}", err=True)


def hosts_of(inventory: Path | None, engine: str = "") -> "Hosts | None":
    """A function that maps nodes to the hosts of a file or of an engine; None without hosts."""
    if not over_hosts(inventory, engine):
        return None
    from orchestrator.hosts.build import host_map

    return lambda topology: host_map(topology, inventory, engine)


def instant(option: str, text: str | None) -> int | None:
    """A length of fabric time such as 250us, in nanoseconds; 0 needs no unit. Raises ConfigError."""
    if text is None:
        return None
    return _length_ns(option, text, "{0}us, {0}ms or {0}ns of fabric time?", "as 250us, 1ms or 300000ns")


def duration(option: str, text: str | None) -> int | None:
    """A length of fabric time above 0, in nanoseconds. Raises ConfigError."""
    value = instant(option, text)
    if value == 0:
        from mrcfabric.errors import ConfigError

        raise ConfigError(option, f"{text!r} is no time at all", "wanted: as 250us, 1ms or 300000ns")
    return value


@overload
def wall_time(option: str, text: str, least_s: float = ..., most_s: float = ...) -> float: ...
@overload
def wall_time(option: str, text: str | None, least_s: float = ..., most_s: float = ...) -> float | None: ...
def wall_time(option: str, text: str | None, least_s: float = 0.0, most_s: float = WALL_S_MAX) -> float | None:
    """A length of wall time above 0 and within bounds, such as 90s, in seconds. Raises ConfigError."""
    if text is None:
        return None
    from mrcfabric.errors import ConfigError
    from mrcfabric.units import NS_PER_S

    value_ns = _length_ns(option, text, "{0}s of wall time?", "wall time, as 90s or 500ms")
    if not value_ns:
        raise ConfigError(option, f"{text!r} is no time at all", "wanted: wall time, as 90s or 500ms")
    if not least_s * NS_PER_S <= value_ns <= most_s * NS_PER_S:
        bounds = f"{least_s:g}s to {most_s:g}s" if least_s else f"at most {most_s:g}s"
        raise ConfigError(f"{option} {text}", "will not do", f"wanted: wall time, {bounds}")
    return value_ns / NS_PER_S


def _length_ns(option: str, text: str, with_unit: str, wanted: str) -> int:
    """A length with its unit, in nanoseconds; 0 needs none. Raises ConfigError."""
    from mrcfabric.errors import ConfigError
    from mrcfabric.quantity import QUANTITY, quantity

    text = text.strip()
    number = QUANTITY.fullmatch(text)
    value = quantity("length_ns", text)
    if number and not number[2] and value != 0 and not text.startswith("-"):
        raise ConfigError(f"{option} {text}", "has no unit", with_unit.format(text))
    if not isinstance(value, int) or value < 0:
        raise ConfigError(option, f"{text!r} is no time", f"wanted: {wanted}")
    return value


def ev_number(text: str) -> int:
    """An EV as typed, decimal or 0x.... Raises ConfigError."""
    from mrcfabric.errors import ConfigError
    from mrcfabric.paths import EV_MAX

    try:
        ev = int(text, 0)
    except ValueError:
        ev = -1
    if not 0 <= ev <= EV_MAX:
        raise ConfigError("EV", f"{text!r} is no entropy value", "0 to 0xffffffff")
    return ev
