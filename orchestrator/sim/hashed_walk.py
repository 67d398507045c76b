"""Walks one packet of a flow through a fabric whose switches hash flows (ECMP), with the switches' own code.

Owns the choice of the flow, and what is told of each hash: the members of the group and the one that was picked.
`packet_walk` passes the packet from switch to switch. All up-links live here: a group that has lost members chooses
otherwise, where `switch.ecmp_failover` lets it.
"""

from dataclasses import replace
from typing import Any

from mrcfabric.errors import ConfigError
from mrcfabric.paths import PathTable
from mrcfabric.topology import Topology
from mrcfabric.wire import layout
from mrcfabric.wire.options import UDP_PORT_ROCE
from mrcfabric.wire.roce_layout import SPORT_MIN
from mrcfabric.wire.uet_layout import UDP_PORT_UET
from mrcfabric.wire_settings import wire_options
from nicd.compose import nic_config
from orchestrator.planning.abilities import has_usids, sprays_entropies
from orchestrator.sim.packet_walk import Passed, along, check_ends, check_hop_limit, data_packet, way_out

SPORT_USUAL = SPORT_MIN
_SPORT_MAX = (1 << 16) - 1


def walk_by_hash(
    topology: Topology, source: str, destination: str, sport: int = SPORT_USUAL, port: int = 0, hop_limit: int = 64
) -> dict[str, Any]:
    """Walk a full data packet of the flow with this UDP source port, by a port of the sending NIC.

    Returns plain data: the two NICs, the flow, one entry for each switch passed, with `ecmp` {members, hash} where a
    hash chose among `members`, and `outcome` as `packet_walk.walk`. Raises ConfigError for unknown names and bad
    values.
    """
    if has_usids(topology):
        raise ConfigError("--sport", "the packets of this fabric carry their path", "--ev names it")
    if wire_options(topology).lid_lmc >= 0:
        hint = "`mrcfabric trace` shows the way of a packet that is sent"
        raise ConfigError("packet walk", "switches of this fabric forward by LIDs, of which it knows nothing", hint)
    if not 0 <= sport <= _SPORT_MAX:
        raise ConfigError("--sport", f"{sport} is no UDP port", f"0 to {_SPORT_MAX}; NICs draw from {SPORT_MIN} on")
    check_hop_limit(hop_limit)
    nic = nic_config(topology, source)
    check_ends(source, destination)
    if not 0 <= port < len(nic.ports):
        raise ConfigError("--port", f"{source} has no port {port}", f"0 to {len(nic.ports) - 1}")
    address = PathTable(topology, nic.index).towards(topology.nic_index(destination)).address
    packet = data_packet(nic, address, sport, None, replace(wire_options(topology), hop_limit=hop_limit))
    walked = along(topology, source, port, destination, packet, _hop)
    dport = UDP_PORT_UET if sprays_entropies(topology) else UDP_PORT_ROCE
    return {"from": source, "to": destination, "sport": sport, "dport": dport, "port": port, **walked}


def _hop(topology: Topology, passed: Passed) -> dict[str, Any]:
    hop: dict[str, Any] = {"hop_limit_in": passed.came[layout.HOP_LIMIT_OFFSET]}
    if passed.sent is None:
        return {**hop, "drop": passed.drop}
    hop |= way_out(topology, passed)
    hop["class"] = passed.said.get("class")
    hop["ecmp"] = passed.said.get("ecmp")
    return {**hop, "hop_limit_out": passed.left[layout.HOP_LIMIT_OFFSET]}


def render(walked: dict[str, Any]) -> str:
    """Format a walk as text."""
    flow = f"source port {walked['sport']}, by port {walked['port']}"
    lines = [f"{walked['from']} -> {walked['to']}  {flow}"]
    lines += [_line(hop) for hop in walked["hops"]]
    lines.append(f"{walked['outcome']} after {walked['elapsed_ns']:,} ns")
    return "\n".join(lines)


def _line(hop: dict[str, Any]) -> str:
    head = f"{hop['node']:<12} in port {hop['ingress_port']:>3}"
    if "drop" in hop:
        return f"{head}  dropped"
    out = f"out port {hop['egress_port']:>3} to {hop['towards']:<12}"
    queue = f"class {hop['class']}" if hop["class"] is not None else f"{hop['queue']} queue"
    chosen = hop["ecmp"]
    if chosen is None:
        return f"{head}  {out} {queue}, the only way"
    members = ", ".join(map(str, chosen["members"]))
    return f"{head}  {out} {queue}, by hash 0x{chosen['hash']:x} of ports {members}"
