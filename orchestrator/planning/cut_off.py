"""Which peers a deny list leaves a NIC no path to.

Pure. `nicd.core.mrc.deny_list` says what an entry covers; `mrcfabric ev` asks here before it adds one.
"""

from collections.abc import Iterable

from mrcfabric.naming import nic_name
from mrcfabric.topology import Topology
from nicd.core.mrc.deny_list import DenyList, Entry


def cut_off(topology: Topology, nic: int, entries: Iterable[Entry]) -> list[str]:
    """The names of the NICs that a NIC with these entries on its deny list cannot reach, on any plane."""
    listed = list(dict.fromkeys(entries))
    denied = DenyList(len(listed))
    for entry in listed:
        denied.deny(entry)
    return [
        nic_name(peer) for peer in range(topology.nics) if peer != nic and not _reaches(topology, denied, nic, peer)
    ]


def _reaches(topology: Topology, denied: DenyList, nic: int, peer: int) -> bool:
    through_t1 = nic // topology.nics_per_t0 != peer // topology.nics_per_t0
    paths = topology.t1_per_plane if through_t1 else 1  # NICs below one T0 have a path that meets no T1, number 0
    return any(
        not denied.covers(plane, path, peer, through_t1) for plane in range(topology.planes) for path in range(paths)
    )
