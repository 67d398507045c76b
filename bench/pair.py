"""One NIC to another over eight planes and three switch hops: packets, every byte verified, real processes all the way.

Two NICs below different T0s, one T0 each side and one T1 between them in each plane: the shortest fabric that has every
part. Measured packed by plane (the figure that is set against the bare chain), packed by cores and with a process per
daemon; packed by plane also with RoCE, whose one QP keeps to one port and leaves seven planes idle.
"""

from typing import Any

from bench.load import Flow, late_frames, measured
from bench.measure import rounded
from mrcfabric.topology import Topology
from mrcfabric.topology_file import with_system

FLOWS = (Flow(0, 1),)


def topology() -> Topology:
    """Eight planes with two T0s and one T1, a NIC below each T0 number."""
    return Topology(name="bench-pair", t0_per_plane=2, t1_per_plane=1, nics_per_t0=1, dilation="auto")


def run() -> dict[str, Any]:
    """Section `e2e`."""
    packed = measured(topology(), FLOWS, "plane")
    roce = measured(with_system(topology(), "roce"), FLOWS, "plane")
    spread = measured(topology(), FLOWS, "none")
    cores = measured(topology(), FLOWS, "cores")
    return {
        "pps": packed["pps"],
        "gbps": packed["gbps"],
        "dilation": packed["dilation"],
        "pps_process_per_node": spread["pps"],
        "dilation_process_per_node": spread["dilation"],
        "pps_cores": cores["pps"],
        "cpu_us_per_packet_cores": cores["cpu_us_per_packet"],
        "cpu_us_per_packet": packed["cpu_us_per_packet"],
        "cpu_share_nic": packed["cpu_shares"]["nic"],
        "cpu_share_switch": packed["cpu_shares"]["switch"],
        "late_frames": late_frames(packed) + late_frames(spread) + late_frames(roce) + late_frames(cores),
        "roce_pps": roce["pps"],
        "roce_share": rounded(roce["pps"] / packed["pps"]),
        "roce_cpu_us_per_packet": roce["cpu_us_per_packet"],
        "packed": packed,
        "roce": roce,
        "process_per_node": spread,
        "cores": cores,
        "detail": {
            "pps": packed["detail"]["pps"],
            "pps_process_per_node": spread["detail"]["pps"],
            "pps_cores": cores["detail"]["pps"],
            "roce_pps": roce["detail"]["pps"],
        },
    }
