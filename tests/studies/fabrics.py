"""A fabric so small that a trial on it takes a few hundredths of a second."""

from typing import Any

from mrcfabric.topology import Topology


def tiny(seed: str = "tiny", **changes: Any) -> Topology:
    """2 planes, 2 T0s and T1s, 4 NICs."""
    sizes = {"planes": 2, "t0_per_plane": 2, "t1_per_plane": 2, "nics_per_t0": 2, "evs_per_qp": 16}
    return Topology(name="tiny", seed=seed, reserve_evs_per_qp=8, **{**sizes, **changes})
