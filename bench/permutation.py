"""The whole demo fabric under load: eight NICs in permutation across T0s, 48 switches, every byte verified.

Measured with a process per daemon, packed by plane and packed by cores.
"""

from typing import Any

from bench.load import Flow, late_frames, measured
from bench.simulated import permutation
from mrcfabric.topology import Topology


def run() -> dict[str, Any]:
    """Section `fabric`."""
    topology = Topology.demo()
    flows = [Flow(source, target) for source, target in enumerate(permutation(topology))]
    packed = measured(topology, flows, "plane")
    spread = measured(topology, flows, "none")
    cores = measured(topology, flows, "cores")
    return {
        "pps_packed": packed["pps"],
        "gbps_packed": packed["gbps"],
        "dilation_packed": packed["dilation"],
        "pps_process_per_node": spread["pps"],
        "dilation_process_per_node": spread["dilation"],
        "pps_cores": cores["pps"],
        "dilation_cores": cores["dilation"],
        "cpu_us_per_packet_cores": cores["cpu_us_per_packet"],
        "cpu_us_per_packet": packed["cpu_us_per_packet"],
        "cpu_share_nic": packed["cpu_shares"]["nic"],
        "cpu_share_switch": packed["cpu_shares"]["switch"],
        "late_frames": late_frames(packed) + late_frames(spread) + late_frames(cores),
        "packed": packed,
        "process_per_node": spread,
        "cores": cores,
        "detail": {
            "pps_packed": packed["detail"]["pps"],
            "pps_process_per_node": spread["detail"]["pps"],
            "pps_cores": cores["detail"]["pps"],
        },
    }
