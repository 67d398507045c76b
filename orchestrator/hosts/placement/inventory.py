"""The hosts of a fabric and the rules by which its nodes are placed on them, as records.

Pure. Owns what there is to know of a host before anything has been asked of it. How a file says it, and what is
refused, is `orchestrator.hosts.placement.inventory_file`'s; which node goes where is
`orchestrator.hosts.placement.placement`'s.
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
"""Where a standing share service listens unless it is told otherwise."""
SERVICE_KEY: Final = "cluster.key"
PYTHON: Final = "python3"
RUN_DIR: Final = "mrcfabric"


@dataclass(frozen=True, slots=True)
class Ssh:
    """How a host is logged in to."""

    address: str
    """An address or a name that the resolver or the configuration of ssh knows."""
    port: int = SSH_PORT
    user: str = ""
    """"": the name of whoever starts the fabric."""
    key: str = ""
    """File of the private key; "": what ssh would take."""
    known_hosts: str = ""
    """File of the keys of hosts; "": the user's own."""


@dataclass(frozen=True, slots=True)
class Service:
    """Where the standing share service of a host is called, by engines that do."""

    address: str = ""
    """"": the address for control."""
    port: int = SERVICE_PORT
    key: str = SERVICE_KEY
    """File of the cluster's key, on the machine of whoever starts the fabric."""


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
    """Folder for the folders of runs there; relative: below where a login begins."""
    mtu: int | None = None
    """Largest IP packet towards the other hosts, bytes; None: found when the fabric starts."""
    bandwidth_bps: int | None = None
    """Of its underlay, each way."""
    service: Service = field(default_factory=Service)

    @classmethod
    def at(cls, name: str, address: str, cores: int | None = None) -> "Host":
        """A host with one address for all, and defaults for all else."""
        return cls(name, address, address, Ssh(address), cores)


@dataclass(frozen=True, slots=True)
class Pairing:
    """Some nodes, some hosts, and the place in the file that speaks of them."""

    nodes: tuple[str, ...]
    """Words of a node selector, `orchestrator.faults.selectors.nodes_meant`; none: every node."""
    hosts: tuple[str, ...]
    """Names of hosts, in the order of the inventory."""
    where: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """How nodes are placed. A NIC and its rank are always together."""

    nics: NicRule = "spread"
    switches: SwitchRule = "by_plane"
    pin: tuple[Pairing, ...] = ()
    """These nodes on one of those hosts; the first that means a node decides."""
    exclude: tuple[Pairing, ...] = ()
    """These nodes on none of those hosts."""
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
    """The file; "" when there is none."""

    @property
    def ip_version(self) -> Literal[4, 6]:
        """Of all data addresses."""
        return ip_address(self.hosts[0].data).version

    def host(self, name: str) -> Host:
        """A host by name. Raises ConfigError."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise ConfigError(shown(name), "no such host", "there are " + ", ".join(host.name for host in self.hosts[:20]))
