"""The hosts of a fabric, and the rules that place its nodes on them, as records.

Pure. Owns what is known of a host before anybody has asked it. `orchestrator.hosts.placement.inventory_file` reads a
file and refuses mistakes in it. `orchestrator.hosts.placement.placement` says which node is where.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, Literal, TypeAlias

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown

NicRule: TypeAlias = Literal["spread", "pack", "cores"]
SwitchRule: TypeAlias = Literal["by_plane", "spread", "pack", "cores"]

SSH_PORT: Final = 22
SERVICE_PORT: Final = 4790
"""Where a standing share service listens by default."""
SERVICE_KEY: Final = "cluster.key"
PYTHON: Final = "python3"
RUN_DIR: Final = "mrcfabric"


@dataclass(frozen=True, slots=True)
class Ssh:
    """How to log in to a host."""

    address: str
    """An address, or a name that the resolver or ssh's configuration knows."""
    port: int = SSH_PORT
    user: str = ""
    """The login name; "": that of the user who starts the fabric."""
    key: str = ""
    """File of the private key; "": the ones that ssh would take."""
    known_hosts: str = ""
    """File of known keys of hosts; "": the user's own."""


@dataclass(frozen=True, slots=True)
class Service:
    """Where a host's standing share service listens, for the engine that uses it."""

    address: str = ""
    """Its address; "": the host's address for control."""
    port: int = SERVICE_PORT
    key: str = SERVICE_KEY
    """File of the cluster's key, on the machine that starts the fabric."""


@dataclass(frozen=True, slots=True)
class Host:
    """One machine."""

    name: str
    data: str
    """IPv4 or IPv6 address of the UDP underlay, as `ipaddress` writes it."""
    control: str
    """Address for control and relays."""
    ssh: Ssh
    cores: int | None = None
    """None: the host is asked when the fabric starts."""
    memory_bytes: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    python: str = PYTHON
    """The interpreter there."""
    run_dir: str = RUN_DIR
    """Folder there for the folders of runs; a relative one is below the folder where a login begins."""
    mtu: int | None = None
    """Largest IP packet towards the other hosts, bytes; None: found when the fabric starts."""
    bandwidth_bps: int | None = None
    """Rate of its underlay, each way."""
    service: Service = field(default_factory=Service)

    @classmethod
    def at(cls, name: str, address: str, cores: int | None = None) -> "Host":
        """A host with one address for everything, and defaults for the rest."""
        return cls(name, address, address, Ssh(address), cores)


@dataclass(frozen=True, slots=True)
class Pairing:
    """Some nodes, some hosts, and where the file names them."""

    nodes: tuple[str, ...]
    """Words of a node selector (`orchestrator.faults.selectors.nodes_meant`); empty: every node."""
    hosts: tuple[str, ...]
    """Names of hosts, in the order of the inventory."""
    where: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """How nodes are placed. A NIC and its rank are always together."""

    nics: NicRule = "spread"
    switches: SwitchRule = "by_plane"
    pin: tuple[Pairing, ...] = ()
    """Nodes that must be on one of some hosts. The first entry that matches a node decides."""
    exclude: tuple[Pairing, ...] = ()
    """Nodes that must be on none of some hosts."""
    nodes_per_process: int = 1
    """Most switches of one plane that share a process; a NIC always has its own."""
    orchestrator: str = ""
    """The host of the orchestrator; "": it is none of these, and carries no daemon."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """All hosts, in the order of the file, and the rules."""

    hosts: tuple[Host, ...]
    rules: Rules = field(default_factory=Rules)
    path: str = ""
    """The file; "" if there is none."""

    @property
    def ip_version(self) -> Literal[4, 6]:
        """IP version of all data addresses."""
        return ip_address(self.hosts[0].data).version

    def host(self, name: str) -> Host:
        """The host of this name. Raises ConfigError."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise ConfigError(shown(name), "no such host", "there are " + ", ".join(host.name for host in self.hosts[:20]))
