"""From a topology to the configuration of one switch's core: its uSID, its static table, its ports.

The one place where figures of the topology become bytes and nanoseconds of a switch. What the settings mean is
`switchd.core.settings`'; the daemon's own figures (sockets, clock, folders) are its configuration file's.
"""

from mrcfabric.naming import adjacency_usid
from mrcfabric.settings import settings_from
from mrcfabric.topology import Topology
from mrcfabric.wire_settings import code_points
from switchd.core.settings import SwitchConfig, SwitchSettings


def switch_settings(topology: Topology) -> SwitchSettings:
    """The knobs of every switch of the fabric. Raises ConfigError that names `switch.KEY`."""
    return settings_from(SwitchSettings, topology.switch, "switch")


def switch_config(topology: Topology, name: str) -> SwitchConfig:
    """The configuration of switch `name`. Raises ConfigError for an unknown name or settings that will not do."""
    usid = topology.own_usid(name)
    settings = switch_settings(topology)
    dscp = code_points(topology)
    bdp_bytes = topology.plane_bdp_bytes
    ends = topology.ports(name)
    ports = tuple(
        settings.egress(
            end.towards, bdp_bytes, rate_bps=end.rate_bps, delay_ns=end.delay_ns, dscp=dscp, seed=topology.seed
        )
        for end in ends
    )
    return SwitchConfig(
        name=name,
        usid=usid,
        block=topology.usid_block,
        fib=topology.fib(name),
        ports=ports,
        dscp=dscp,
        hop_limit_per_shift=settings.hop_limit_per_shift,
        towards=tuple(end.towards for end in ends),
        adjacency={adjacency_usid(end.port): end.port for end in ends} if settings.adjacency else {},
    )
