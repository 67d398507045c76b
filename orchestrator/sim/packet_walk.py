"""Walks one packet through the fabric, step by step, with the switches' own code.

Builds the packet as a NIC would, and gives it to the core of each switch on its way, with nothing else in the queues.
Notes on which port it leaves. Only the way along cables is code of this module. Here are the ways that an EV names;
`hashed_walk` has those that switches choose by a hash.
"""

from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv6Address
from typing import Any, NamedTuple, TypeAlias

from mrcfabric.choice import Choice
from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown, t1_name
from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.paths import PathTable
from mrcfabric.topology import Topology
from mrcfabric.units import serialization_ns
from mrcfabric.wire import layout
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.options import WireOptions
from mrcfabric.wire.roce import RcDataTemplate
from mrcfabric.wire.roce_layout import RC_WRITE_ONLY, SPORT_MIN
from mrcfabric.wire.templates import DataTemplate
from mrcfabric.wire.uet import Write
from mrcfabric.wire.uet_layout import FLAG_SYN, RUD_CC_REQUEST, RUD_REQUEST, SES_EOM, SES_SOM
from mrcfabric.wire.uet_templates import UetTemplate
from mrcfabric.wire_settings import code_points, wire_options
from mrcfabric.witness import Witness
from nicd.compose import nic_config
from nicd.core.settings import NicConfig
from orchestrator.planning.abilities import has_evs, has_usids
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
    if not has_usids(topology):
        hint = "--sport names a flow, and `packet walk` its way"
        raise ConfigError("--ev", "switches of this fabric hash flows, so that no EV names a path", hint)
    check_hop_limit(hop_limit)
    nic = nic_config(topology, source)
    check_ends(source, destination)
    ways = PathTable(topology, nic.index).towards(topology.nic_index(destination))
    path = ways.path(ev)
    options = replace(wire_options(topology), hop_limit=hop_limit)
    if has_evs(topology):
        packet = _packet(topology, nic.address, ways.address, ev, path.outer, options)
    else:
        packet = data_packet(nic, ways.address, SPORT_MIN, path.outer, options)
    walked = along(topology, source, path.port, destination, packet, _hop)
    return {
        "from": source,
        "to": destination,
        "ev": ev,
        "plane": path.plane,
        "t1": None if ways.same_t0 else t1_name(path.plane, path.number),
        "usids": [f"{usid:04x}" for usid in ways.usids(ev)],
        **walked,
    }


def check_hop_limit(hop_limit: int) -> None:
    """Raises ConfigError for what is no hop limit."""
    if not 1 <= hop_limit <= 255:
        raise ConfigError("--hop-limit", f"{hop_limit} is no hop limit", "1 to 255")


def check_ends(source: str, destination: str) -> None:
    """Raises ConfigError for a NIC that would send to itself: it has no paths towards itself."""
    if source == destination:
        raise ConfigError("--to", f"{shown(destination)} has no path towards itself", "the name of another NIC")


def data_packet(
    nic: NicConfig, destination: bytes, sport: int, outer: bytes | None, options: WireOptions
) -> bytearray:  # fmt: skip
    """A full data packet of RC or UET, as this NIC sends it with this source port.

    `outer`: the container of a pinned path.
    """
    settings = nic.settings
    if settings.transport == "uet":
        return _uet_packet(nic, destination, sport, options)
    template = RcDataTemplate(
        nic.address, destination, layout.QPN_MIN, sport, dscp=settings.rc_data_dscp, outer=outer,
        selective=settings.rc_recovery == "selective", options=options,
    )  # fmt: skip
    payload = bytes(settings.mtu_bytes)
    return template.make(RC_WRITE_ONLY, 0, payload, dma_len=len(payload), ack_request=True)


def _uet_packet(nic: NicConfig, destination: bytes, sport: int, options: WireOptions) -> bytearray:
    settings = nic.settings
    template = UetTemplate(
        nic.address, destination, dscp=nic.dscp, crc=settings.uet_crc, hop_limit=options.hop_limit
    )  # fmt: skip
    size = settings.mtu_bytes
    write = Write(SES_SOM | SES_EOM, 0, 1, 0, layout.QPN_MIN, 0, layout.QPN_MIN, 0, 0, 0, size)
    credited = settings.uet_cc in ("rccc", "both")
    kind = RUD_CC_REQUEST if credited else RUD_REQUEST
    return template.request(sport, kind, FLAG_SYN, 0, 0, 1, 0, write, bytes(size))


def along(
    topology: Topology, source: str, port: int, destination: str, packet: bytearray, describe: "Describe"
) -> dict[str, Any]:
    """Send a packet by a port of a NIC, and pass it on from switch to switch.

    Returns `packet_bytes`, `hops` (what `describe` makes of each switch), `outcome` and `elapsed_ns`.
    """
    size = len(packet)
    first = topology.ports(source)[port]
    here, port = first.peer, first.peer_port
    now = serialization_ns(size + OVERHEAD_BYTES, first.rate_bps) + first.delay_ns
    hops: list[dict[str, Any]] = []
    outcome = "goes in circles"
    while len(hops) < HOPS_MAX:
        passed = _pass(topology, here, port, packet, now)
        hops.append({"node": here, "ingress_port": port, **describe(topology, passed)})
        if passed.sent is None:
            outcome = f"dropped: {passed.drop}"
            break
        left_by, now, _ = passed.sent
        packet, out = passed.left, topology.ports(here)[left_by]
        here, port = out.peer, out.peer_port
        if out.towards == "nic":
            outcome = "delivered" if here == destination else f"delivered to {here}"
            break
    return {"packet_bytes": size, "hops": hops, "outcome": outcome, "elapsed_ns": now}


class Passed(NamedTuple):
    """What a switch did with the packet."""

    switch: Switch
    came: bytearray
    sent: Transmit | None
    """None: it was dropped."""
    left: bytearray
    said: dict[str, Any]
    """The switch's statement about the packet, as a witness writes it; empty where nobody follows such packets."""

    @property
    def drop(self) -> str:
        """The name of the only drop that this new switch has counted."""
        drops: dict[str, int] = self.switch.counters()["drops"]
        return next(reason for reason, count in drops.items() if count)


Describe: TypeAlias = Callable[[Topology, Passed], dict[str, Any]]


def _packet(
    topology: Topology, source: bytes, destination: bytes, ev: int, outer: bytes, options: WireOptions
) -> bytearray:  # fmt: skip
    template = DataTemplate(source, destination, layout.QPN_MIN, dscp=code_points(topology), options=options)
    payload = bytes(topology.mtu_bytes)
    return template.build(layout.WRITE_ONLY, 0, 0, 0, 0, 0, len(payload), ev, outer, payload)


def _pass(topology: Topology, name: str, port: int, packet: bytearray, now: int) -> Passed:
    switch = build_switch(switch_config(topology, name), now - 1)
    witness = Witness(Choice(), code_points(topology), wire_options(topology))
    switch.set_witness(witness)
    came = bytearray(packet)
    transmits = switch.advance([Input(now, Rank.FRAME, port, 1, packet)], now + _SETTLE_NS)
    said = witness.after(0, 1)["statements"]
    sent = next((one for one in transmits if not isinstance(one[2], ControlFrame)), None)
    left = came if sent is None else bytearray(sent[2])
    return Passed(switch, came, sent, left, said[0] if said else {})


def way_out(topology: Topology, passed: Passed) -> dict[str, Any]:
    """By which port and queue a packet left a switch."""
    assert passed.sent is not None
    port = passed.sent[0]
    egress = passed.switch.egress[port]
    queue = "control" if egress.control_bytes_peak else "data"
    found = {"egress_port": port, "towards": topology.ports(passed.switch.name)[port].peer, "queue": queue}
    if egress.trim_admitted:
        found["trimmed_to_bytes"] = len(passed.left)
    return found


def _hop(topology: Topology, passed: Passed) -> dict[str, Any]:
    hop = {"usid": f"{passed.switch.config.usid:04x}", **_seen(passed.came, "in")}
    if passed.sent is None:
        return {**hop, "drop": passed.drop}
    return {**hop, **way_out(topology, passed), **_seen(passed.left, "out")}


def _seen(packet: bytearray, side: str) -> dict[str, Any]:
    return {
        f"da_{side}": str(IPv6Address(bytes(packet[layout.OUTER_DESTINATION]))),
        f"hop_limit_{side}": packet[layout.HOP_LIMIT_OFFSET],
    }


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
