"""What a topology consists of, computed without starting anything: sizes, figures, addresses, tables of chosen nodes.

Owns the numbers and their text. It computes everything from the sizes, so the largest fabric costs no more than the
smallest. `nicd.compose` and `switchd.compose` make the cores' configurations, so the plan shows what the daemons get.
`check` composes one node of each kind, which finds every bad setting, and asks `combination` about what is left.
"""

from ipaddress import IPv6Address
from typing import Any

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.errors import ConfigError
from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.paths import EV_DRAW_SHIFT, EV_UPLINK_SHIFT, PathTable, ev_of
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, SACK_PACKET_BYTES, Topology
from mrcfabric.units import serialization_ns
from mrcfabric.wire import usid
from nicd.compose import nic_config
from orchestrator.planning import window_limits
from orchestrator.planning.abilities import has_evs
from orchestrator.planning.combination import check_combination
from switchd.compose import switch_config

__all__ = ["check", "fib_table", "nic_config", "nic_table", "render", "summary", "switch_config"]


def check(topology: Topology) -> None:
    """Compose one NIC, one T0 and one T1, for all others differ in numbers only, and see whether they go together.

    Raises ConfigError.
    """
    nic_config(topology, nic_name(0))
    switch_config(topology, t0_name(0, 0))
    switch_config(topology, t1_name(0, 0))
    check_combination(topology)


def summary(topology: Topology) -> dict[str, Any]:
    """Sizes and figures by section, as plain data. Raises ConfigError for settings that no core takes."""
    check(topology)
    return {
        "name": topology.name,
        "digest": topology.digest(),
        "sizes": _sizes(topology),
        "paths": _paths(topology),
        "tables": _tables(topology),
        "timing": _timing(topology),
        "queues": _queues(topology),
        **_buffers(topology),
        "limits": window_limits.table(topology),
        "failures": _failures(topology),
        "launch": {
            "daemons": topology.nodes,
            "processes_packed_by_plane": topology.nics + topology.planes,
            "udp_sockets": 2 * topology.link_count,
        },
    }


def _sizes(topology: Topology) -> dict[str, Any]:
    return {
        "planes": topology.planes,
        "nics": topology.nics,
        "nics_per_t0": topology.nics_per_t0,
        "t0_per_plane": topology.t0_per_plane,
        "t1_per_plane": topology.t1_per_plane,
        "t0": topology.planes * topology.t0_per_plane,
        "t1": topology.planes * topology.t1_per_plane,
        "switches": topology.switches,
        "nodes": topology.nodes,
        "links_nic_t0": topology.planes * topology.nics,
        "links_t0_t1": topology.link_count - topology.planes * topology.nics,
        "t0_ports": topology.nics_per_t0 + topology.t1_per_plane,
        "t1_ports": topology.t0_per_plane,
        "oversubscription": round(topology.nics_per_t0 / topology.t1_per_plane, 3),
        "port_bps": topology.rate_bps,
        "nic_bps": topology.planes * topology.rate_bps,
    }


def _paths(topology: Topology) -> dict[str, Any]:
    far = topology.t0_per_plane > 1
    return {
        "per_pair": topology.paths_per_pair if far else topology.planes,
        "per_pair_same_t0": topology.planes,
        "switches_passed": 3 if far else 1,
        **(_evs(topology) if has_evs(topology) else {}),
    }


def _evs(topology: Topology) -> dict[str, Any]:
    per_plane = topology.evs_per_qp // topology.planes
    return {
        "evs_per_qp": topology.evs_per_qp,
        "reserve_evs_per_qp": topology.reserve_evs_per_qp,
        "evs_per_plane": per_plane,
        "evs_per_path": round(per_plane / topology.t1_per_plane, 3),
        "ev_bits": {
            "plane": "2..0",
            "up-link": f"{EV_DRAW_SHIFT - 1}..{EV_UPLINK_SHIFT}",
            "draw": f"31..{EV_DRAW_SHIFT}",
        },
    }


def _tables(topology: Topology) -> dict[str, Any]:
    t0_entries = topology.nics_per_t0 + topology.t1_per_plane
    last = topology.nics - 1
    addresses = [address_text(topology.nic_address(0)), address_text(topology.nic_address(last))]
    if topology.switch.get("forwarding") == "ecmp":
        return {"nic_addresses": addresses}
    return {
        "usid_block": usid_block_text(topology),
        "usids_t0": [f"{topology.own_usid(name):04x}" for name in (t0_name(0, 0), _last_t0(topology))],
        "usids_t1": [f"{topology.own_usid(name):04x}" for name in (t1_name(0, 0), _last_t1(topology))],
        "nic_addresses": addresses,
        "fib_entries_t0": t0_entries,
        "fib_entries_t1": topology.t0_per_plane,
        "fib_entries": topology.planes
        * (topology.t0_per_plane * t0_entries + topology.t1_per_plane * topology.t0_per_plane),
    }


def _timing(topology: Topology) -> dict[str, Any]:
    return {
        "link_delay_ns": topology.link_delay_ns,
        "data_packet_bytes": topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES,
        "data_packet_ns": serialization_ns(
            topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES, topology.rate_bps
        ),
        "sack_packet_bytes": SACK_PACKET_BYTES,
        "base_rtt_ns": topology.base_rtt_ns(),
        "base_rtt_same_t0_ns": topology.base_rtt_ns(same_t0=True),
        "plane_bdp_bytes": topology.plane_bdp_bytes,
        "nic_bdp_bytes": topology.nic_bdp_bytes,
        "payload_share": round(topology.mtu_bytes / (topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES), 4),
    }


def _queues(topology: Topology) -> dict[str, Any]:
    """The thresholds of a T0's down-links, and those of all other switch ports."""
    ports = switch_config(topology, t0_name(0, 0)).ports
    return {
        kind: {
            "ecn_min_bytes": port.ecn_min_bytes if port.ecn else None,
            "ecn_max_bytes": port.ecn_max_bytes if port.ecn else None,
            "data_bytes_max": port.data_bytes_max,
            "control_bytes_max": port.control_bytes_max,
            "trim_bytes": port.trim_bytes if port.trim else None,
            "trim_dscp": port.trim_dscp if port.trim else None,
        }
        for kind, port in (("down_link", ports[0]), ("up_link", ports[-1]))
    }


def _buffers(topology: Topology) -> dict[str, Any]:
    """`buffers`: how lossless switches divide theirs, by tier; nothing in other fabrics."""
    found = {}
    for tier, name in (("t0", t0_name(0, 0)), ("t1", t1_name(0, 0))):
        lossless = switch_config(topology, name).lossless
        if lossless is not None:
            buffer = lossless.buffer
            found[tier] = {
                "buffer_bytes": buffer.bytes_total,
                "lossless_classes": len(buffer.lossless),
                "headroom_of_a_port_bytes": max(buffer.headroom_bytes),
                "headroom_bytes": len(buffer.lossless) * sum(buffer.headroom_bytes),
                "pool_bytes": buffer.pool_bytes,
                "xoff_bytes": buffer.first_xoff_bytes,
            }
    return {"buffers": found} if found else {}


def _failures(topology: Topology) -> dict[str, Any]:
    """The share of capacity that is lost while one element is down."""
    return {
        "t0_t1_link_of_a_t0_plane": round(1 / topology.t1_per_plane, 6),
        "t1_of_a_plane": round(1 / topology.t1_per_plane, 6),
        "nic_port_of_a_nic": round(1 / topology.planes, 6),
        "t0_of_its_nics": round(1 / topology.planes, 6),
    }


def fib_table(topology: Topology, switch: str) -> dict[str, Any]:
    """The whole static table of one switch. Raises ConfigError for unknown names, NICs, and ecmp switches."""
    config = switch_config(topology, switch)
    if topology.switch.get("forwarding") == "ecmp":
        what = "has no table of uSIDs: with switch.forwarding ecmp it sends down to its NICs, and up by a hash"
        raise ConfigError(switch, what, "`mrcfabric switch show` has what each port of a running one carried")
    peers = {end.port: end for end in topology.ports(switch)}
    return {
        "node": switch,
        "number": topology.node_index(switch),
        "usid": f"{config.usid:04x}",
        "match": f"{address_text(usid.build(config.block, (config.usid,)))}/48",
        "entries": [
            {"next_usid": f"{next_usid:04x}", "port": port, "peer": peers[port].peer, "link": peers[port].link}
            for next_usid, port in sorted(config.fib.items(), key=lambda entry: entry[1])
        ],
    }


def nic_table(topology: Topology, nic: str, peer: str | None = None) -> dict[str, Any]:
    """The ports of one NIC, and in each plane a path to `peer` (default: the last NIC). Raises ConfigError."""
    config = nic_config(topology, nic)
    towards = peer or nic_name(topology.nics - 1)
    destination = PathTable(topology, config.index).towards(topology.nic_index(towards))
    ways: list[dict[str, Any]] = []
    for end in topology.ports(nic):
        way = {"plane": end.port, "t0": end.peer, "down_link": end.peer_port, "link": end.link}
        if has_evs(topology):
            ev = ev_of(end.port, 0, 0)
            way |= {"ev": ev, "outer_address": address_text(destination.path(ev).outer)}
        ways.append(way)
    return {
        "node": nic,
        "number": config.index,
        "address": address_text(config.address),
        "towards": towards,
        "paths": destination.paths_per_plane * topology.planes,
        "ports": ways,
    }


def render(document: dict[str, Any]) -> str:
    """A summary, with tables added to it, as text: one section per key, one figure per line."""
    lines = [f"fabric {document['name']}  (settings {document['digest']})"]
    for section, figures in document.items():
        if isinstance(figures, dict):
            lines += ["", section]
            lines += [f"  {key:<28} {_figure(key, value)}" for key, value in _flat(figures) if not _is_table(value)]
            for rows in filter(_is_table, figures.values()):
                lines += _columns(rows)
    return "\n".join(lines)


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    """Rows with the same keys as lines, with every column as wide as it needs to be."""
    cells = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "    " + "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def address_text(address: bytes) -> str:
    """An IPv6 address as RFC 5952 writes it."""
    return str(IPv6Address(address))


def usid_block_text(topology: Topology) -> str:
    """The uSID block as a prefix."""
    return f"{IPv6Address(topology.usid_block << 96)}/32"


def _last_t0(topology: Topology) -> str:
    return t0_name(topology.planes - 1, topology.t0_per_plane - 1)


def _last_t1(topology: Topology) -> str:
    return t1_name(topology.planes - 1, topology.t1_per_plane - 1)


def _flat(figures: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for key, value in figures.items():
        flat += _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(prefix + key, value)]
    return flat


def _figure(key: str, value: Any) -> str:
    if value is None:
        return "off"
    if isinstance(value, list):
        return " .. ".join(map(str, value))
    if isinstance(value, bool) or not isinstance(value, int):
        return str(value)
    if key.endswith("_bps"):
        return f"{value / 1e9:g} Gb/s"
    unit = {"ns": " ns", "bytes": " B"}.get(key.removesuffix("_max").rpartition("_")[2], "")
    return f"{value:,}{unit}"
