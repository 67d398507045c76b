"""Real hosts on one machine: namespaces joined by veth and a bridge, a real sshd on each.

    async with cluster(hosts=3, family=6, mtu=9000) as hosts:
        await hosts.home.run(["ssh", hosts[0].address])
        await hosts[1].kill()

`hosts[0]` is h1; `hosts.home` is one more, for the orchestrator. Every host has a network, process numbers, a name and
mounts of its own; /run, /dev/shm and /var/log are private, and so is `folder`, which is the home of root there and has
the same path inside and outside. All other files are the machine's, its interpreters above all.

What a host is: its PID 1 is sshd, so that one SIGKILL ends everything on it, and its cable ends in the hub, a network
that nothing joins to the machine's. The hub's PID 1 contains all of them and dies with the test process, however that
ends. Folders of dead test processes are swept by the next cluster.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

from tests.support import namespaces, ping
from tests.support.namespaces import Finished, entering
from tests.support.packages import program

Family = Literal[4, 6, 46]
"""Addresses of which kind the hosts have; 46: both, and `address` is the one of version 4."""

MTU_BYTES = 1500
SSH_PORT = 22
USER = "root"
BOOT_WALL_S = 20.0
ANSWER_WALL_S = 5.0
_APART = ("--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc")
_PREFIX = "mrchosts-"
_ETHERNET = "02:00:00:00:00"
_NOBODY = f"{_ETHERNET}:00"
"""An address of Ethernet that no interface has: what is sent there vanishes silently."""

_HUB = """
ip link set lo up
ip link add bridge type bridge mcast_snooping 0
ip link set bridge mtu $1 up
echo up
exec cat
"""

# $1 the host's name, $2 its MTU, $3 its folder, $4 its address of Ethernet, the rest those of IP. Descriptor 9 is the
# hub's network.
_HOST = """
name=$1 mtu=$2 folder=$3 ethernet=$4
shift 4
hostname $name
mount -t tmpfs tmpfs /run
mkdir -m 755 /run/sshd
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /var/log
mount --bind $folder/../$name.passwd /etc/passwd
{
    echo link set lo up
    echo link add eth0 address $ethernet mtu $mtu type veth peer name $name mtu $mtu netns /proc/self/fd/9
    for address; do case $address in
    *:*) echo addr add $address dev eth0 nodad ;;
    *) echo addr add $address dev eth0 ;;
    esac; done
    echo link set eth0 up
} | ip -batch -
nsenter --net=/proc/self/fd/9 ip link set $name master bridge up
exec 9<&-
cd $folder
exec $SSHD -D -e -f ../$name.sshd
"""

_SSHD = """
Port {port}
{listen}
HostKey {folder}/{name}.key
AuthorizedKeysFile {folder}/user.key.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
MaxStartups 64
MaxSessions 64
PrintMotd no
Subsystem sftp internal-sftp
"""


class Host:
    """One host: boot it, end it, cut its cable, run commands on it."""

    def __init__(self, name: str, number: int, cluster: "Cluster") -> None:
        self.name = name
        self.addresses = _addresses(number, cluster.family)
        self.folder = cluster.folder / name
        self.ahead_s = 0
        """How much more its monotonic clock shows than the machine's, from its next boot on."""
        self.log: list[str] = []
        """What its sshd says."""
        # It keeps this one over a boot: others remember it for longer than a host takes to return.
        self._ethernet = f"{_ETHERNET}:{number:02x}"
        self._cluster = cluster
        self._entry: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._init = 0

    @property
    def address(self) -> str:
        return self.addresses[0]

    @property
    def init(self) -> int:
        """Its PID 1, by the machine's number."""
        assert self._init, f"{self.name} is not up"
        return self._init

    async def boot(self) -> None:
        """Start it, the first time or after `kill`, and return when its sshd listens. Its folder is as it was."""
        assert not self._init, f"{self.name} is up already"
        cluster = self._cluster
        inner = [
            _tool("unshare"),
            "--net",
            "--uts",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child=SIGKILL",
            "--mount-proc",
            *(["--time", f"--monotonic={self.ahead_s}"] if self.ahead_s else []),
        ]
        figures = [self.name, str(cluster.mtu), str(self.folder), self._ethernet, *map(_with_length, self.addresses)]
        self._entry = await asyncio.create_subprocess_exec(
            *entering(cluster.hub, "net", "mount", "pid"),
            *("sh", "-ec", 'exec 9</proc/1/ns/net; exec "$@"', "sh"),
            *inner, "sh", "-ec", _HOST, "sh", *figures,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "SSHD": _tool("sshd")},
        )  # fmt: skip
        listening = asyncio.Event()
        self._listening = asyncio.create_task(self._listen(listening))
        async with asyncio.timeout(BOOT_WALL_S):
            await listening.wait()
        assert namespaces.children(self._entry.pid), f"{self.name} does not boot: {self.log}"
        # nsenter, unshare, and its only child.
        [made] = namespaces.children(self._entry.pid)
        [self._init] = namespaces.children(made)

    async def _listen(self, listening: asyncio.Event) -> None:
        assert self._entry is not None
        assert self._entry.stderr is not None
        to_come = len(self.addresses)
        async for line in self._entry.stderr:
            self.log.append(line.decode(errors="replace").rstrip())
            to_come -= "Server listening" in self.log[-1]
            if not to_come:
                listening.set()
        listening.set()

    async def kill(self, *, quietly: bool = False) -> None:
        """One SIGKILL ends all of it. Its kernel, which is ours, still closes its connections; `quietly` it cannot."""
        if quietly:
            await self.cut()
        os.kill(self.init, signal.SIGKILL)
        await self.gone()

    async def gone(self) -> None:
        """Wait until nothing of it runs, and nothing answers for it."""
        if self._entry is not None and self._listening is not None:
            await self._entry.wait()
            await self._listening
            # The kernel lets the network of the dead live on for a while, which answers echo requests.
            await self._cluster.take_cable(self.name)
        self._init = 0
        self._entry = None

    async def cut(self) -> None:
        """Pull its cable: the carrier is gone, nothing comes or goes."""
        await self._cluster.at_the_hub("link", "set", self.name, "down")

    async def mend(self) -> None:
        """Plug its cable in again."""
        await self._cluster.at_the_hub("link", "set", self.name, "up")

    def entering(self) -> list[str]:
        """The beginning of a command that runs what follows on this host, in its folder."""
        return [
            *entering(self.init, "net", "uts", "mount", "pid", "time"),
            "env",
            "-C",
            str(self.folder),
            f"HOME={self.folder}",
        ]

    async def run(
        self, argv: Sequence[str], environment: Mapping[str, str] | None = None, given: bytes = b""
    ) -> Finished:
        """Run a command on it to its end."""
        return await namespaces.run([*self.entering(), *argv], environment, given)

    async def reaches(self, address: str, packet_bytes: int = 100, within_s: float = ANSWER_WALL_S) -> bool:
        """Whether the address answers an echo request of this size, which is sent whole or not at all."""
        with self.network():
            by = ping.opened(address)
        with by:
            return await ping.answers(by, address, packet_bytes, within_s)

    def pids(self) -> list[int]:
        """Every process on it, by the machine's numbers."""
        return namespaces.pids_within("pid", namespaces.identity(self.init, "pid"))

    def network(self) -> contextlib.AbstractContextManager[None]:
        """In the block, sockets that this thread makes are this host's."""
        return namespaces.network_of(self.init)


class Cluster:
    """The hosts, the hub between them, and what a client needs to log in."""

    def __init__(self, folder: Path, hosts: int, family: Family, mtu: int) -> None:
        self.folder = folder
        self.family: Family = family
        self.mtu = mtu
        self.hub = 0
        """PID 1 of all, by the machine's number."""
        self.user_key = folder / "user.key"
        self.known_hosts = folder / "known_hosts"
        self.hosts = [Host(f"h{number}", number, self) for number in range(1, hosts + 1)]
        self.home = Host("home", hosts + 1, self)

    def __iter__(self) -> Iterator[Host]:
        return iter(self.hosts)

    def __getitem__(self, index: int) -> Host:
        return self.hosts[index]

    async def at_the_hub(self, *arguments: str) -> None:
        """`ip` in the network between the hosts."""
        (await namespaces.run([*entering(self.hub, "net"), _tool("ip"), *arguments])).well()

    async def take_cable(self, name: str) -> None:
        """Remove a host's cable, if it and the hub are still there."""
        if self.hub:
            await namespaces.run([*entering(self.hub, "net"), _tool("ip"), "link", "del", name])

    async def partition(self, one: Host, other: Host) -> None:
        """Let nothing through between the two, either way, silently; both reach everybody else.

        Each is given a neighbour's address for the other that nobody has.
        """
        await self._neighbours(one, other, "replace", "lladdr", _NOBODY, "nud", "permanent")

    async def reunite(self, one: Host, other: Host) -> None:
        """The end of a partition."""
        await self._neighbours(one, other, "del")

    async def _neighbours(self, one: Host, other: Host, order: str, *what: str) -> None:
        for host, peer in ((one, other), (other, one)):
            for address in peer.addresses:
                (await host.run([_tool("ip"), "neigh", order, address, *what, "dev", "eth0"])).well()


def can_be_made() -> None:
    """Skips the test, or fails it in CI, where programs or privileges for hosts are missing."""
    namespaces.privileged()
    for name in ("ip", "sshd", "ssh-keygen", "unshare", "nsenter", "setpriv"):
        program(name)


@asynccontextmanager
async def cluster(hosts: int = 3, family: Family = 4, mtu: int = MTU_BYTES) -> AsyncIterator[Cluster]:
    """Hosts that are up and reach each other; nothing of them is left after the block. See `can_be_made`."""
    can_be_made()
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=prefix()))
    async with AsyncExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        made = Cluster(folder, hosts, family, mtu)
        every = [*made.hosts, made.home]
        await asyncio.gather(_keys(folder, "user"), *(_furnish(host, folder) for host in every))
        keys = {host: (folder / f"{host.name}.key.pub").read_text().strip() for host in every}
        lines = [f"{address} {key}\n" for host, key in keys.items() for address in host.addresses]
        made.known_hosts.write_text("".join(lines))
        await stack.enter_async_context(_hub(made))
        for host in every:
            stack.push_async_callback(host.gone)
        stack.callback(_end, made)
        await asyncio.gather(*(host.boot() for host in every))
        yield made


@asynccontextmanager
async def _hub(made: Cluster) -> AsyncIterator[None]:
    """The namespaces that hold all others; they end with this process or with the block."""
    process = await asyncio.create_subprocess_exec(
        _tool("setpriv"), "--pdeathsig", "KILL",
        _tool("unshare"), "--net", *_APART,
        "sh", "-ec", _HUB, "sh", str(made.mtu),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(BOOT_WALL_S):
            assert await process.stdout.readline() == b"up\n"
        [made.hub] = namespaces.children(process.pid)
        yield
    finally:
        _end(made)
        await process.wait()


def _end(made: Cluster) -> None:
    """One SIGKILL for the hub, and with it for everything on every host."""
    with contextlib.suppress(ProcessLookupError):
        if made.hub:
            os.kill(made.hub, signal.SIGKILL)
    made.hub = 0


async def _furnish(host: Host, folder: Path) -> None:
    """What a host has on its disk before its first start: its key, sshd's configuration, its users, its folder."""
    host.folder.mkdir()
    shell = shutil.which("sh")
    users = f"{USER}:x:0:0:{USER}:{host.folder}:{shell}\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
    (folder / f"{host.name}.passwd").write_text(users)
    listen = "\n".join(f"ListenAddress {address}" for address in host.addresses)
    (folder / f"{host.name}.sshd").write_text(_SSHD.format(port=SSH_PORT, listen=listen, folder=folder, name=host.name))
    await _keys(folder, host.name)


async def _keys(folder: Path, name: str) -> None:
    command = [_tool("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / f"{name}.key")]
    (await namespaces.run(command)).well()


def _addresses(number: int, family: Family) -> tuple[str, ...]:
    four, six = f"10.77.0.{number}", f"fd4d:5243::{number}"
    return {4: (four,), 6: (six,), 46: (four, six)}[family]


def _with_length(address: str) -> str:
    return f"{address}/{64 if ':' in address else 24}"


def _tool(name: str) -> str:
    return str(program(name))


def _owner(pid: int) -> str:
    """A process beyond mistaking: its number and the moment of its start. Raises OSError when there is none."""
    return f"{pid}-{Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[19]}"


def prefix() -> str:
    """How names of folders of this process begin that the next cluster sweeps if the process is killed."""
    return f"{_PREFIX}{_owner(os.getpid())}-"


def _sweep() -> None:
    """Remove the folders of test processes that were killed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = "-".join(left.name.removeprefix(_PREFIX).split("-")[:2])
        try:
            alive = _owner(int(owner.partition("-")[0])) == owner
        except OSError:
            alive = False
        if not alive:
            shutil.rmtree(left, ignore_errors=True)
