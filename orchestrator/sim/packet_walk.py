"""Walks one packet through the fabric, step by step, with the switches' own code.

Builds the packet as a NIC would, and gives it to the core of each switch on its way, with nothing else in the queues.
Notes on which port it leaves. Only the way along cables is code of this module.
"""

from dataclasses import replace
from ipaddress import IPv6Address
from typing import Any

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.errors import ConfigError
from mrcfabric.naming import t1_name
from mrcfabric.node import Input, Rank
from mrcfabric.paths import PathTable
from mrcfabric.topology import Topology
from mrcfabric.units import serialization_ns
from mrcfabric.wire import layout
from mrcfabric.wire.templates import DataTemplate
from mrcfabric.wire_settings import code_points, wire_options
from nicd.compose import nic_config
from orchestrator.planning.abilities import need_mrc
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.core.switch import Switch

HOPS_MAX = 8
"""More switches than any path has: a walk that gets here is in a loop."""
_SETTLE_NS = 1_000_000_000
"""Long enough for a switch with empty queues to send a packet at any rate."""


def walk(topology: Topology, source: str, destination: str, ev: int, hop_limit: int = 64) -> dict[str, Any]:
    """Walk a full data packet from one NIC to another. Raises ConfigError for unknown names and bad values.

    Returns plain data: the two NICs, the parts of the EV, the uSIDs, one entry for each switch passed, and `outcome`:
    `delivered`, or `dropped: ` with the name of the drop.
    """
    hint = "a topology with nic.transport: mrc, or `mrcfabric capture` on a running fabric"
    need_mrc(topology, "packet walk", "an EV names the path of a packet of MRC alone", hint)
    if not 1 <= hop_limit <= 255:
        raise ConfigError("--hop-limit", f"{hop_limit} is no hop limit", "1 to 255")
    nic = nic_config(topology, source)
    ways = PathTable(topology, nic.index).towards(topology.nic_index(destination))
    path = ways.path(ev)
    packet = _packet(topology, nic.address, ways.address, ev, path.outer, hop_limit)
    size = len(packet)
    first = topology.ports(source)[path.port]
    here, port = first.peer, first.peer_port
    now = serialization_ns(len(packet) + OVERHEAD_BYTES, first.rate_bps) + first.delay_ns
    hops: list[dict[str, Any]] = []
    outcome = "goes in circles"
    while len(hops) < HOPS_MAX:
        hop, packet, now = _step(topology, here, port, packet, now)
        hops.append(hop)
        if "drop" in hop:
            outcome = f"dropped: {hop['drop']}"
            break
        out = topology.ports(here)[hop["egress_port"]]
        here, port = out.peer, out.peer_port
        if out.towards == "nic":
            outcome = "delivered" if here == destination else f"delivered to {here}"
            break
    return {
        "from": source,
        "to": destination,
        "ev": ev,
        "plane": path.plane,
        "t1": None if ways.same_t0 else t1_name(path.plane, path.number),
        "usids": [f"{usid:04x}" for usid in ways.usids(ev)],
        "packet_bytes": size,
        "hops": hops,
        "outcome": outcome,
        "elapsed_ns": now,
    }


def _packet(topology: Topology, source: bytes, destination: bytes, ev: int, outer: bytes, hop_limit: int) -> bytearray:
    options = replace(wire_options(topology), hop_limit=hop_limit)
    template = DataTemplate(source, destination, layout.QPN_MIN, dscp=code_points(topology), options=options)
    payload = bytes(topology.mtu_bytes)
    return template.build(layout.WRITE_ONLY, 0, 0, 0, 0, 0, len(payload), ev, outer, payload)


def _step(
    topology: Topology, name: str, port: int, packet: bytearray, now: int
) -> tuple[dict[str, Any], bytearray, int]:
    """Pass one switch: (what it did, the packet as it left, when the packet reaches the next node)."""
    switch = build_switch(switch_config(topology, name), now - 1)
    hop = {"node": name, "usid": f"{switch.config.usid:04x}", "ingress_port": port, **_seen(packet, "in")}
    transmits = switch.advance([Input(now, Rank.FRAME, port, 1, packet)], now + _SETTLE_NS)
    if not transmits:
        return {**hop, "drop": _drop_of(switch)}, packet, now
    sent = transmits[0]
    left = bytearray(sent.packet)
    queue = "control" if switch.egress[sent.port].control_bytes_peak else "data"
    hop |= {"egress_port": sent.port, "towards": topology.ports(name)[sent.port].peer, "queue": queue}
    if switch.egress[sent.port].trim_admitted:
        hop["trimmed_to_bytes"] = len(left)
    return {**hop, **_seen(left, "out")}, left, sent.arrival_ns


def _seen(packet: bytearray, side: str) -> dict[str, Any]:
    return {
        f"da_{side}": str(IPv6Address(bytes(packet[layout.OUTER_DESTINATION]))),
        f"hop_limit_{side}": packet[layout.HOP_LIMIT_OFFSET],
    }


def _drop_of(switch: Switch) -> str:
    """The name of the only drop that this new switch has counted."""
    drops: dict[str, int] = switch.counters()["drops"]
    return next(reason for reason, count in drops.items() if count)


def render(walked: dict[str, Any]) -> str:
    """Format a walk as text."""
    via = f" via {walked['t1']}" if walked["t1"] else ""
    way = f"plane {walked['plane']}{via}, uSIDs {' '.join(walked['usids'])}"
    lines = [f"{walked['from']} -> {walked['to']}  EV 0x{walked['ev']:08x}: {way}"]
    for hop in walked["hops"]:
        lines += _hop_lines(hop)
    lines.append(f"{walked['outcome']} after {walked['elapsed_ns']:,} ns")
    return "\n".join(lines)


def _hop_lines(hop: dict[str, Any]) -> list[str]:
    head = f"{hop['node']:<12} uSID {hop['usid']}  in port {hop['ingress_port']}, hop limit {hop['hop_limit_in']}"
    lines = [head, f"    DA  {hop['da_in']}"]
    if "drop" in hop:
        return [*lines, "    dropped"]
    if "trimmed_to_bytes" in hop:
        lines.append(f"    trimmed to {hop['trimmed_to_bytes']} bytes")
    out = f"out port {hop['egress_port']} ({hop['queue']} queue) to {hop['towards']}"
    return [*lines, f"    ->  {hop['da_out']}", f"    {out}, hop limit {hop['hop_limit_out']}"]
