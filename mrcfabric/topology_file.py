"""Topologies as YAML files and as `key=value` flags, with the line of every mistake.

Owns the spelling of a file: keys, units written out (`100G`, `1us`, `256KiB`), where each value came from. The topology
checks the values. The readers of `nic`, `switch`, `wire` and `dscp` check those settings; `TopologyFile.locate` adds to
their errors the line in question.

A file is one table; every key is optional and has the default of the `Topology` field of the same name:

    name: small
    planes: 4
    rate_bps: 100G
    link_delay_ns: 1us
    switch: {ecn_min: 0.2}
    link_rates_bps: {p0-t0-0~p0-t1-1: 25G}

`system: NAME` puts the settings of a system (`mrcfabric.bundles`) beneath those of the file, which go beneath flags.
`latency: published` is short for the published latencies of nodes and hosts and the link delay that goes with them.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from mrcfabric import bundles, latency
from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from mrcfabric.nearest import nearest_hint
from mrcfabric.quantity import PLAINLY, QUANTITY, UNITS, another_base, quantity
from mrcfabric.topology import Topology
from mrcfabric.topology_check import TABLES

FILE_BYTES_MAX = 1 << 20
"""A larger file is refused: no topology needs a tenth of it."""
OF_SCENARIOS: Final = frozenset({"description", "length", "workload", "method", "expect", "steady_state", "fabric"})
"""Keys that show that a file is a scenario and no topology."""
SETTINGS_MAX = 256
"""Most entries of one table of settings."""

FILE_KEY = "file"
"""The key that names the file to start from, in a topology inside another file."""

LATENCY_KEY: Final = "latency"
LINK_KEY: Final = "link_delay_ns"
SYSTEM_KEY: Final = "system"
SYSTEM_TABLES: Final = ("nic", "switch", "wire", "dscp")
"""The tables of settings that a system may have."""
_SYSTEM_KEYS = ("about", "source", *SYSTEM_TABLES)

_TEXTS = ("name", "seed", SYSTEM_KEY, "about", "source")
_KEYS = tuple(item.name for item in dataclasses.fields(Topology))

_BLOCK = re.compile(r"([0-9a-fA-F]{1,4}):([0-9a-fA-F]{1,4})(?:::(?:/32)?)?", re.ASCII)


class OptionValue(str):
    """A setting as `key=value` that somebody gave by an option of its own, which its mistakes name."""

    __slots__ = ("written",)

    written: str
    """The option and its value, as `--planes 4`."""


@dataclass(frozen=True, slots=True)
class TopologyFile:
    """A topology, and the place where each of its values was written."""

    topology: Topology
    path: str
    """The file, or "" when there is none."""
    places: Mapping[str, str]
    """Dotted key (`planes`, `nic.rto_ns`) -> `file:line` or the flag."""

    def locate(self, error: ConfigError) -> ConfigError:
        """The same error, pointing at the line or flag of the key that its `where` names."""
        return _located(error, self.places, self.path)


@dataclass(frozen=True, slots=True)
class System:
    """A bundle of settings."""

    name: str
    about: str
    """What it is, in one line."""
    source: str
    """The published profile that it follows."""
    tables: Mapping[str, Mapping[str, Any]]
    """By the names of `SYSTEM_TABLES`."""
    places: Mapping[str, str]
    """Of its settings, as in `TopologyFile`."""


def load(path: str | Path | None, overrides: Sequence[str] = ()) -> Topology:
    """The topology of a file, or the demonstration's without one; `overrides` are `key=value` flags on top.

    Raises ConfigError: `file:line: what (hint)`.
    """
    return read(path, overrides).topology


def read(path: str | Path | None, overrides: Sequence[str] = ()) -> TopologyFile:
    """As `load`, with the places of the values. Raises ConfigError."""
    base: dict[str, Any] = Topology.demo().to_dict() if path is None else {}
    places: dict[str, str] = {}
    if path is not None:
        _read_file(str(path), base, places)
    for flag in overrides:
        _override(flag, base, places)
    return _made(base, places, "" if path is None else str(path))


def read_part(
    path: str, node: yaml.Node | None, overrides: Sequence[str], prefix: str, system: tuple[str, str] | None = None
) -> TopologyFile:
    """A topology that is a table within another file; `file: other.yaml` in it names a file for all other keys.

    `node` is that table (None: there is none) and `path` the file that contains it. Messages show `prefix` in front of
    the keys of `overrides`, as `fabric.`. `system`: a system that is named outside of the table, and where that stands;
    it goes before one that the table names. Raises ConfigError.
    """
    base: dict[str, Any] = {}
    places: dict[str, str] = {}
    loader = yaml.SafeLoader("")
    try:
        if node is not None:
            _read_part(loader, path, node, base, places)
    finally:
        loader.dispose()
    if system is not None:
        base[SYSTEM_KEY], places[SYSTEM_KEY] = system
    for flag in overrides:
        _override(flag, base, places, prefix)
    return _made(base, places, path)


def _made(base: dict[str, Any], places: dict[str, str], path: str) -> TopologyFile:
    if base.get(LATENCY_KEY) == latency.WORD:
        _put_latency_beneath(base, places)
    if SYSTEM_KEY in base:
        _put_beneath(read_system(base[SYSTEM_KEY], places[SYSTEM_KEY]), base, places)
    try:
        topology = Topology.from_dict(base)
    except ConfigError as error:
        raise _located(error, places, path) from None
    return TopologyFile(topology, path, places)


def read_system(system: str, where: str = "topology.system") -> System:
    """The system of a name, or of a path with a / in it, which is called after its file.

    Raises ConfigError: with `where`, the place that names the system, when there is none, else with the system's line.
    """
    path = str(bundles.file_of(system, where))
    found: dict[str, Any] = {}
    places: dict[str, str] = {}
    _read_file(path, found, places, "a system", _SYSTEM_KEYS)
    for key in ("about", "source"):
        if key not in found:
            raise ConfigError(path, f"{key} is missing", "about: what it is; source: the profile that it follows")
    tables: dict[str, dict[str, Any]] = {key: found[key] for key in SYSTEM_TABLES if key in found}
    own = {key: place for key, place in places.items() if "." in key}
    return System(Path(path).stem, found["about"], found["source"], tables, own)


def with_system(topology: Topology, system: str) -> Topology:
    """The topology with the settings of a system beneath its own. Raises ConfigError."""
    if topology.system:
        raise ConfigError("topology.system", f"is {topology.system} already", f"{shown(system)} cannot go beneath it")
    base = topology.to_dict()
    _put_beneath(read_system(system), base, {})
    return Topology.from_dict(base)


def _put_latency_beneath(base: dict[str, Any], places: Mapping[str, str]) -> None:
    """Set the published latencies where the file and the flags say nothing else."""
    base[LATENCY_KEY] = dict(latency.PUBLISHED)
    base["nic"] = {**latency.HOST_PUBLISHED, **base.get("nic", {})}
    if LINK_KEY not in places:
        base[LINK_KEY] = latency.CABLE_NS


def _put_beneath(system: System, base: dict[str, Any], places: dict[str, str]) -> None:
    """Add the settings of a system where `base` says nothing else."""
    for table, settings in system.tables.items():
        base[table] = {**settings, **base.get(table, {})}
    for key, place in system.places.items():
        places.setdefault(key, place)
    base[SYSTEM_KEY] = system.name


def _value(key: str, value: object, text: str) -> Any:
    """One value as `Topology` wants it; `text` is its spelling in the file."""
    if key in _TEXTS or key == LATENCY_KEY:
        return text
    if key == "usid_block" and (match := _BLOCK.fullmatch(text)):
        return int(match[1], 16) << 16 | int(match[2], 16)
    # YAML 1.1 reads 1e3 as a text.
    if key == "dilation" and (match := QUANTITY.fullmatch(text)) and not match[2]:
        return float(match[1].replace("_", ""))
    # A date, a set or bytes are no figures: what is wrong is told as it was written.
    return quantity(key, value if isinstance(value, (str, int, float)) else text)


def _read_file(
    path: str, base: dict[str, Any], places: dict[str, str], what: str = "a topology", keys: Sequence[str] = _KEYS
) -> None:
    loader = yaml.SafeLoader(text_of(path, what))
    try:
        root = loader.get_single_node()
        if root is None:
            least = "`planes: 8`" if keys is _KEYS else "`about: ...` and `source: ...`"
            raise ConfigError(path, "is empty", f"one table of settings, at least {least}")
        _read_table(loader, path, root, base, places, keys)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else path
        raise ConfigError(where, f"is no YAML: {getattr(error, 'problem', None) or 'unreadable'}") from None
    except RecursionError:
        raise ConfigError(path, "is nested too deeply") from None
    finally:
        loader.dispose()


def _read_table(
    loader: yaml.SafeLoader,
    path: str,
    root: yaml.Node,
    base: dict[str, Any],
    places: dict[str, str],
    keys: Sequence[str] = _KEYS,
) -> None:
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(_place(path, root), "is no table of settings", "lines of `key: value`")
    for key, node in _entries(path, root, keys, "setting" if keys is _KEYS else "key of a system"):
        places[key] = _place(path, node)
        table = key in TABLES and not _is_word(key, node)
        base[key] = _table(loader, path, key, node, places) if table else _leaf(loader, path, key, node)
        if key == SYSTEM_KEY:
            base[key] = beside(path, base[key])


def _is_word(key: str, node: yaml.Node) -> bool:
    """Whether a table is named, not written out."""
    return key == LATENCY_KEY and isinstance(node, yaml.ScalarNode) and node.value == latency.WORD


def _or_word(key: str) -> str:
    """What may stand instead of a table, and which keys the table has; "" for tables that nothing stands for."""
    return f" with {', '.join(latency.NAMES)}; or `{key}: {latency.WORD}`" if key == LATENCY_KEY else ""


def beside(path: str, system: str) -> str:
    """A system as the file `path` names it: a path counts from the folder of that file."""
    return str(Path(path).parent / system) if bundles.is_path(system) else system


def _read_part(
    loader: yaml.SafeLoader, path: str, node: yaml.Node, base: dict[str, Any], places: dict[str, str]
) -> None:
    """A table that may name a file to start from; the table's own keys win."""
    own = node
    if isinstance(node, yaml.MappingNode):
        for key_node, value in node.value:
            if key_node.value == FILE_KEY:
                if not isinstance(value, yaml.ScalarNode) or "\0" in value.value:
                    raise ConfigError(_place(path, value), f"{FILE_KEY} is no file's name")
                _read_file(str(Path(path).parent / value.value), base, places)
        rest = [pair for pair in node.value if pair[0].value != FILE_KEY]
        own = yaml.MappingNode(node.tag, rest, node.start_mark, node.end_mark)
    _read_table(loader, path, own, base, places)


def text_of(path: str, what: str = "a topology") -> str:
    """The text of a file that an operator wrote. Raises ConfigError when it is unreadable, no text or far too large."""
    try:
        with open(path, "rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(path, f"cannot be read: {error.strerror}") from None
    if len(raw) > FILE_BYTES_MAX:
        raise ConfigError(path, f"is larger than {FILE_BYTES_MAX} bytes", f"is it {what}?")
    try:
        text = raw.decode()
        yaml.reader.Reader(text)
    except (UnicodeDecodeError, yaml.reader.ReaderError):
        raise ConfigError(path, "is no text", f"{what} is YAML in UTF-8") from None
    return text


def _entries(path: str, table: yaml.MappingNode, known: Sequence[str] | None, what: str) -> list[tuple[str, yaml.Node]]:
    """The key and value nodes of a table; refuses keys that are no text, unknown, or duplicate."""
    found: dict[str, yaml.Node] = {}
    for key_node, node in table.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise ConfigError(_place(path, key_node), "a key must be one word")
        key = key_node.value
        if known is not None and key in OF_SCENARIOS and key not in known:
            raise ConfigError(_place(path, key_node), f"{key} belongs to a scenario", "`mrcfabric run` takes scenarios")
        if known is not None and key not in known:
            raise ConfigError(_place(path, key_node), f"no {what} is called {shown(key)}", nearest_hint(key, known))
        if key in found:
            raise ConfigError(_place(path, key_node), f"{shown(key)} stands here twice")
        found[key] = node
    return list(found.items())


def _table(loader: yaml.SafeLoader, path: str, name: str, node: yaml.Node, places: dict[str, str]) -> dict[str, Any]:
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(_place(path, node), f"{name} must be a table", f"`{name}: {{key: value}}`{_or_word(name)}")
    if len(node.value) > SETTINGS_MAX:
        raise ConfigError(_place(path, node), f"{name} has more than {SETTINGS_MAX} entries")
    table: dict[str, Any] = {}
    for key, value in _entries(path, node, None, f"{name} setting"):
        places[f"{name}.{key}"] = _place(path, value)
        table[key] = _leaf(loader, path, _unit_key(name, key), value, f"{name}.")
    return table


def _unit_key(table: str, key: str) -> str:
    """The key whose last word is the unit: the entry's own, or the table's where entries are named after cables."""
    return table if table.rpartition("_")[2] in UNITS else key


def _leaf(loader: yaml.SafeLoader, path: str, key: str, node: yaml.Node, table: str = "") -> Any:
    """The value of a key, which messages show with the table that it is in."""
    name = table + shown(key)
    if not isinstance(node, yaml.ScalarNode):
        raise ConfigError(_place(path, node), f"{name} must be one value, not a list or a table")
    try:
        value = loader.construct_object(node, deep=True)
    except yaml.constructor.ConstructorError:
        raise ConfigError(_place(path, node), f"{name}: the tag {shown(node.tag)} means nothing here") from None
    except ValueError:
        raise ConfigError(_place(path, node), f"{name}: {shown(node.value)} cannot be read") from None
    if value is None:
        raise ConfigError(_place(path, node), f"{name} has no value")
    if wrong := another_base(node.value, value):
        raise ConfigError(_place(path, node), f"{name}: {wrong}", PLAINLY)
    return _value(key, value, node.value)


def _override(flag: str, base: dict[str, Any], places: dict[str, str], prefix: str = "") -> None:
    key, equals, text = flag.partition("=")
    where = _written(flag, prefix)
    table, dot, inner = key.partition(".")
    if not equals:
        raise ConfigError(where, "is no setting", "key=value, as planes=4 or nic.rto_ns=200us")
    if key in TABLES and (key, text) != (LATENCY_KEY, latency.WORD):
        other = f", or {key}={latency.WORD}" if key == LATENCY_KEY else ""
        raise ConfigError(where, f"{key} is a table", f"one setting at a time: {key}.KEY=value{other}")
    if (dot and table not in TABLES) or (not dot and key not in _KEYS):
        raise ConfigError(where, f"no setting is called {shown(key)}", nearest_hint(key, _KEYS))
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        value = text
    if value is None or isinstance(value, (list, dict)):
        raise ConfigError(where, "one value is wanted after the =")
    if wrong := another_base(text, value):
        raise ConfigError(where, wrong, PLAINLY)
    if dot:
        if base.get(table) == latency.WORD:
            _put_latency_beneath(base, places)
        base[table] = {**base.get(table, {}), inner: _value(_unit_key(table, inner), value, text)}
    else:
        base[key] = _value(key, value, text)
    places[key] = where


def _written(flag: str, prefix: str) -> str:
    """A flag as somebody wrote it."""
    if isinstance(flag, OptionValue):
        return flag.written
    key, _, text = flag.partition("=")
    return f"--system {shown(text)}" if key == SYSTEM_KEY else f"--set {shown(prefix + flag)}"


def _place(path: str, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"


def _located(error: ConfigError, places: Mapping[str, str], path: str) -> ConfigError:
    key = error.where.removeprefix("topology.")
    for one in (key, *error.also):
        if one in places:
            return ConfigError(places[one], f"{key}: {error.what}", error.hint)
    return ConfigError(f"{path}: {error.where}" if path else error.where, error.what, error.hint)
