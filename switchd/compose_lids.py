"""From a topology to what only an InfiniBand switch has: its table by LID, and ports with VLs.

`switchd.compose` makes everything else. The tables are those that a subnet manager would write for a fat tree without
faults: what is below a switch by its port, all else by the up-link that the LID names, so that all packets for one LID
meet on one way down.
"""

from collections.abc import Sequence

from mrcfabric.credit_egress_config import CreditEgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.lids import base_lid, check_lids
from mrcfabric.topology import PortLink, Topology
from mrcfabric.vl_settings import credited_port, sl2vl
from switchd.core.forwarding.lft import NO_PORT, LftConfig
from switchd.core.settings import SwitchSettings
from switchd.core.settings_credits import CreditConfig, ShieldConfig


def lid_mask_count(topology: Topology) -> int:
    """The fabric's LMC. Raises ConfigError for what is none, or for more NICs than there are LIDs."""
    lmc = topology.nic.get("lid_lmc", 0)
    if type(lmc) is not int:
        raise ConfigError("nic.lid_lmc", f"{lmc!r} is not a whole number")
    check_lids(topology.nics, lmc)
    return lmc


def lft_config(topology: Topology, name: str, settings: SwitchSettings) -> LftConfig:
    """The table of switch `name`, and how it may depart from it."""
    tier, _, index = topology.parse_node(name)
    lmc = lid_mask_count(topology)
    down = [end.port for end in topology.ports(name) if end.towards == ("nic" if tier == "t0" else "t0")]
    up = [end.port for end in topology.ports(name) if end.port not in down]
    first = index * topology.nics_per_t0 if tier == "t0" else 0
    per_port = 1 if tier == "t0" else topology.nics_per_t0
    table = bytearray((NO_PORT,)) * base_lid(topology.nics, lmc)
    for nic in range(topology.nics):
        below = (nic - first) // per_port
        for bits in range(1 << lmc):
            if 0 <= below < len(down):
                port = down[below]
            elif up:
                port = up[(nic + bits) % len(up)]
            else:
                port = NO_PORT
            table[base_lid(nic, lmc) + bits] = port
    if settings.routing == "sm":
        table = bytearray()
    return LftConfig(
        bytes(table), tuple(up), settings.adaptive, settings.flowlet_ns, settings.shield_ns if settings.shield else -1
    )


def credit_config(settings: SwitchSettings, ends: Sequence[PortLink]) -> CreditConfig:
    """The service levels of a switch, and what it tells those of its neighbours that are switches."""
    levels = sl2vl(settings)
    assert levels is not None, "SwitchSettings has checked it"
    shield = ShieldConfig(
        tuple(end.port for end in ends if end.towards != "nic"), settings.shield_ns if settings.flfn else -1,
        settings.arn_bytes if settings.arn else -1, settings.arn_ns,
    )  # fmt: skip
    return CreditConfig(levels, shield)


def credit_port(topology: Topology, settings: SwitchSettings, end: PortLink) -> CreditEgressConfig:
    """One port of a switch."""
    return credited_port(
        settings, rate_bps=end.rate_bps, delay_ns=end.delay_ns, seed=topology.seed, mtu_bytes=topology.mtu_bytes,
        head_life=settings.head_life_nic if end.towards == "nic" else settings.head_life,
    )  # fmt: skip
