"""Resolves descriptions to parts of a fabric: by name, glob, tier, plane, neighbour, or drawn at random.

Pure. Owns the description (`Selector`) and its resolution to names, spelled as `orchestrator.faults.kinds.Target` says,
for the scenario language, the command line and scripts. Random choices use the generator that the caller passes in. The
result is in the order of the topology, not in that of the draw. The fault says what happens to the parts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from mrcfabric.errors import ConfigError, misfit
from mrcfabric.naming import nic_name, shown
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from orchestrator.faults.globs import is_plain, matcher
from orchestrator.faults.host_map import ONE_HOST, HostMap
from orchestrator.faults.kinds import ABOUT_HOSTS, KINDS, OF_SESSIONS, Target, nearest_kind, no_hosts

Mode: TypeAlias = Literal["one", "all", "fixed", "fixed-percent", "random-max-percent"]
Direction: TypeAlias = Literal["both", "up", "down"]

MODES: tuple[str, ...] = get_args(Mode)
DIRECTIONS: tuple[str, ...] = get_args(Direction)
NAMES_MAX = 4096
"""How many names and globs one selector may have."""
NAME_CHARS_MAX = 200

_LINK_TIERS = ("nic-t0", "t0-t1")
_NODE_TIERS = ("nic", "t0", "t1")


@dataclass(frozen=True, slots=True)
class Selector:
    """A description of parts. Each field that is given narrows it; an empty one means everything the kind can hit."""

    links: tuple[str, ...] = ()
    """Names or globs of links, either end first; `a>b` is only the direction from a to b."""
    nodes: tuple[str, ...] = ()
    """Names or globs of switches or NICs."""
    nic_ports: tuple[str, ...] = ()
    """Names or globs, for example `h003:5`."""
    tier: str = ""
    """nic, t0 or t1; for links nic-t0 or t0-t1."""
    plane: tuple[int, ...] = ()
    of: tuple[str, ...] = ()
    """Names or globs of nodes: select the links, ports or neighbours of these."""
    mode: Mode = "all"
    """How many to take: `one` at random, `all`, `fixed` (`value` of them at random), `fixed-percent` (that percentage
    at random, rounded down, at least one), `random-max-percent` (a percentage drawn up to `value`, at least one)."""
    value: int | None = None
    direction: Direction = "both"
    """For links: `up` is away from the NICs, `down` towards them."""
    hosts: tuple[str, ...] = ()
    """Names or globs of hosts, for example `vm1`; for faults between hosts, of pairs, for example `vm1~vm*`, either
    host first."""
    labels: tuple[str, ...] = ()
    """Labels, for example `rack=a`: select the hosts that have all of them."""

    @classmethod
    def of_table(cls, table: Mapping[str, Any]) -> "Selector":
        """Make a selector of plain data whose keys are the fields.

        One name or plane may stand for a list. Raises ConfigError.
        """
        known = [item.name for item in fields(cls)]
        values: dict[str, Any] = {}
        for key, value in table.items():
            if key not in known:
                raise ConfigError(f"selector.{shown(str(key))}", "no such key", "there are " + ", ".join(known))
            values[key] = _field(key, value)
        return cls(**values)

    def table(self) -> dict[str, Any]:
        """As plain data, for `of_table`; fields that were not given are left out."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}
        bare = Selector()
        return {key: plain[key] for key, value in found.items() if value != getattr(bare, key)}


def of_words(kind: str, words: Sequence[str], **others: Any) -> Selector:
    """Make a selector from words of a command line: names and globs of what the kind acts on, the rest as `key=value`.

    For example `plane=1,2`, `of=h003`, `tier=t1`. Raises ConfigError.
    """
    return _of_words(_target(kind), words, others)


def _of_words(target: Target, words: Sequence[str], others: Mapping[str, Any]) -> Selector:
    table: dict[str, Any] = {key: value for key, value in others.items() if value is not None}
    names: list[str] = []
    for word in words:
        key, equals, value = word.partition("=")
        if word in _FITTING[target][1]:
            raise ConfigError(word, "is a tier, and no name", f"tier={word}")
        if not equals:
            names.append(word)
            continue
        if key in table:
            hint = "once" if key in _SINGLE else f"all in one, as {key}=A,B"
            raise ConfigError(f"selector.{key}", f"{word}: {key} is given already", hint)
        items = [int(item) if item.isdecimal() and len(item) < 10 else item for item in value.split(",")]
        table[key] = items if key not in _SINGLE else items[0] if key == "value" and len(items) == 1 else value
    if names:
        key = _NAMED_BY.get(target, "nodes")
        found: list[Any] = names
        if target is Target.PLANE:
            found = [int(name) if name.isdecimal() and len(name) < 6 else name for name in names]
        table[key] = [*table.get(key, []), *found]
    return Selector.of_table(table)


_SINGLE = ("mode", "value", "direction", "tier")
"""Keys of one value."""
_NAMED_BY: Mapping[Target, str] = {
    Target.LINK: "links",
    Target.NIC_PORT: "nic_ports",
    Target.PLANE: "plane",
    Target.HOST: "hosts",
    Target.HOST_PAIR: "hosts",
}
"""Which field words without `=` go to, where that is not `nodes`."""


def nodes_meant(topology: Topology, words: Sequence[str]) -> tuple[str, ...]:
    """All nodes that words select, spelled as in `of_words`, in the order of the topology; may be empty.

    Raises ConfigError for a plain name that does not exist, and for words that cannot select nodes.
    """
    selector = _of_words(Target.NODE, words, {})
    _refuse_strange("node", Target.NODE, selector)
    if selector.mode != "all":
        raise ConfigError("selector.mode", f"{selector.mode} will not do", "every node that the other words mean")
    return tuple(_nodes(topology, selector))


def select(
    topology: Topology, kind: str, selector: Selector, rng: Rng, host_map: HostMap = ONE_HOST
) -> tuple[str, ...]:
    """The targets of a fault of this kind, in the order of the topology; hosts in the order of `host_map`.

    Raises ConfigError when nothing is selected.
    """
    target = _target(kind)
    _refuse_strange(kind, target, selector)
    if kind in ABOUT_HOSTS:
        found = _about_hosts(topology, kind, selector, host_map)
    else:
        found = list(_MATCHING[target](topology, selector))
    if kind == "t0_down":
        found = [name for name in found if topology.parse_node(name).tier == "t0"]
    if kind in OF_SESSIONS:
        found = [name for name in found if not name.startswith("h")]
    if not found:
        if selector.plane and min(selector.plane) >= topology.planes:
            raise _no_plane(topology, *selector.plane)
        wanted = "sessions are between switches: p0-t0-0~p0-t1-0" if kind in OF_SESSIONS else _wanted(target)
        raise ConfigError("selector", f"nothing in fabric {topology.name} is meant by it", wanted)
    chosen = _chosen(found, selector, rng)
    return tuple(_directed(name, selector.direction) for name in chosen) if target is Target.LINK else tuple(chosen)


def hosts_named(kind: str, selector: Selector) -> tuple[str, ...]:
    """What a selector says about hosts, word for word, for when the hosts are not known. Raises ConfigError."""
    _refuse_strange(kind, _target(kind), selector)
    return selector.hosts or selector.labels or ("*",)


# Choosing.


def _chosen(found: list[str], selector: Selector, rng: Rng) -> list[str]:
    if selector.mode == "all":
        return found
    count = _count(len(found), selector, rng)
    order = list(range(len(found)))
    rng.shuffle(order)
    return [found[index] for index in sorted(order[:count])]


def _count(most: int, selector: Selector, rng: Rng) -> int:
    value = selector.value
    if selector.mode == "one":
        return 1
    assert value is not None
    if selector.mode == "fixed":
        if value > most:
            raise ConfigError("selector.value", f"{value} are wanted, {most} are meant", "or mode: all")
        return value
    share = value if selector.mode == "fixed-percent" else rng.below(value + 1)
    return max(1, most * share // 100)


def _directed(name: str, direction: Direction) -> str:
    if direction == "both" or ">" in name:
        return name
    lower, upper = name.split("~")
    return f"{lower}>{upper}" if direction == "up" else f"{upper}>{lower}"


# What a selector matches, by kind of target.


def _links(topology: Topology, selector: Selector) -> Iterator[str]:
    cables = [link for link in topology.links() if _in_planes(selector, link.plane)]
    if selector.tier:
        cables = [link for link in cables if link.a.startswith("h") == (selector.tier == "nic-t0")]
    if selector.of:
        of = matcher(selector.of, topology.parse_node)
        cables = [link for link in cables if of(link.a) or of(link.b)]
    if not selector.links:
        yield from (link.name for link in cables)
        return

    def exists(name: str) -> None:
        topology.parse_link(name.replace(">", "~"))

    ways = tuple(name for name in selector.links if ">" in name)
    if ways and selector.direction != "both":
        raise ConfigError("selector.direction", f"{selector.direction} beside {shown(ways[0])}", "one of the two")
    whole = matcher(tuple(name for name in selector.links if ">" not in name), exists)
    one_way = matcher(ways, exists)
    for link in cables:
        if whole(f"{link.a}~{link.b}") or whole(f"{link.b}~{link.a}"):
            yield link.name
        else:
            yield from filter(one_way, (f"{link.a}>{link.b}", f"{link.b}>{link.a}"))


def _switches(topology: Topology, selector: Selector) -> Iterator[str]:
    return _of_nodes(topology, selector, topology.switch_names())


def _nics(topology: Topology, selector: Selector) -> Iterator[str]:
    return _of_nodes(topology, selector, topology.nic_names())


def _nodes(topology: Topology, selector: Selector) -> Iterator[str]:
    return _of_nodes(topology, selector, topology.node_names())


def _of_nodes(topology: Topology, selector: Selector, names: Iterable[str]) -> Iterator[str]:
    wanted = matcher(selector.nodes, topology.parse_node) if selector.nodes else None
    of = matcher(selector.of, topology.parse_node) if selector.of else None
    for name in names:
        tier, plane, _ = topology.parse_node(name)
        if wanted is not None and not wanted(name):
            continue
        if selector.tier and tier != selector.tier:
            continue
        if selector.plane and (tier == "nic" or not _in_planes(selector, plane)):
            continue
        if of is None or any(of(end.peer) for end in topology.ports(name)):
            yield name


def _nic_ports(topology: Topology, selector: Selector) -> Iterator[str]:
    wanted = matcher(selector.nic_ports, lambda name: nic_port(topology, name)) if selector.nic_ports else None
    nodes = matcher(selector.nodes, topology.nic_index) if selector.nodes else None
    of = matcher(selector.of, topology.parse_node) if selector.of else None
    for index in range(topology.nics):
        nic = nic_name(index)
        if nodes is not None and not nodes(nic):
            continue
        for end in topology.ports(nic):
            name = f"{nic}:{end.port}"
            if not _in_planes(selector, end.port) or (wanted is not None and not wanted(name)):
                continue
            if of is None or of(nic) or of(end.peer):
                yield name


def _planes(topology: Topology, selector: Selector) -> Iterator[str]:
    for plane in selector.plane:
        if plane >= topology.planes:
            raise _no_plane(topology, plane)
    return (str(plane) for plane in range(topology.planes) if _in_planes(selector, plane))


def _no_plane(topology: Topology, *planes: int) -> ConfigError:
    return ConfigError(f"plane {', '.join(map(str, planes))}", "no such plane", f"0 to {topology.planes - 1}")


def _about_hosts(topology: Topology, kind: str, selector: Selector, host_map: HostMap) -> list[str]:
    """Select hosts or pairs.

    Leaves out those that the kind cannot hit (the leader's host, hosts without links) unless they are named plainly:
    then the fault itself is refused, with a message.
    """
    if not host_map.nodes:
        raise no_hosts(kind)
    if KINDS[kind].target is Target.HOST:
        wanted = matcher(selector.hosts or ("*",), host_map.require)
        labels = host_map.labels
        found = [one for one in host_map.nodes if wanted(one) and labels[one].issuperset(selector.labels)]
    else:
        wanted = matcher(selector.hosts or ("*",), host_map.pair)
        found = [one for one in host_map.pairs() if any(map(wanted, (one, "~".join(reversed(one.split("~"))))))]
    able = host_map.linked(topology) if KINDS[kind].parts is Target.LINK else host_map.nodes
    plain = {one if "~" not in one else "~".join(host_map.pair(one)) for one in selector.hosts if is_plain(one)}
    return [one for one in found if one in plain or (one in able and not host_map.spared(kind, one))]


_MATCHING: Mapping[Target, Callable[[Topology, Selector], Iterator[str]]] = {
    Target.LINK: _links,
    Target.SWITCH: _switches,
    Target.NIC: _nics,
    Target.NIC_PORT: _nic_ports,
    Target.PLANE: _planes,
    Target.NODE: _nodes,
}

_FITTING: Mapping[Target, tuple[tuple[str, ...], tuple[str, ...]]] = {
    Target.LINK: (("links", "tier", "plane", "of", "direction"), _LINK_TIERS),
    Target.SWITCH: (("nodes", "tier", "plane", "of"), ("t0", "t1")),
    Target.NIC: (("nodes", "tier", "of"), ("nic",)),
    Target.NIC_PORT: (("nic_ports", "nodes", "plane", "of"), ()),
    Target.PLANE: (("plane",), ()),
    Target.NODE: (("nodes", "tier", "plane", "of"), _NODE_TIERS),
    Target.HOST: (("hosts", "labels"), ()),
    Target.HOST_PAIR: (("hosts",), ()),
}
"""For each kind of target: which fields can select it, and which tiers it has."""


def nic_port(topology: Topology, name: str) -> tuple[str, int]:
    """Split `h003:5` into NIC and plane. Raises ConfigError."""
    nic, colon, port = name.partition(":")
    if not colon or not port.isdecimal() or len(port) > 3:
        raise ConfigError(shown(name), "is no port of a NIC", "wanted: NIC:PLANE, as h003:5")
    topology.nic_index(nic)
    if int(port) >= topology.planes:
        raise ConfigError(f"{nic} port {port}", "no such port", f"ports are planes, 0 to {topology.planes - 1}")
    return nic, int(port)


# Checks.


def _target(kind: str) -> Target:
    if kind not in KINDS:
        raise ConfigError(shown(kind), "no such kind of fault", nearest_kind(kind))
    return KINDS[kind].target


def _wanted(target: Target) -> str:
    return f"faults of this kind are about: {target.value}"


def _refuse_strange(kind: str, target: Target, selector: Selector) -> None:
    """Raise ConfigError for fields that cannot narrow this kind of target; they are never ignored."""
    fitting, tiers = _FITTING[target]
    for key in selector.table():
        if key not in (*fitting, "mode", "value"):
            raise ConfigError(f"selector.{key}", f"says nothing about a {kind}", "there are " + ", ".join(fitting))
    if selector.tier and selector.tier not in tiers:
        raise ConfigError("selector.tier", f"{shown(selector.tier)} will not do", " or ".join(tiers))
    counted = selector.mode not in ("one", "all")
    if counted != (selector.value is not None):
        what = f"mode {selector.mode} needs a value" if counted else f"mode {selector.mode} takes no value"
        raise ConfigError("selector.value", what, "as mode: fixed, value: 2")
    if selector.value is not None:
        most = NAMES_MAX * NAMES_MAX if selector.mode == "fixed" else 100
        if not 1 <= selector.value <= most:
            raise ConfigError("selector.value", f"{selector.value} is out of range", f"1..{most}")


def _in_planes(selector: Selector, plane: int) -> bool:
    return not selector.plane or plane in selector.plane


def _field(key: str, value: Any) -> Any:
    where = f"selector.{key}"
    if key == "plane":
        items = value if isinstance(value, list | tuple) else [value]
        if not items or not all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in items):
            wrong = next(
                (item for item in items if isinstance(item, bool) or not isinstance(item, int) or item < 0), value
            )
            raise misfit(where, wrong, "a number or a list of numbers")
        return tuple(items)
    if key in ("links", "nodes", "nic_ports", "of", "hosts", "labels"):
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list | tuple) or not 1 <= len(items) <= NAMES_MAX:
            raise ConfigError(where, f"{shown(str(value))} will not do", "a name, a glob or a list of them")
        if not all(isinstance(item, str) and 0 < len(item) <= NAME_CHARS_MAX for item in items):
            raise ConfigError(where, "not all are names or globs")
        return tuple(items)
    if key == "value":
        if not isinstance(value, int) or isinstance(value, bool):
            raise ConfigError(where, f"{value!r} is no whole number")
        return value
    known = {"mode": MODES, "direction": DIRECTIONS, "tier": (*_NODE_TIERS, *_LINK_TIERS)}[key]
    if value not in known:
        raise ConfigError(where, f"{shown(str(value))} will not do", "there are " + ", ".join(known))
    return value
