"""Inventories as YAML files, with the line of every mistake.

Owns the spelling of a file and what it refuses. A file has a table `hosts`, by name, and may have `rules`:

    hosts:
      vm1: 10.0.0.1                       # data, control and ssh at one address
      vm2:
        data: 10.0.0.2
        cores: 8
        labels: {rack: a}
        ssh: {user: ubuntu, key: keys/vm2}
    rules:
      nics: cores
      pin:
        - {nodes: [tier=t1, plane=2], host: rack=a}

The types below say what may stand where, and `tools.schemas.inventory` makes the JSON Schema from them. No list or
table here holds texts with a pattern, for the reason that `orchestrator.scenario.model` gives.
"""

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from mrcfabric.naming import shown
from mrcfabric.nearest import nearest_hint
from mrcfabric.topology_file import text_of
from orchestrator.hosts.placement.inventory import (
    PYTHON,
    RUN_DIR,
    SERVICE_KEY,
    SERVICE_PORT,
    SSH_PORT,
    Host,
    Inventory,
    NicRule,
    Pairing,
    Rules,
    Service,
    Ssh,
    SwitchRule,
)
from orchestrator.yamlfile.decode import decode
from orchestrator.yamlfile.document import FABRIC_KEY, Spot, parse
from orchestrator.yamlfile.spelling import Rate, Size, amount

HOSTS_MAX: Final = 1024
PAIRINGS_MAX: Final = 1000
"""Entries of `pin` at most, and of `exclude`."""
WORDS_MAX: Final = 256
LABELS_MAX: Final = 64
NODES_PER_PROCESS_MAX: Final = 4096
SHOWN_MAX: Final = 20
"""How many names a hint shows."""
NOBODY: Final = "none"
"""Stands for a host: the orchestrator is on none of them."""

_WHAT: Final = "an inventory"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_LABEL: Final = re.compile(r"[A-Za-z0-9_./-]{1,64}", re.ASCII)
_LOGIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:%-]{0,252}", re.ASCII)
_LITERAL: Final = "an address as 10.0.0.2 or fd00::2 is wanted; names are not looked up"

Line: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]
Words: TypeAlias = Line | Annotated[list[Line], Meta(min_length=1, max_length=WORDS_MAX)]


class SshTable(Struct, kw_only=True, forbid_unknown_fields=True):
    """How a host is logged in to."""

    address: Line | UnsetType = UNSET
    """An address, or a name that the resolver or ssh knows; as `control` when it is left out."""
    port: Annotated[int, Meta(ge=1, le=65535)] = SSH_PORT
    user: Line | UnsetType = UNSET
    key: Line | UnsetType = UNSET
    """File of the private key, from the folder of the inventory."""
    known_hosts: Line | UnsetType = UNSET
    """File of the keys of hosts, from the folder of the inventory."""


class ServiceTable(Struct, kw_only=True, forbid_unknown_fields=True):
    """Where its standing share service (`mrcfabric share`) is called."""

    address: Line | UnsetType = UNSET
    """IPv4 or IPv6; as `control` when it is left out."""
    port: Annotated[int, Meta(ge=1, le=65535)] = SERVICE_PORT
    key: Line = SERVICE_KEY
    """File of the cluster's key, from the folder of the inventory."""


class HostTable(Struct, kw_only=True, forbid_unknown_fields=True):
    """One host; a host of which only `data` is told may be that address alone."""

    data: Line
    """IPv4 or IPv6 address of the UDP underlay."""
    control: Line | UnsetType = UNSET
    """Address for control; as `data` when it is left out."""
    ssh: SshTable = field(default_factory=SshTable)
    service: ServiceTable = field(default_factory=ServiceTable)
    cores: Annotated[int, Meta(ge=1, le=4096)] | UnsetType = UNSET
    """The host is asked when it is left out."""
    memory_bytes: Size | UnsetType = UNSET
    labels: dict[str, Line | int] = field(default_factory=dict)
    python: Line = PYTHON
    """The interpreter there."""
    run_dir: Line = RUN_DIR
    """Folder for runs there; relative: below where a login begins."""
    mtu: Annotated[int, Meta(ge=576, le=65535)] | UnsetType = UNSET
    """Largest IP packet towards the other hosts; found at start when it is left out."""
    bandwidth_bps: Rate | UnsetType = UNSET
    """Of its underlay, each way."""


class PinTable(Struct, kw_only=True, forbid_unknown_fields=True):
    """These nodes on that host, or on those with these labels; the first entry that means a node decides."""

    nodes: Words
    """Names or globs, `tier=t1`, `plane=2`, `of=h003`; each that is given narrows the choice."""
    host: Line
    """A name, or labels as `rack=a` or `rack=a,kind=big`."""


class ExcludeTable(Struct, kw_only=True, forbid_unknown_fields=True):
    """These nodes, or none at all, on that host, or on those with these labels."""

    nodes: Words | UnsetType = UNSET
    """As of `pin`; every node when it is left out."""
    host: Line


class RulesTable(Struct, kw_only=True, forbid_unknown_fields=True):
    """How nodes are placed. A NIC and its rank are always together."""

    nics: NicRule = "spread"
    """`spread`: evenly; `pack`: host after host; `cores`: by load and cores."""
    switches: SwitchRule = "by_plane"
    """`by_plane`: whole planes, evenly; `spread`: one by one, evenly; `pack`: host after host; `cores`: by load and
    cores."""
    pin: Annotated[list[PinTable], Meta(max_length=PAIRINGS_MAX)] = field(default_factory=list)
    exclude: Annotated[list[ExcludeTable], Meta(max_length=PAIRINGS_MAX)] = field(default_factory=list)
    nodes_per_process: Annotated[int, Meta(ge=1, le=NODES_PER_PROCESS_MAX)] = 1
    """Most switches of one plane that share a process; a NIC always has its own."""
    orchestrator: Line = NOBODY
    """The host on which the orchestrator runs; `none`: it is none of these, and carries no daemon."""


class InventoryTable(Struct, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    hosts: Annotated[dict[str, Any], Meta(min_length=1, max_length=HOSTS_MAX)]
    """By name."""
    rules: RulesTable = field(default_factory=RulesTable)


def load(path: str | Path) -> Inventory:
    """The inventory of a file. Raises ConfigError: `file:line: what (hint)`."""
    return parsed(str(path), text_of(str(path), _WHAT))


def parsed(path: str, text: str) -> Inventory:
    """The inventory of a file's text. Errors name `path`, and relative files start from it. Raises ConfigError."""
    document = parse(path, text, "an inventory has at least hosts")
    top = Spot(document)
    if document.fabric is not None:
        raise (top / FABRIC_KEY).wrong("no such key here", "the topology is another file: `mrcfabric plan FILE`")
    table = decode(top, document.root, InventoryTable)
    hosts = tuple(_host(top / "hosts" / name, name, value) for name, value in table.hosts.items())
    _refuse_twins(top / "hosts", hosts)
    return Inventory(hosts, _rules(top / "rules", table.rules, hosts), path)


def _host(spot: Spot, name: str, value: Any) -> Host:
    if not _NAME.fullmatch(name) or name == NOBODY:
        raise spot.wrong(f"{shown(name)} is no name of a host", "letters, digits, dots, - and _, at most 64")
    plain = not isinstance(value, dict)
    table = decode(spot, {"data": value} if plain else value, HostTable)
    data = _address(spot if plain else spot / "data", table.data)
    control = data if table.control is UNSET else _address(spot / "control", table.control)
    return Host(
        name=name,
        data=data,
        control=control,
        ssh=_ssh(spot / "ssh", table.ssh, control),
        cores=_given(table.cores),
        memory_bytes=_amount(spot, "memory_bytes", table.memory_bytes),
        labels=_labels(spot / "labels", table.labels),
        python=_line(spot / "python", table.python),
        run_dir=_line(spot / "run_dir", table.run_dir),
        mtu=_given(table.mtu),
        bandwidth_bps=_amount(spot, "bandwidth_bps", table.bandwidth_bps),
        service=_service(spot / "service", table.service),
    )


def _address(spot: Spot, text: str) -> str:
    """An address that other hosts can reach, in its usual spelling."""
    try:
        address = ip_address(text)
    except ValueError:
        raise spot.wrong(f"{shown(text)} is no address", _LITERAL) from None
    if address.is_unspecified or address.is_multicast or str(address) == "255.255.255.255":
        raise spot.wrong(f"{address} is no host's address", _LITERAL)
    if isinstance(address, IPv6Address):
        if address.is_link_local:
            raise spot.wrong(f"{shown(text)} means another host on every link", "an address that all hosts can reach")
        if address.scope_id is not None:
            raise spot.wrong(f"{shown(text)} names an interface of one host", f"{text.partition('%')[0]}")
        if address.ipv4_mapped:
            raise spot.wrong(f"{shown(text)} is an IPv4 address in disguise", f"{address.ipv4_mapped}")
    return str(address)


def _ssh(spot: Spot, table: SshTable, control: str) -> Ssh:
    address = control if table.address is UNSET else table.address
    if not _LOGIN.fullmatch(address) and address != control:
        raise (spot / "address").wrong(f"{shown(address)} will not do", "an address or a name that ssh knows")
    user = "" if table.user is UNSET else table.user
    if user and not _NAME.fullmatch(user):
        raise (spot / "user").wrong(f"{shown(user)} is no name of a user")
    return Ssh(
        address, table.port, user, _file(spot / "key", table.key), _file(spot / "known_hosts", table.known_hosts)
    )


def _service(spot: Spot, table: ServiceTable) -> Service:
    address = "" if table.address is UNSET else _address(spot / "address", table.address)
    return Service(address, table.port, _file(spot / "key", table.key))


def _file(spot: Spot, name: str | UnsetType) -> str:
    """A file on this machine. A relative name starts from the folder of the inventory."""
    if name is UNSET:
        return ""
    line = _line(spot, name)
    return line if line.startswith("~") else str(Path(spot.document.path).parent / line)


def _line(spot: Spot, text: str) -> str:
    if not text.isprintable() or text.startswith("-"):
        raise spot.wrong(f"{shown(text)} will not do", "one line of printable signs, no option")
    return text


def _given(value: int | UnsetType) -> int | None:
    return None if value is UNSET else value


def _amount(spot: Spot, key: str, written: int | str | UnsetType) -> int | None:
    if written is UNSET:
        return None
    value: int = amount(key, written)
    if value < 1:
        raise (spot / key).wrong(f"{written} will not do", "more than nothing, or leave it out")
    return value


def _labels(spot: Spot, labels: Mapping[str, str | int]) -> dict[str, str]:
    if len(labels) > LABELS_MAX:
        raise spot.wrong(f"{len(labels)} labels", f"at most {LABELS_MAX}")
    for key, value in labels.items():
        for word in (key, str(value)):
            if not _LABEL.fullmatch(word):
                raise (spot / key).wrong(f"{shown(word)} is no word of a label", "letters, digits, - _ . and /")
    return {key: str(value) for key, value in labels.items()}


def _refuse_twins(spot: Spot, hosts: Sequence[Host]) -> None:
    """Refuse two hosts at one address, which would take each other's packets, and hosts of two address families."""
    owners: dict[str, Host] = {}
    first = hosts[0]
    for host in hosts:
        for role, mine, its in (("data", host.data, first.data), ("control", host.control, first.control)):
            place = spot / host.name / role
            owner = owners.setdefault(mine, host)
            if owner is not host:
                raise place.wrong(f"{mine} is an address of {owner.name}", "every host has its own")
            if ip_address(mine).version != ip_address(its).version:
                hint = f"all {role} addresses are IPv{ip_address(its).version}, as {its} of {first.name}"
                raise place.wrong(f"{mine} cannot be reached from {first.name}", hint)
            if ip_address(mine).is_loopback != ip_address(its).is_loopback:
                raise place.wrong(f"{mine} and {its} of {first.name} cannot reach each other")


def _rules(spot: Spot, table: RulesTable, hosts: tuple[Host, ...]) -> Rules:
    names = [host.name for host in hosts]
    if table.orchestrator != NOBODY and table.orchestrator not in names:
        complaint = f"no host is called {shown(table.orchestrator)}"
        raise (spot / "orchestrator").wrong(complaint, _nearest(table.orchestrator, [NOBODY, *names]))
    return Rules(
        nics=table.nics,
        switches=table.switches,
        pin=tuple(_pairing(spot / "pin" / at, one, hosts) for at, one in enumerate(table.pin)),
        exclude=tuple(_pairing(spot / "exclude" / at, one, hosts) for at, one in enumerate(table.exclude)),
        nodes_per_process=table.nodes_per_process,
        orchestrator="" if table.orchestrator == NOBODY else table.orchestrator,
    )


def _pairing(spot: Spot, table: PinTable | ExcludeTable, hosts: tuple[Host, ...]) -> Pairing:
    nodes = () if table.nodes is UNSET else (table.nodes,) if isinstance(table.nodes, str) else tuple(table.nodes)
    return Pairing(nodes, _meant(spot / "host", table.host, hosts), spot.document.where(spot.path))


def _meant(spot: Spot, text: str, hosts: tuple[Host, ...]) -> tuple[str, ...]:
    """Names of the hosts that a name or labels select."""
    if "=" not in text:
        names = [host.name for host in hosts]
        if text not in names:
            raise spot.wrong(f"no host is called {shown(text)}", _nearest(text, names))
        return (text,)
    wanted = [tuple(part.split("=", 1)) for part in text.split(",")]
    found = tuple(
        host.name for host in hosts if all(len(pair) == 2 and host.labels.get(pair[0]) == pair[1] for pair in wanted)
    )
    if not found:
        known = sorted({f"{key}={value}" for host in hosts for key, value in host.labels.items()})
        hint = _nearest(text, known) if known else "no host has a label"
        raise spot.wrong(f"no host has the labels {shown(text)}", hint)
    return found


def _nearest(word: str, known: Sequence[str]) -> str:
    listed = ", ".join(known[:SHOWN_MAX]) + (", ..." if len(known) > SHOWN_MAX else "")
    return nearest_hint(word, known, f"there are {listed}")
