"""Checks what scripts give to a fabric: instants, lengths, wall times. A figure of another type breaks what keeps time.

Every function takes the name of the argument and its value, returns the value, and raises ConfigError. What comes to an
agent as JSON is read by `orchestrator.client.bodies`.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, Instant
from nicd.programs.program import Program
from orchestrator.hosts.placement.layout import PACK_HINT, PACKS


def instant(name: str, value: Any, least: int = 0) -> Instant:
    """An instant or a length of fabric time: whole nanoseconds from `least` on."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < NEVER:
        raise ConfigError(name, f"{value!r} will not do", f"whole nanoseconds of fabric time, at least {least}")
    return value


def wall_s(name: str, value: Any) -> float:
    """Seconds of wall time to wait for something; infinity is for ever."""
    if not isinstance(value, int | float) or isinstance(value, bool) or math.isnan(value) or value < 0:
        raise ConfigError(name, f"{value!r} will not do", "seconds of wall time")
    return value


def text(name: str, value: Any) -> str:
    """A text that can be written as UTF-8, which lone halves of surrogate pairs cannot."""
    if not isinstance(value, str):
        raise ConfigError(name, f"{value!r} is no text")
    if any("\ud800" <= sign <= "\udfff" for sign in value):
        raise ConfigError(name, f"{shown(value)} is no text", "in UTF-8")
    return value


def plain(name: str, value: Any) -> Any:
    """What JSON and a control channel can carry: numbers, texts, yes and no, None; lists and tables of them."""
    if isinstance(value, str):
        return text(name, value)
    if isinstance(value, Mapping):
        return {text(name, key): plain(f"{name}.{shown(key)}", one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(name, one) for one in value]
    if value is not None and not isinstance(value, int | float):
        raise ConfigError(name, f"{shown(repr(value))} cannot be sent", "numbers, texts, lists and tables")
    return value


def table(name: str, value: Any) -> dict[str, Any]:
    """A table whose keys are texts; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ConfigError(name, f"{value!r} is no table", 'as {"steps": 10}')
    return dict(value)


def request(node: Any, op: Any, args: Any) -> tuple[str, str, dict[str, Any]]:
    """Which daemon is asked for what."""
    return text("node", node), text("op", op), plain("args", table("args", args))


def folder(name: str, value: Any) -> Path | None:
    """A folder by its path, which may be a text."""
    if value is not None and (not isinstance(value, str | Path) or "\0" in str(value)):
        raise ConfigError(name, f"{shown(str(value))} is no path")
    return None if value is None else Path(value)


def program(name: str, value: Any) -> Program:
    """A program; a script may have put anything into its fields."""
    if not isinstance(value, Program):
        raise ConfigError(name, f"{shown(repr(value))} is none", "as nicd.programs.program.Program makes it")
    try:
        settings = value.settings()
    except (TypeError, ValueError) as error:
        raise ConfigError(name, f"ranks or figures will not do: {error}", "a tuple of numbers, a table") from error
    return Program.of(plain(name, settings))


def nics(topology: Topology, value: Any) -> list[str]:
    """The NICs that a program has ranks on, without those that there are not."""
    ranks = program("program", value).ranks
    return [topology.node_name(number) for number in ranks if number < topology.nics]


def check_launch(
    topology: Any, system: Any, pack: Any, limit_ns: Any, trace: Any, port_base: Any, cluster: Any, http_host: Any
) -> None:
    """Raises ConfigError for what `Fabric.launch` cannot start."""
    if not isinstance(topology, Topology):
        raise ConfigError("topology", f"{topology!r} is none", "as mrcfabric.topology_file.load reads one from a file")
    if system is not None:
        text("system", system)
    if pack not in PACKS:
        raise ConfigError("pack", f"{pack!r} is no such packing", PACK_HINT)
    if limit_ns is not None:
        instant("limit_ns", limit_ns)
    if not isinstance(trace, bool):
        raise ConfigError("trace", f"{shown(repr(trace))} will not do", "True or False")
    if port_base is not None and (not isinstance(port_base, int) or isinstance(port_base, bool)):
        raise ConfigError("port_base", f"{shown(repr(port_base))} is no port", "a number, or None: any that are free")
    if cluster is not None and not hasattr(cluster, "sites"):
        raise ConfigError("cluster", f"{shown(repr(cluster))} is none", "as orchestrator.hosts.build makes one")
    text("http_host", http_host)


def texts(name: str, value: Any) -> list[str]:
    """Some texts; one alone is a list of one."""
    found = [value] if isinstance(value, str) else value
    try:
        listed = list(found)
    except TypeError:
        listed = [found]
    for one in listed:
        text(name, one)
    return listed
