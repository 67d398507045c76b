"""Brings to a host what it must have to run our code: the code itself, and the packages that it needs.

Owns what is carried and where it goes. Code and packages are two folders on the program's module path, each named after
its content, so that a later launch finds them again and copies nothing twice. The code is always ours, the files that
run here. The packages are the host's own if its Python has all of them. If not, pip installs them there: from the
wheelhouse that we carry, if there is one, or else from the index that the host's pip knows. A host without pip gets
ours.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines.host_facts import HostFacts
from orchestrator.hosts.engines.remote import last_words
from orchestrator.hosts.engines.wheel import Wheel, wheel_of
from orchestrator.hosts.placement.inventory import Host

DISTRIBUTION: Final = "mrcfabric"
PIP: Final = "pip"
PIP_WALL_S: Final = 900.0
"""How long an installation may take on a host."""
_NAME_CHARS: Final = 12


class Reached(Protocol):
    """A host on which an engine can work (`orchestrator.hosts.engines.remote` says what the methods do)."""

    host: Host

    async def run(self, words: Sequence[str], *, within_s: float) -> tuple[int, str]: ...

    async def there(self, order: Mapping[str, Any]) -> dict[str, Any]: ...

    async def put(self, files: Mapping[str, bytes]) -> None: ...


@dataclass(frozen=True, slots=True)
class Wheelhouse:
    """A folder of wheels to carry."""

    wheels: dict[str, Path]
    digests: dict[str, str]
    """SHA-256 in hexadecimal."""

    @classmethod
    def read(cls, folder: Path) -> "Wheelhouse":
        """Read the wheels of a folder. Raises ConfigError when there is none."""
        wheels = {path.name: path for path in sorted(folder.glob("*.whl"))}
        if not wheels:
            hint = f"at the top of the source tree: pip wheel --wheel-dir {folder} ."
            raise ConfigError(f"--wheelhouse {folder}", "there is no wheel in it", hint)
        return cls(wheels, {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in wheels.items()})


@cache
def our_wheel() -> Wheel:
    """The wheel of what runs here, made once per process: an agent does not change its code while it lives."""
    return wheel_of(DISTRIBUTION)


@cache
def _our_pip() -> Wheel:
    return wheel_of(PIP)


def order(requirements: Sequence[str], digest: str, wheelhouse: Wheelhouse | None) -> dict[str, Any]:
    """The part of an order to `remote_script.look` that asks what the host lacks."""
    return {
        "code": digest,
        "requirements": list(requirements),
        "packages": hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:_NAME_CHARS],
        "wheels": list(wheelhouse.wheels) if wheelhouse else [],
    }


async def deliver(remote: Reached, findings: HostFacts, wheel: Wheel, wheelhouse: Wheelhouse | None) -> list[str]:
    """Bring what the host lacks. Returns the folders of modules, ours first.

    Raises ConfigError when packages are missing and cannot be had, ProcessFailedError when the connection breaks.
    """
    code, there = findings.code
    if not there:
        draft = _draft(code)
        await remote.put({draft: wheel.content})
        await _settle(remote, draft, code)
    if not findings.missing:
        return [code]
    packages, there = findings.packages
    if not there:
        draft = _draft(packages)
        await _install(remote, findings, wheel.requirements, wheelhouse, draft)
        await _settle(remote, draft, packages)
    return [code, packages]


async def _settle(remote: Reached, draft: str, target: str) -> None:
    answer = await remote.there({"do": "settle", "draft": draft, "target": target})
    if answer["failed"]:
        what = f"{target} cannot be written: {answer['failed']}"
        raise ConfigError(f"host {remote.host.name}", what, "make room, or name another `run_dir`")


def _draft(target: str) -> str:
    """A path beside the target that no other launch uses."""
    folder, _, name = target.rpartition("/")
    return f"{folder}/.{name}-{secrets.token_hex(4)}"


async def _install(
    remote: Reached, findings: HostFacts, requirements: Sequence[str], wheelhouse: Wheelhouse | None, target: str
) -> None:
    pip = await _pip(remote, findings)
    source: list[str] = []
    if wheelhouse is not None:
        folder = f"{findings.run_dir}/wheelhouse"
        carried = [name for name, digest in wheelhouse.digests.items() if findings.wheels.get(name) != digest]
        for name in carried:  # one by one: they may be large
            await remote.put({f"{folder}/{name}": await asyncio.to_thread(wheelhouse.wheels[name].read_bytes)})
        source = ["--no-index", "--find-links", folder]
    options = ["--target", target, "--quiet", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:"]
    code, output = await remote.run([*pip, "install", *options, *source, *requirements], within_s=PIP_WALL_S)
    if code:
        errors = [line for line in output.splitlines() if line.startswith("ERROR")]
        lacks = ", ".join(findings.missing)
        raise ConfigError(
            f"host {remote.host.name}",
            f"its Python lacks {lacks}, and pip fails: {last_words(chr(10).join(errors) or output)}",
            "add the wheels that are missing to the wheelhouse"
            if wheelhouse
            else "carry the packages with --wheelhouse, or install them there",
        )


async def _pip(remote: Reached, findings: HostFacts) -> list[str]:
    """The command that runs pip there. Carries our pip if the host has none."""
    if findings.has_pip:
        return [remote.host.python, "-m", "pip"]
    try:
        lent = await asyncio.to_thread(_our_pip)
    except ConfigError:
        raise ConfigError(
            f"host {remote.host.name}",
            f"its Python lacks {', '.join(findings.missing)}, and neither it nor ours has pip",
            "install pip here or there",
        ) from None
    path = f"{findings.run_dir}/wheelhouse/{lent.name}"
    await remote.put({path: lent.content})
    return [remote.host.python, f"{path}/pip"]
