"""What nodes add to the delay of their links: pipelines of NICs, and of switches by tier.

Owns the names, the bounds and how they add up. A packet spends this time beside its serialization and the cable, in
both directions, whatever the load: a pipeline delays and never queues. The latency is part of a link's delay. So base
RTT, windows, thresholds and timers include it, and nothing arrives sooner than `link_delay_ns`.

The latency between an application and its NIC is not part of a round trip: `nicd.core.settings_host`.
"""

from collections.abc import Mapping
from typing import Final

from mrcfabric.errors import ConfigError
from mrcfabric.naming import Tier, shown

LATENCY_NS_MAX: Final = 1_000_000
SENDING: Final = {"nic": "nic_send_ns"}
"""By kind of node, what it adds to a link that it sends into."""
RECEIVING: Final = {"nic": "nic_receive_ns", "t0": "t0_ns", "t1": "t1_ns"}
"""By kind of node, what it adds to a link that it receives from: a switch's port-to-port latency counts once."""
NAMES: Final = (*SENDING.values(), *RECEIVING.values())


def delay_ns(latency: Mapping[str, int], sender: Tier, receiver: Tier) -> int:
    """What both ends add to a link from one kind of node to another. A latency that is not given adds nothing."""
    return latency.get(SENDING.get(sender, ""), 0) + latency.get(RECEIVING[receiver], 0)


def check_latency(latency: Mapping[str, object]) -> None:
    """Raises ConfigError, which names the key, for an unknown name or a wrong value."""
    for name, value in latency.items():
        if name not in NAMES:
            raise ConfigError(f"topology.latency.{shown(name)}", "no such latency", "one of " + ", ".join(NAMES))
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LATENCY_NS_MAX:
            raise ConfigError(f"topology.latency.{name}", f"{value!r} will not do", f"0 to {LATENCY_NS_MAX} ns")
