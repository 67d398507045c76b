"""The list of targets: what each is fed with, and where it starts from.

A target is a function of bytes that returns for every input; anything it raises is a finding.
"""

from collections.abc import Callable
from typing import NamedTuple

from fuzz import (
    commands,
    infiniband,
    messages,
    nic_core,
    pausing_switch,
    rc_core,
    roce,
    routing,
    scenarios,
    switch_core,
    uet,
    wire,
)


class Target(NamedTuple):
    """One thing to fuzz."""

    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]
    """Inputs to start from, made by the product itself."""
    size_max: int
    """Longer inputs are not tried."""


TARGETS: dict[str, Target] = {
    "packet": Target(wire.packet, wire.packet_seeds, 1_024),
    "peek": Target(wire.peek, wire.packet_seeds, 1_024),
    "header": Target(wire.header, wire.header_seeds, 128),
    "endpoint": Target(wire.endpoint, wire.endpoint_seeds, 64),
    "srh": Target(wire.srh, wire.srh_seeds, 128),
    "pcapng": Target(wire.captures, wire.capture_seeds, 4_096),
    "roce": Target(roce.roce, roce.roce_seeds, 1_024),
    "uet": Target(uet.uet, uet.uet_seeds, 1_024),
    "lrh": Target(infiniband.lrh, infiniband.lrh_seeds, 1_024),
    "bgp": Target(routing.messages, routing.message_seeds, 1_024),
    "local": Target(routing.packets, routing.packet_seeds, 512),
    "pfc": Target(roce.link_control, roce.link_control_seeds, 128),
    "link": Target(messages.link, messages.link_seeds, 2_048),
    "control": Target(messages.control, messages.control_seeds, 1_024),
    "verbs": Target(messages.verbs, messages.verbs_seeds, 512),
    "session": Target(messages.session, messages.session_seeds, 1_024),
    "topology": Target(messages.topology, messages.topology_seeds, 512),
    "scenario": Target(scenarios.scenario, scenarios.scenario_seeds, 1_024),
    "nic": Target(nic_core.attack, nic_core.seeds, 512),
    "nic-spilling": Target(nic_core.attack_spilling, nic_core.seeds, 512),
    "rc": Target(rc_core.attack, rc_core.seeds, 512),
    "rc-selective": Target(rc_core.attack_selective, rc_core.seeds, 512),
    "uet-core": Target(rc_core.attack_uet, rc_core.seeds, 512),
    "uet-credits": Target(rc_core.attack_uet_credits, rc_core.seeds, 512),
    "nic-commands": Target(commands.nic, commands.seeds, 512),
    "switch-commands": Target(commands.switch, commands.seeds, 512),
    "switch": Target(switch_core.attack, switch_core.seeds, 1_024),
    "routed": Target(pausing_switch.routed, pausing_switch.seeds, 1_024),
    "lossless": Target(pausing_switch.lossless, pausing_switch.seeds, 1_024),
    "credited": Target(infiniband.credited, infiniband.core_seeds, 1_024),
    "router": Target(routing.router, routing.router_seeds, 256),
    "lossless-usid": Target(pausing_switch.lossless_usid, pausing_switch.seeds, 1_024),
}
