"""The configuration of one daemon, nicd or switchd: a YAML (or JSON) file written by hand, or a table from the agent.

Owns the keys, their checks and their defaults. `nicd.compose` and `switchd.compose` make the rest of a core's
configuration from `topology`; `mrcfabric.daemon` uses the values. The keys, with * for the required:

    fabric, epoch, incarnation   the fabric's name (default: the topology's), its launch, this node's life in it
    node*                        the name, as `p3-t0-17` or `h042`
    topology                     a table as in a topology file; default: the demonstration's
    links*                       [{port, local: [address, port], peer: [address, port], delay_ns, and under a page
                                   peer_slot, peer_port, peer_doorbell}]; path_mtu where frames are longer than that
    control*                     [address, port] of the control channel
    secret | secret_file         hex; default: the file `secret` in run_dir
    clock                        {page_fd | page_path, slot, doorbell_fd, agent_doorbell_fd, one_host} of the agent's
                                 host, or
                                 {dilation, wall_epoch_s}: by the wall clock, fabric time 0 at that Unix time (default:
                                 when the daemon starts)
    run_dir, verbs               the folder of the run; a NIC's host API socket (default: run_dir/verbs/NODE.sock)
    metrics_listen               [address, port] or "address:port": serve Prometheus oneself
    start_ns                     fabric time at which a restarted node begins
    commands                     [{at_ns, op, args}] to carry out at their instants
    trace, offload               keep a digest of all that the node does; use train offload (default)
    alive_fd                     read end of a pipe: the daemon stops when it is closed
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from mrcfabric.control import Address, Realm, read_secret, secret_of
from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from mrcfabric.nearest import nearest_hint
from mrcfabric.quantity import quantity
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, Instant

FILE_BYTES_MAX = 16 << 20
LINKS_MAX = 4096
COMMANDS_MAX = 65_536
INCARNATION_MAX = (1 << 16) - 1
PATH_MTU_MIN, PATH_MTU_MAX = 576, 65_535
WAITS_MAX = 64
"""A neighbour with more ports is woken by whoever it waits for, even if others are not there yet."""
DILATION_BY_HAND = 20_000.0
"""Wall over fabric time of daemons started by hand: a hop of 1 us takes 20 ms."""

_Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LinkConfig:
    """One port: where its socket is bound, and its peer."""

    port: int
    local: Address
    peer: Address
    delay_ns: int
    peer_slot: int = 0
    peer_port: int = 0
    peer_doorbell: int | None = None
    """The eventfd of the peer's process; None when it is this process."""
    path_mtu: int | None = None
    """Largest IP packet that reaches the peer in one piece, where frames are longer than that."""


@dataclass(frozen=True, slots=True)
class ClockConfig:
    """The clock of the daemon: the page of its host or, without `page_fd` and `page_path`, the wall clock."""

    page_fd: int | None = None
    page_path: str | None = None
    slot: int = 0
    doorbell_fd: int | None = None
    agent_doorbell_fd: int | None = None
    one_host: bool = False
    """Whether the processes of all nodes are on this host, and the slots those of the topology."""
    dilation: float = DILATION_BY_HAND
    """For the wall clock only; a page has a dilation of its own."""
    wall_epoch_s: float | None = None

    @property
    def shared(self) -> bool:
        """Whether there is a page."""
        return self.page_fd is not None or self.page_path is not None


@dataclass(frozen=True, slots=True)
class ScriptedCommand:
    """A command known before the start."""

    at_ns: Instant
    op: str
    args: _Table


@dataclass(frozen=True, slots=True)
class DaemonConfig:
    """The whole configuration of one daemon. Make it with `from_table` or `load`."""

    node: str
    topology: Topology
    links: tuple[LinkConfig, ...]
    control: Address
    realm: Realm
    clock: ClockConfig = field(default_factory=ClockConfig)
    incarnation: int = 0
    run_dir: Path | None = None
    verbs: str | None = None
    metrics_listen: Address | None = None
    start_ns: Instant = 0
    crash_ns: Instant = NEVER
    """The instant at which it kills itself; NEVER: only when told to."""
    commands: tuple[ScriptedCommand, ...] = ()
    trace: bool = False
    offload: bool = True
    alive_fd: int | None = None
    crowd: int = 0
    """How many processes of its fabric run on its host (`mrcfabric.crowd`)."""

    def waits_of(self, peer: str) -> Callable[[], list[tuple[int, int, int]]] | None:
        """`LinkEnd.peer_waits_for` of a neighbour; None where it cannot be told, or would take too long to look at."""
        topology = self.topology
        if not self.clock.one_host or topology.port_count(topology.parse_node(peer).tier) > WAITS_MAX:
            return None
        ends = partial(topology.ports, peer)
        return lambda: [(topology.node_index(end.peer), end.peer_port, end.incoming_delay_ns) for end in ends()]


def load(path: str | Path) -> DaemonConfig:
    """The configuration in a file. Raises ConfigError: one line that names the file and the key."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}") from None
    if len(raw) > FILE_BYTES_MAX:
        raise ConfigError(str(path), f"is larger than {FILE_BYTES_MAX} bytes")
    import yaml  # an agent's daemons get tables, and their number is large

    try:
        table = yaml.safe_load(raw)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise ConfigError(where, f"is no YAML: {getattr(error, 'problem', None) or 'unreadable'}") from None
    except (ValueError, RecursionError):
        raise ConfigError(str(path), "is no YAML in UTF-8") from None
    try:
        return from_table(table)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.where}", error.what, error.hint) from None


CROWD_MAX = 1 << 20
_KEYS = (
    "alive_fd", "clock", "commands", "control", "crash_ns", "crowd", "epoch", "fabric", "incarnation", "links",
    "metrics_listen", "node", "offload", "run_dir", "secret", "secret_file", "start_ns", "topology", "trace", "verbs",
)  # fmt: skip


def from_table(raw: Any) -> DaemonConfig:
    """The configuration in a table of plain data. Raises ConfigError that names the key."""
    table = _table("configuration", raw, _KEYS)
    for key in ("node", "links", "control"):
        if key not in table:
            raise ConfigError(key, "is missing", "every daemon needs node, links and control")
    topology = _topology(table.get("topology"))
    node = _text("node", table["node"])
    topology.parse_node(node)
    run_dir = Path(_text("run_dir", table["run_dir"])) if "run_dir" in table else None
    verbs = _text("verbs", table["verbs"]) if "verbs" in table else None
    if verbs is None and run_dir is not None:
        verbs = str(run_dir / "verbs" / f"{node}.sock")
    listen = table.get("metrics_listen")
    clock = _clock(table.get("clock", {}))
    return DaemonConfig(
        node=node,
        topology=topology,
        links=_links(table["links"], topology, node),
        control=address("control", table["control"]),
        realm=Realm(
            _secret(table, run_dir),
            _text("fabric", table.get("fabric", topology.name)),
            _whole("epoch", table.get("epoch", 0), 0, NEVER),
        ),
        clock=clock,
        incarnation=_whole("incarnation", table.get("incarnation", 0), 0, INCARNATION_MAX),
        run_dir=run_dir,
        verbs=verbs,
        metrics_listen=None if listen is None else address("metrics_listen", listen),
        start_ns=_whole("start_ns", quantity("start_ns", table.get("start_ns", 0)), 0, NEVER - 1),
        crash_ns=_whole("crash_ns", quantity("crash_ns", table.get("crash_ns", NEVER)), 1, NEVER),
        commands=_commands(table.get("commands", [])),
        trace=_truth("trace", table.get("trace", False)),
        offload=_truth("offload", table.get("offload", True)),
        alive_fd=_descriptor("alive_fd", table.get("alive_fd")),
        crowd=_whole("crowd", table.get("crowd", 0), 0, CROWD_MAX),
    )


def address(where: str, value: Any) -> Address:
    """A UDP or TCP address: ["127.0.0.1", 5000], "127.0.0.1:5000", "[::1]:5000". Raises ConfigError."""
    hint = 'wanted: ["127.0.0.1", 5000] or "127.0.0.1:5000"'
    if isinstance(value, str):
        host, colon, number = value.rpartition(":")
        if not colon or not number.isdecimal() or len(number) > 5:
            raise ConfigError(where, f"{shown(value)} is no address", hint)
        value = [host.removeprefix("[").removesuffix("]"), int(number)]
    if not isinstance(value, list | tuple) or len(value) != 2 or not isinstance(value[0], str):
        raise ConfigError(where, f"{value!r} is no address", hint)
    try:
        host = str(ip_address(value[0]))
    except ValueError:
        raise ConfigError(where, f"{shown(value[0])} is no IPv4 or IPv6 address") from None
    return host, _whole(f"{where} port", value[1], 0, 65_535)


def _topology(raw: Any) -> Topology:
    if raw is None:
        return Topology.demo()
    table = _table("topology", raw)
    return Topology.from_dict({key: quantity(key, value) for key, value in table.items()})


def _links(raw: Any, topology: Topology, node: str) -> tuple[LinkConfig, ...]:
    ends = {end.port: end for end in topology.ports(node)}
    links: dict[int, LinkConfig] = {}
    keys = ("delay_ns", "local", "path_mtu", "peer", "peer_doorbell", "peer_node", "peer_port", "peer_slot", "port")
    for number, entry in enumerate(_list("links", raw, LINKS_MAX)):
        where = f"links[{number}]"
        table = _table(where, entry, keys)
        for key in ("port", "local", "peer"):
            if key not in table:
                raise ConfigError(f"{where}.{key}", "is missing")
        port = _whole(f"{where}.port", table["port"], 0, LINKS_MAX)
        if port not in ends or port in links:
            what = "stands here twice" if port in links else f"{node} has no such port"
            raise ConfigError(f"{where}.port", f"port {port}: {what}", f"it has ports 0 to {len(ends) - 1}")
        end = ends[port]
        peer = table.get("peer_node", end.peer)
        if peer != end.peer:
            raise ConfigError(f"{where}.peer_node", f"{peer!r} is not at port {port} of {node}", f"{end.peer} is")
        delay_ns = quantity("delay_ns", table.get("delay_ns", end.incoming_delay_ns))
        links[port] = LinkConfig(
            port=port,
            local=address(f"{where}.local", table["local"]),
            peer=address(f"{where}.peer", table["peer"]),
            delay_ns=_whole(f"{where}.delay_ns", delay_ns, 1, NEVER),
            peer_slot=_whole(f"{where}.peer_slot", table.get("peer_slot", 0), 0, NEVER),
            peer_port=_whole(f"{where}.peer_port", table.get("peer_port", end.peer_port), 0, LINKS_MAX),
            peer_doorbell=_descriptor(f"{where}.peer_doorbell", table.get("peer_doorbell")),
            path_mtu=_path_mtu(f"{where}.path_mtu", table.get("path_mtu")),
        )
    if missing := sorted(ends.keys() - links.keys()):
        raise ConfigError("links", f"port {missing[0]} of {node} has no link", f"to {ends[missing[0]].peer}")
    return tuple(links[port] for port in sorted(links))


def _path_mtu(where: str, value: Any) -> int | None:
    return None if value is None else _whole(where, value, PATH_MTU_MIN, PATH_MTU_MAX)


def _clock(raw: Any) -> ClockConfig:
    keys = tuple(item.name for item in dataclasses.fields(ClockConfig))
    table = _table("clock", raw, keys)
    shared = "page_fd" in table or "page_path" in table
    if shared and "slot" not in table:
        raise ConfigError("clock.slot", "is missing", "a page needs the node's slot in it")
    epoch = table.get("wall_epoch_s")
    dilation = table.get("dilation", DILATION_BY_HAND)
    if not isinstance(dilation, int | float) or isinstance(dilation, bool) or not 1 <= dilation <= 1e12:
        raise ConfigError("clock.dilation", f"{dilation!r} will not do", "wanted: a number from 1")
    if epoch is not None and (not isinstance(epoch, int | float) or isinstance(epoch, bool)):
        raise ConfigError("clock.wall_epoch_s", f"{epoch!r} will not do", "wanted: seconds since 1970")
    return ClockConfig(
        page_fd=_descriptor("clock.page_fd", table.get("page_fd")),
        page_path=_text("clock.page_path", table["page_path"]) if "page_path" in table else None,
        slot=_whole("clock.slot", table.get("slot", 0), 0, NEVER),
        doorbell_fd=_descriptor("clock.doorbell_fd", table.get("doorbell_fd")),
        agent_doorbell_fd=_descriptor("clock.agent_doorbell_fd", table.get("agent_doorbell_fd")),
        one_host=_truth("clock.one_host", table.get("one_host", False)),
        dilation=float(dilation),
        wall_epoch_s=None if epoch is None else float(epoch),
    )


def _secret(table: _Table, run_dir: Path | None) -> bytes:
    if "secret" in table:
        if "secret_file" in table:
            raise ConfigError("secret", "stands beside secret_file", "one of them")
        return secret_of(_text("secret", table["secret"]), "secret")
    if "secret_file" in table:
        return read_secret(Path(_text("secret_file", table["secret_file"])))
    if run_dir is None:
        raise ConfigError("secret", "is missing", "give secret, secret_file or run_dir")
    return read_secret(run_dir / "secret")


def _commands(raw: Any) -> tuple[ScriptedCommand, ...]:
    commands: list[ScriptedCommand] = []
    for number, entry in enumerate(_list("commands", raw, COMMANDS_MAX)):
        where = f"commands[{number}]"
        table = _table(where, entry, ("at_ns", "op", "args"))
        at_ns = _whole(f"{where}.at_ns", quantity("at_ns", table.get("at_ns")), 1, NEVER - 1)
        op = _text(f"{where}.op", table.get("op"))
        commands.append(ScriptedCommand(at_ns, op, _table(f"{where}.args", table.get("args", {}))))
    return tuple(commands)


def _table(where: str, value: Any, known: tuple[str, ...] | None = None) -> _Table:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ConfigError(where, "is no table of settings")
    for key in value:
        if known is not None and key not in known:
            raise ConfigError(where, f"no setting is called {shown(key)}", nearest_hint(key, known))
    return value


def _list(where: str, value: Any, most: int) -> list[Any]:
    if not isinstance(value, list | tuple) or len(value) > most:
        raise ConfigError(where, f"is no list of at most {most} tables")
    return list(value)


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ConfigError(where, f"{value!r} will not do", "wanted: a text")
    return value


def _whole(where: str, value: Any, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ConfigError(where, f"{value!r} will not do", f"wanted: a whole number from {least} to {most}")
    return value


def _truth(where: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(where, f"{value!r} will not do", "wanted: true or false")
    return value


def _descriptor(where: str, value: Any) -> int | None:
    return None if value is None else _whole(where, value, 0, 1 << 20)
