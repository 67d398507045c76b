"""Reads a YAML file as plain data, with the line of every value.

Owns the reading, `--set` flags on top of it, and the line that an error names. The caller's types say what values mean;
`mrcfabric.topology_file` reads the table under `fabric`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeAlias

import yaml

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from mrcfabric.nearest import nearest_hint
from mrcfabric.quantity import PLAINLY, another_base
from mrcfabric.topology import Topology
from mrcfabric.topology_file import text_of

FABRIC_KEY: Final = "fabric"
FLAG: Final = "--set "
"""What the place of a value begins with that a flag gave."""
_OF_THE_FABRIC: Final = {one.name for one in fields(Topology)} - {"name", "seed", "system"}
"""Settings that `up --set` takes without `fabric.`. A scenario has none of these names."""
VALUES_MAX: Final = 100_000
"""A file with more values, aliases written out, is refused."""
INT_MAX: Final = 1 << 60

Path: TypeAlias = tuple[str | int, ...]
"""The way to a value: keys, and positions in lists."""

_PLAIN = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null")}
_DATE = "tag:yaml.org,2002:timestamp"


@dataclass(slots=True)
class Document:
    """The content of a file. `fabric` stays YAML: `mrcfabric.topology_file` knows its spelling."""

    path: str
    root: dict[str, Any] = field(default_factory=dict)
    fabric: yaml.Node | None = None
    fabric_flags: list[str] = field(default_factory=list)
    """`key=value` for the fabric, from `--set fabric.key=value`."""
    places: dict[Path, str] = field(default_factory=dict)
    """Where each value comes from: `file:line`, or the flag."""

    def where(self, path: Path) -> str:
        """Where a value comes from, or the nearest table around it, and the way to it."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                return f"{self.places[path[:length]]}: {dotted(path)}" if path else self.places[path[:length]]
        return f"{self.path}: {dotted(path)}" if path else self.path


@dataclass(frozen=True, slots=True)
class Spot:
    """A value of a document, to name in errors."""

    document: Document
    path: Path = ()

    def __truediv__(self, key: str | int) -> "Spot":
        return Spot(self.document, (*self.path, key))

    def wrong(self, what: str, hint: str = "") -> ConfigError:
        """An error about this value, with its line."""
        return ConfigError(self.document.where(self.path), what, hint)

    def about(self, error: ConfigError) -> ConfigError:
        """An error that other code raised, as one about this value."""
        return self.wrong(f"{error.where}: {error.what}", error.hint)


def dotted(path: Path) -> str:
    """A path as text: `method[2].at`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{shown(part)}" if text else shown(part)
    return text


def read(path: str, overrides: Sequence[str] = ()) -> Document:
    """Read a file, with `key=value` flags on top. Keys are dotted; a list entry is named by its name or its position.

    Raises ConfigError: `file:line: what (hint)`.
    """
    document = parse(path, text_of(path, "a scenario"))
    for flag in overrides:
        override(document, flag)
    return document


def parse(path: str, text: str, least: str = "a scenario has at least fabric and workload") -> Document:
    """Read the text of a file. Errors name `path`, and give `least` as the hint for an empty file.

    Raises ConfigError.
    """
    document = Document(path)
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            raise ConfigError(path, "is empty", least)
        if not isinstance(root, yaml.MappingNode):
            raise ConfigError(_place(path, root), "is no table", "lines of `key: value`")
        for key, node in _entries(path, root):
            document.places[key,] = _place(path, node)
            if key == FABRIC_KEY:
                document.fabric = node
            else:
                document.root[key] = _plain(loader, document, (key,), node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else path
        raise ConfigError(where, f"is no YAML: {getattr(error, 'problem', None) or 'unreadable'}") from None
    except RecursionError:
        raise ConfigError(path, "is nested too deeply") from None
    finally:
        if loader is not None:
            loader.dispose()
    return document


def top_keys(path: str) -> frozenset[str]:
    """The keys of a file's outermost table, which tell kinds of files apart; none if the file cannot be read."""
    try:
        root = yaml.compose(text_of(path, "a scenario"), yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ConfigError):
        return frozenset()
    rows = root.value if isinstance(root, yaml.MappingNode) else ()
    return frozenset(key.value for key, _ in rows if isinstance(key, yaml.ScalarNode))


def _place(path: str, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"


def _entries(path: str, table: yaml.MappingNode) -> list[tuple[str, yaml.Node]]:
    found: dict[str, yaml.Node] = {}
    for key_node, node in table.value:
        if not isinstance(key_node, yaml.ScalarNode) or not _is_text(key_node.value):
            raise ConfigError(_place(path, key_node), "a key must be one word")
        if key_node.value in found:
            raise ConfigError(_place(path, key_node), f"{shown(key_node.value)} stands here twice")
        found[key_node.value] = node
    return list(found.items())


def _plain(loader: yaml.SafeLoader, document: Document, at: Path, node: yaml.Node) -> Any:
    """Convert a node and everything below it to plain data, and note where each value is."""
    document.places[at] = _place(document.path, node)
    if len(document.places) > VALUES_MAX:
        raise ConfigError(document.path, f"holds more than {VALUES_MAX} values")
    if isinstance(node, yaml.MappingNode):
        rows = _entries(document.path, node)
        return {key: _plain(loader, document, (*at, key), value) for key, value in rows}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(loader, document, (*at, number), value) for number, value in enumerate(node.value)]
    assert isinstance(node, yaml.ScalarNode)
    return _scalar(loader, Spot(document, at), node)


def _scalar(loader: yaml.SafeLoader, spot: Spot, node: yaml.ScalarNode) -> Any:
    if node.tag == _DATE:
        return node.value
    if node.tag not in _PLAIN:
        raise spot.wrong(f"the tag {shown(node.tag)} means nothing here")
    try:
        value = loader.construct_object(node)
    except ValueError:
        raise spot.wrong(f"{shown(node.value)} cannot be read") from None
    if wrong := another_base(node.value, value):
        raise spot.wrong(wrong, PLAINLY)
    return _sound(spot, value)


def _sound(spot: Spot, value: Any) -> Any:
    """Return the value if it can be computed with and shown. Raises ConfigError if not."""
    if value is None:
        raise spot.wrong("has no value")
    if isinstance(value, float) and not math.isfinite(value):
        raise spot.wrong("is no finite number")
    if isinstance(value, int) and abs(value) > INT_MAX:
        raise spot.wrong("is too large a number")
    if isinstance(value, str) and not _is_text(value):
        raise spot.wrong("holds signs that are no text")
    return value


def _is_text(value: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" or sign == "\0" for sign in value)


def override(document: Document, flag: str) -> None:
    """Put one `key=value` on top. Raises ConfigError that names the flag."""
    key, equals, text = flag.partition("=")
    where = f"{FLAG}{shown(flag)}"
    if not equals or not key or not _is_text(flag):
        raise ConfigError(where, "is no setting", "key=value, as length=500rtt or workload.train.steps=10")
    words = key.split(".")
    if words[0] == FABRIC_KEY:
        if len(words) == 1:
            raise ConfigError(where, "fabric is a table", "one setting at a time: fabric.planes=4")
        document.fabric_flags.append(flag.partition(".")[2])
        return
    if words[0] in _OF_THE_FABRIC:
        raise ConfigError(where, f"{words[0]} is a setting of the fabric", f"--set fabric.{shown(flag)}")
    parent, path = _follow(document.root, words[:-1], where)
    last: str | int = words[-1]
    if isinstance(parent, list):
        last = _position(parent, words[-1], where)
    elif not isinstance(parent, dict):
        raise ConfigError(where, f"{dotted(path)} is one value, not a table")
    path = (*path, last)
    for known in [known for known in document.places if known[: len(path)] == path]:
        del document.places[known]
    document.places[path] = where
    parent[last] = _given(Spot(document, path), text, where)


def _given(spot: Spot, text: str, where: str) -> Any:
    """The value of a flag, read as in a file, but on one line."""
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            raise ConfigError(where, "a value is wanted after the =")
        aside = Document(where)
        value = _plain(loader, aside, spot.path, node)
    except ConfigError as error:
        raise ConfigError(where, error.what, error.hint) from None
    except (yaml.YAMLError, ValueError, RecursionError):
        return _sound(spot, text)
    finally:
        if loader is not None:
            loader.dispose()
    return value


def _follow(root: Any, words: Sequence[str], where: str) -> tuple[Any, Path]:
    """The table or list that a dotted way leads to."""
    here, path = root, ()
    for word in words:
        step: str | int = word
        if isinstance(here, list):
            step = _position(here, word, where)
        elif not isinstance(here, dict) or word not in here:
            raise ConfigError(where, f"there is no {shown(word)}", nearest_hint(word, here) if here else "")
        here, path = here[step], (*path, step)  # type: ignore[assignment]
    return here, path


def _position(entries: Sequence[Any], word: str, where: str) -> int:
    """The position of the list entry with this name, or at this position."""
    names = [entry.get("name") if isinstance(entry, Mapping) else None for entry in entries]
    if word in names:
        return names.index(word)
    if word.isdecimal() and word.isascii() and len(word) < 7 and int(word) < len(entries):
        return int(word)
    known = [name for name in names if isinstance(name, str)]
    raise ConfigError(where, f"no entry is called {shown(word)}", nearest_hint(word, known) if known else "")
