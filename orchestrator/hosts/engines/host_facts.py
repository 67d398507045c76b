"""What an engine has found on a host, and the one line it reports when that is not enough for a fabric.

Pure. `orchestrator.hosts.engines.remote_script` looks on the host.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines.engine import Listening

OLDEST_PYTHON: Final = (3, 11)


class HostFacts:
    """The answer to `remote_script.look` on one host; `host` and `python` are names for messages."""

    def __init__(self, host: str, python: str, found: Mapping[str, Any]) -> None:
        self._host = host
        self._python = python
        self._found = found

    def check(self, ports: Sequence[Listening]) -> None:
        """Raises ConfigError for the first thing that keeps a program from running there; `ports` as in the order."""
        found = self._found
        self.check_python()
        if found["unwritable"]:
            raise self._error(
                f"{found['user']} cannot write into {self.run_dir}: {found['unwritable']}",
                "make room or give it to that user, or name another `run_dir`",
            )
        for port, trouble in zip(ports, found["ports"], strict=True):
            if trouble:
                raise self._port_error(port, trouble)

    def check_python(self) -> None:
        """Check the version of Python alone, which may be all that is known. Raises ConfigError when it is too old."""
        if tuple(self._found["python"]) < OLDEST_PYTHON:
            version = ".".join(map(str, self._found["python"]))
            wanted = ".".join(map(str, OLDEST_PYTHON))
            raise self._error(
                f"`{self._python}` is Python {version}, and it takes {wanted} or newer",
                "install one there and name it as the host's `python`",
            )

    def check_version(self, version: str) -> None:
        """Check that the mrcfabric installed there has this version. Raises ConfigError."""
        installed = self._found["installed"]
        if installed != version:
            has = "no mrcfabric" if installed is None else f"mrcfabric {installed}"
            raise self._error(
                f"its `{self._python}` has {has}, and this is {version}",
                "install this version there, or let the code be carried",
            )

    @property
    def run_dir(self) -> str:
        """Absolute path there."""
        return str(self._found["run_dir"])

    def has_the_files(self, stamp: str) -> bool:
        """Whether its Python imports the same files that run here, by their stamp."""
        return bool(self._found["stamp"] == stamp)

    @property
    def missing(self) -> list[str]:
        """The requirements that its Python does not meet."""
        return list(self._found["missing"])

    @property
    def has_pip(self) -> bool:
        return bool(self._found["pip"])

    @property
    def code(self) -> tuple[str, bool]:
        """The folder there for our code, and whether the code is in it already."""
        return _set(self._found["code"])

    @property
    def packages(self) -> tuple[str, bool]:
        """The folder there for packages that its Python lacks, and whether they are in it already."""
        return _set(self._found["packages"])

    @property
    def wheels(self) -> Mapping[str, str]:
        """Wheels of the carried wheelhouse that are there already: name -> SHA-256 in hexadecimal."""
        return dict(self._found["wheels"])

    def _port_error(self, port: Listening, trouble: str) -> ConfigError:
        of = f"{port.kind.upper()} port {port.port} of {port.address}"
        if trouble == "EADDRNOTAVAIL":
            return self._error(f"has no address {port.address}", "name one that `ip addr` shows there")
        if trouble == "EADDRINUSE":
            return self._error(f"{of} is taken", "end who listens there (`ss -lnp` shows it) or choose another port")
        if trouble == "EACCES":
            return self._error(f"{of} is not for {self._found['user']}", "choose one above 1023")
        return self._error(f"{of} cannot be had: {trouble}", "")

    def _error(self, what: str, hint: str) -> ConfigError:
        return ConfigError(f"host {self._host}", what, hint)


def _set(found: Sequence[Any]) -> tuple[str, bool]:
    path, there = found
    return str(path), bool(there)
