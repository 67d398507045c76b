"""Finds parts of a fabric by description, for scripts.

Owns the `find_` methods and the random draws. `orchestrator.faults.selectors` says what a description means.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypedDict, Unpack

from mrcfabric.errors import ConfigError
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from orchestrator.fabric.arguments import text
from orchestrator.faults import selectors
from orchestrator.faults.host_map import ONE_HOST, HostMap
from orchestrator.faults.selectors import Direction, Mode


class Narrowing(TypedDict, total=False):
    """Keywords that narrow a search: `orchestrator.faults.selectors.Selector` explains each."""

    tier: str
    plane: int | Sequence[int]
    of: str | Sequence[str]
    labels: str | Sequence[str]
    mode: Mode
    value: int
    direction: Direction


Names: TypeAlias = str | Iterable[str]
"""A name or glob, or several."""


def _flat(names: Iterable[Names]) -> list[str]:
    found: list[str] = []
    for name in names:
        several = [name] if isinstance(name, str) or not isinstance(name, Iterable) else name
        for one in several:
            if not isinstance(one, str):
                raise ConfigError("names", f"{one!r} is no name", "names and globs, or lists of them")
            found.append(one)
    return found


class Finder:
    """Base of whatever knows a topology: finds parts in it."""

    topology: Topology
    host_map: HostMap = ONE_HOST
    """Which nodes run on which host."""
    _draws = 0

    def find_nodes(self, *names: Names, **narrowed: Unpack[Narrowing]) -> list[str]:
        """Find switches and NICs by names or globs, tier (nic, t0, t1), plane, neighbour (`of`), or by chance (`mode`).

        Returns names in the order of the topology. The same calls in the same order draw the same nodes. Raises
        ConfigError when nothing matches.
        """
        return self.targets("control_cut", *names, **narrowed)

    def find_links(self, *names: Names, **narrowed: Unpack[Narrowing]) -> list[str]:
        """Find links by names or globs, either end first.

        Or by tier (nic-t0, t0-t1), plane, end (`of`), direction, or by chance (`mode`).
        """
        return self.targets("link_down", *names, **narrowed)

    def find_ports(self, *names: Names, **narrowed: Unpack[Narrowing]) -> list[str]:
        """Find ports of NICs, as `h003:5`, by names or globs, plane, NIC or T0 (`of`), or by chance (`mode`)."""
        return self.targets("nic_port_down", *names, **narrowed)

    def targets(self, kind: str, *names: Names, **narrowed: Unpack[Narrowing]) -> list[str]:
        """Find what a fault of this kind would hit; `orchestrator.faults.kinds` says what each kind acts on.

        Names may come in lists, such as the other methods of this class return. Raises ConfigError.
        """
        selector = selectors.of_words(text("kind", kind), _flat(names), **narrowed)
        self._draws += selector.mode != "all"
        rng = Rng(self.topology.seed, "script", self._draws)
        return list(selectors.select(self.topology, kind, selector, rng, self.host_map))
