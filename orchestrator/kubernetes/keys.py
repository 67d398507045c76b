"""The keys of share services as files of a secret: which there are, and where each is in a pod.

Owns the names. An inventory names a key by a path from its own folder, and pods read the same inventory. So a key has
the same path in a pod, and must be beside or below the inventory here.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from orchestrator.hosts.placement.inventory import Host

ITEM_CHARACTERS_MAX: Final = 253
_ITEM: Final = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Key:
    """One key."""

    file: Path
    """The file on this machine."""
    item: str
    """Its name in the secret."""
    path: str
    """The path from the folder of the inventory, here and in a pod."""

    @classmethod
    def of(cls, inventory: str, host: Host) -> Self:
        """The key of a host's service. Raises ConfigError when it cannot be at the same place in a pod."""
        file = Path(host.service.key)
        path = os.path.relpath(file, Path(inventory).parent)
        where = f"host {host.name}: key {host.service.key}"
        if host.service.key.startswith("~") or path.startswith(".."):
            raise ConfigError(where, "lies elsewhere than the inventory", "pods have both in one folder: put it there")
        item = path.replace("/", ".")
        if not _ITEM.fullmatch(item) or len(item) > ITEM_CHARACTERS_MAX or item == ".":
            raise ConfigError(where, f"{shown(path)} is no name in a secret", "letters, digits, dots, - and _")
        return cls(file, item, path)


class Keys:
    """The keys of some hosts."""

    def __init__(self, inventory: str, hosts: Iterable[Host]) -> None:
        """Raises ConfigError for a key that cannot be a file of the secret, and for two that would be the same one."""
        self._of_host = {host.name: Key.of(inventory, host) for host in hosts}
        self.by_item: dict[str, Key] = {}
        for key in self._of_host.values():
            if self.by_item.setdefault(key.item, key).path != key.path:
                other = self.by_item[key.item].path
                raise ConfigError(f"keys {other} and {key.path}", f"would both be {key.item}", "name one of them anew")

    def of(self, host: Host) -> Key:
        """The key of a host."""
        return self._of_host[host.name]
