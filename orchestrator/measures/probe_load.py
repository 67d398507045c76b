"""What the probes take by which NICs test links: a part of every link's rate, in both directions.

Owns the rate, as the mean over many rounds. `mrcfabric.turns` says which ways a NIC tests in a round. The loops by
which the mapper finds the direction of a fault are few and do not count.
"""

from fractions import Fraction

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, Topology
from mrcfabric.units import NS_PER_S
from nicd.compose import nic_settings


def probe_rates(topology: Topology, period_ns: int) -> tuple[Fraction, Fraction]:
    """What probes take of a NIC-T0 link and of a T0-T1 link, in bit/s of the wire; `period_ns` 0: NICs do not probe."""
    if not period_ns:
        return Fraction(0), Fraction(0)
    settings = nic_settings(topology)
    payload = settings.self_probe_bytes or settings.mtu_bytes
    once = Fraction(8 * (payload + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES) * NS_PER_S, period_ns)
    testers = min(settings.self_probe_testers, topology.nics_per_t0)
    # One that turns round at the T0, and this NIC's part of those through the T1s.
    of_nic = 1 + Fraction(topology.t1_per_plane * testers, topology.nics_per_t0)
    return of_nic * once, testers * once
