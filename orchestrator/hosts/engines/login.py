"""Logs in to a host over SSH. It always checks the host's key, and reports any failure in one line.

Owns how a connection is opened, and the reason it was lost. `orchestrator.hosts.engines.remote` uses the connection.
"""

import asyncio
import getpass
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import asyncssh

from mrcfabric.errors import ConfigError
from orchestrator.hosts.placement.inventory import Host

_DEFAULT_PORT: Final = 22


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a host may be silent."""

    connect_wall_s: float = 10.0
    """Until the host has let us in."""
    keepalive_s: float = 1.0
    """After so long without a word from the host, we ask it,"""
    keepalive_misses: int = 3
    """and after so many unanswered questions the connection is given up."""


class Line(asyncssh.SSHClient):
    """The callbacks of one asyncssh connection."""

    def __init__(self) -> None:
        self.offered: asyncssh.SSHKey | None = None
        """The host's key, if it is not among the known ones."""
        self.lost = "closed"
        """Why the connection ended."""

    def validate_host_public_key(self, _host: str, _addr: str, _port: int, key: asyncssh.SSHKey) -> bool:
        """Asked about a key that known_hosts does not have. Never trusts it, but keeps it for the error message."""
        self.offered = key
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self.lost = str(exc) or type(exc).__name__


async def login(host: Host, patience: Patience) -> tuple[asyncssh.SSHClientConnection, Line]:
    """Open a connection to a host and check its key. Raises ConfigError, in one line, whatever goes wrong."""
    access = host.ssh
    options: dict[str, Any] = {
        "known_hosts": str(_known_hosts(host)),
        "keepalive_interval": patience.keepalive_s,
        "keepalive_count_max": patience.keepalive_misses,
        "preferred_auth": "publickey",
        "client_version": "mrcfabric",
    }
    if access.user:
        options["username"] = access.user
    if access.key:
        options["client_keys"] = [await asyncio.to_thread(_key, host)]
    line = Line()
    try:
        async with asyncio.timeout(patience.connect_wall_s):
            connection = await asyncssh.connect(access.address, access.port, client_factory=lambda: line, **options)
    except asyncssh.HostKeyNotVerifiable as error:
        raise _unknown_key(host, line, error) from None
    except asyncssh.PermissionDenied:
        raise _refused(host) from None
    except (OSError, asyncssh.Error, ValueError) as error:
        raise _unreachable(host, patience, error) from None
    return connection, line


def _known_hosts(host: Host) -> Path:
    """The file of known keys. A user without one knows no host."""
    if not host.ssh.known_hosts:
        own = Path("~/.ssh/known_hosts").expanduser()
        return own if own.is_file() else Path(os.devnull)
    path = Path(host.ssh.known_hosts).expanduser()
    if not os.access(path, os.R_OK):
        raise _error(
            host, f"its `known_hosts`, {path}, cannot be read", "make it with ssh-keyscan, or correct its name"
        )
    return path


def _key(host: Host) -> asyncssh.SSHKey:
    path = Path(host.ssh.key).expanduser()
    try:
        return asyncssh.read_private_key(path)
    except OSError as error:
        raise _error(host, f"its key {path} cannot be read: {error.strerror}", "correct the name of the file") from None
    except asyncssh.KeyImportError as error:
        hint = f"leave `key` out and let the agent have it: ssh-add {path}"
        raise _error(host, f"its key {path} cannot be used: {error}", hint) from None


def _unknown_key(host: Host, line: Line, error: Exception) -> ConfigError:
    access = host.ssh
    if line.offered is None:
        return _error(host, f"its key is refused: {error}", "see its known_hosts")
    fingerprint = line.offered.get_fingerprint()
    file = access.known_hosts or "~/.ssh/known_hosts"
    port = None if access.port == _DEFAULT_PORT else access.port
    name = access.address if port is None else f"[{access.address}]:{port}"
    known = asyncssh.match_known_hosts(str(_known_hosts(host)), access.address, "", port)[0]
    kind = line.offered.get_algorithm()
    if known:
        return _error(
            host,
            f"{name} shows another key than the one in {file}: {kind} {fingerprint}",
            f"somebody may stand in between; if the host was made anew: ssh-keygen -R '{name}' -f {file}",
        )
    return _error(
        host,
        f"{name} is not in {file}; its key is {kind} {fingerprint}",
        f"when that is what the host itself shows: ssh-keyscan -p {access.port} {access.address} >> {file}",
    )


def _refused(host: Host) -> ConfigError:
    user = host.ssh.user or getpass.getuser()
    key = host.ssh.key or "any key of ours or of the agent"
    hint = f"put the public key into ~{user}/.ssh/authorized_keys there, or name another `user` or `key`"
    return _error(host, f"does not let {user} in with {key}", hint)


def _unreachable(host: Host, patience: Patience, error: Exception) -> ConfigError:
    access = host.ssh
    where = f"{access.address} port {access.port}"
    if isinstance(error, socket.gaierror):
        return _error(host, f"nobody knows the name {access.address}", "give an address")
    if isinstance(error, TimeoutError):
        hint = "see whether it is up, and whether a firewall is in between"
        return _error(host, f"{where} does not answer within {patience.connect_wall_s:g} s", hint)
    if isinstance(error, ConnectionRefusedError):
        return _error(host, f"nobody listens at {where}", "start sshd there, or name its `port`")
    if isinstance(error, OSError) and not isinstance(error, ConnectionResetError):
        return _error(host, f"{where} cannot be reached: {error.strerror or error}", "see whether it is up")
    return _error(host, f"no SSH with {where}: {error}", f"try: ssh -p {access.port} {access.address}")


def _error(host: Host, what: str, hint: str) -> ConfigError:
    return ConfigError(f"host {host.name}", what, hint)
