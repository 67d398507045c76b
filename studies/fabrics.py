"""The fabrics that studies are made on, and the ways of using paths that are compared.

Small enough that a trial takes a second, large enough that every flow has the choice it has in a large fabric: all
planes, several T1s in each, no more senders below a T0 than it has up-links.
"""

from collections.abc import Mapping
from typing import Any

from mrcfabric.topology import Setting, Topology

OBLIVIOUS: Mapping[str, Setting] = {"path_policy": "oblivious"}
ONE_PATH: Mapping[str, Setting] = {"path_policy": "single"}


def four_by_100(seed: str, **changes: Any) -> Topology:
    """4 planes of 100 Gb/s, 2 T0s, 4 T1s, 8 NICs: no over-subscription."""
    return _fabric(seed, {"planes": 4, "t0_per_plane": 2, "t1_per_plane": 4, "nics_per_t0": 4}, changes)


def eight_by_100(seed: str, **changes: Any) -> Topology:
    """8 planes of 100 Gb/s, 2 T0s, 4 T1s, 8 NICs."""
    return _fabric(seed, {"planes": 8, "t0_per_plane": 2, "t1_per_plane": 4, "nics_per_t0": 4}, changes)


def _fabric(seed: str, sizes: Mapping[str, Any], changes: Mapping[str, Any]) -> Topology:
    return Topology(name="study", seed=seed, **{**sizes, **changes})
