"""Small topologies for tests that launch real daemons."""

from mrcfabric.topology import Topology

SMALL = Topology(
    name="small",
    planes=2,
    t0_per_plane=2,
    t1_per_plane=2,
    nics_per_t0=2,
    evs_per_qp=32,
    reserve_evs_per_qp=8,
)
"""2 planes of 2 T0s and 2 T1s, 4 NICs: 12 daemons."""
