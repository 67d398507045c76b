"""What nodes add to the delay of their links: pipelines of NICs, and of switches by tier.

Owns the names, the bounds and how they add up. A packet spends this time beside its serialization and the cable, in
both directions, whatever the load: a pipeline delays and never queues. The latency is part of a link's delay. So base
RTT, windows, thresholds and timers include it, and nothing arrives sooner than `link_delay_ns`.

The latency between an application and its NIC is not part of a round trip: `nicd.core.settings_host`.

By default nodes add nothing, and a link delay has all that a packet spends beside serialization. Published figures are
one word (`latency: published` of a topology). They are no default: they exist for one switch and one NIC, not for those
of the paper, and a link of 1 us is what all tables of this project were made with.
"""

from collections.abc import Mapping
from typing import Final

from mrcfabric.errors import ConfigError, misfit
from mrcfabric.naming import Tier, shown

LATENCY_NS_MAX: Final = 1_000_000
SENDING: Final = {"nic": "nic_send_ns"}
"""By kind of node, what it adds to a link that it sends into."""
RECEIVING: Final = {"nic": "nic_receive_ns", "t0": "t0_ns", "t1": "t1_ns"}
"""By kind of node, what it adds to a link that it receives from: a switch's port-to-port latency counts once."""
PUBLISHED: Final[Mapping[str, int]] = {"t0_ns": 250, "t1_ns": 250, "nic_send_ns": 315, "nic_receive_ns": 315}
"""A switch: port to port, as Broadcom gives it for Tomahawk Ultra. A NIC: with the two of `HOST_PUBLISHED` 1.83 us,
half the round trip of 2 bytes from GPU to GPU with ConnectX-5 (linux-rdma/perftest, pull request 98); how that is
divided is not published."""
HOST_PUBLISHED: Final[Mapping[str, int]] = {"host_post_ns": 600, "host_complete_ns": 600}
"""Settings of `nic` that go with them: doorbell, fetch of the work request and read of the payload; and from the last
byte, or its acknowledgement, to the application."""
CABLE_NS: Final = 100
"""The link delay that goes with them: the cable alone, 20 m of fibre."""
WORD: Final = "published"
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
            raise misfit(f"topology.latency.{name}", value, f"0 to {LATENCY_NS_MAX} ns")
