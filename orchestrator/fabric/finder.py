"""Parts of a fabric by description, for scripts.

Owns the verbs and the drawing of lots; what a description means is `orchestrator.faults.selectors`'s.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypedDict, Unpack

from mrcfabric.errors import ConfigError
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from orchestrator.faults import selectors
from orchestrator.faults.host_map import ONE_HOST, HostMap
from orchestrator.faults.selectors import Direction, Mode


class Narrowing(TypedDict, total=False):
    """Which of the parts with these names are meant: `orchestrator.faults.selectors.Selector` explains the words."""

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
    """Who knows a topology finds parts in it."""

    topology: Topology
    host_map: HostMap = ONE_HOST
    """Which of its nodes stand on which host."""
    _draws = 0

    def find_nodes(self, *names: Names, **narrowed: Unpack[Narrowing]) -> list[str]:
        """Switches and NICs by names or globs, tier (nic, t0, t1), plane, neighbour (`of`), or drawn (`mode`).

        Names in the order of the topology; the same calls in the same order draw the same. Raises ConfigError when
        nothing is meant.
        """
        return self.targets("control_cut", *names, **narrowed)

    def find_links(self, *names: Names, **narrowed: Unpack[Narrowing]) -> list[str]:
        """Links by names or globs, either end first, tier (nic-t0, t0-t1), plane, end (`of`), direction, or drawn."""
        return self.targets("link_down", *names, **narrowed)

    def find_ports(self, *names: Names, **narrowed: Unpack[Narrowing]) -> list[str]:
        """Ports of NICs, as `h003:5`, by names or globs, plane, NIC or T0 (`of`), or drawn."""
        return self.targets("nic_port_down", *names, **narrowed)

    def targets(self, kind: str, *names: Names, **narrowed: Unpack[Narrowing]) -> list[str]:
        """What a fault of this kind would hit: `orchestrator.faults.kinds` says what each kind is about.

        Names may come in lists, as the other verbs of this class give them. Raises ConfigError.
        """
        selector = selectors.of_words(kind, _flat(names), **narrowed)
        self._draws += selector.mode != "all"
        rng = Rng(self.topology.seed, "script", self._draws)
        return list(selectors.select(self.topology, kind, selector, rng, self.host_map))
