"""Finds the limits of a NIC that keep its QPs below the rate of their links, before anything starts.

A limit lets so many bytes be under way, and they are acknowledged one round trip later: so it bounds goodput to these
bytes per round trip. Owns that arithmetic over topology and settings, and its words. The NIC enforces the limits
(`nicd.core.mrc.limits`, `nicd.core.congestion.window`, `nicd.core.rc.requestor`). The round trip is the longest of the
topology, without queues. An RC QP keeps to one port, so the rate of one port is what its limits are compared with.
"""

from dataclasses import dataclass
from typing import Any, Final

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, Topology
from mrcfabric.units import NS_PER_S
from nicd.compose import nic_settings
from nicd.core.mrc.limits import MPR_UNITS_MAX
from nicd.core.settings import MPR_UNIT, NicSettings

_MESSAGE_LIMITS: Final = {"mrc": ("work_requests_max", "max_wimm"), "rc": ("work_requests_max",),
                          "uet": ("work_requests_max",)}  # fmt: skip
"""Limits that count messages, by transport. How many bytes that is depends on the messages' size."""


@dataclass(frozen=True, slots=True)
class WindowLimit:
    """One limit of what may be under way."""

    setting: str
    """A setting of the NIC, with its name in a topology."""
    value: int
    bounds: str
    """What the limit is for: a QP, or all QPs to one destination."""
    window_bytes: int
    """Payload that it lets be under way."""
    goodput_bps: int
    """This payload per round trip. If it is above the rate of the links, the limit does not bind."""
    remedy: str


def line_bps(topology: Topology) -> int:
    """Payload per second that all ports of a NIC carry, after headers."""
    whole = topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES
    return topology.planes * topology.rate_bps * topology.mtu_bytes // whole


def rtt_ns(topology: Topology) -> int:
    """The longest base RTT between two NICs."""
    return topology.base_rtt_ns(same_t0=topology.t0_per_plane == 1)


def qp_line_bps(topology: Topology) -> int:
    """The same of the ports that one QP uses."""
    knobs = nic_settings(topology)
    sprays = knobs.transport == "mrc" or (knobs.transport == "uet" and knobs.uet_mode == "rud")
    return line_bps(topology) if sprays else line_bps(topology) // topology.planes


def window_limits(topology: Topology) -> list[WindowLimit]:
    """Every limit of bytes or packets under way, binding or not. Raises ConfigError for bad settings."""
    knobs = nic_settings(topology)
    if knobs.transport == "rc":
        return _limits_of_rc(topology, knobs)
    found = [
        _limit(topology, "nic.mpr_units", knobs.mpr_units, "a QP", knobs.mpr_units * MPR_UNIT, _mpr_remedy(topology))
    ]
    held = [(name, getattr(knobs, name)) for name in ("ooo_packets_max", "bitmap_psns") if getattr(knobs, name)]
    if knobs.transport == "uet":
        held = []
    if knobs.dynamic_mpr:
        # Dynamic MPR advertises what these limits leave, in whole units, but at least one.
        for name, packets in held:
            granted = max(1, packets // MPR_UNIT) * MPR_UNIT
            found.append(_limit(topology, f"nic.{name}", packets, "a QP", granted, f"raise nic.{name}"))
    window = None if knobs.transport == "uet" and knobs.uet_cc in ("rccc", "none") else _cwnd_setting(knobs)
    if window is not None:
        cwnd = max(getattr(knobs, window), knobs.mtu_bytes)
        packets = cwnd // knobs.mtu_bytes
        found.append(_limit(topology, f"nic.{window}", cwnd, "all QPs to one NIC", packets, f"raise nic.{window}"))
    return found


def binding(topology: Topology) -> list[WindowLimit]:
    """Limits below the bandwidth-delay product, which keep their QPs below the rate of their links."""
    return [limit for limit in window_limits(topology) if limit.goodput_bps < qp_line_bps(topology)]


def warnings(topology: Topology) -> list[str]:
    """One line for each limit that binds. Raises ConfigError for bad settings."""
    line, trip_ns = qp_line_bps(topology), rtt_ns(topology)
    product = line * trip_ns // (8 * NS_PER_S)
    ports = topology.planes * line // line_bps(topology)
    ways = f"{ports} x {_rate(topology.rate_bps)}, a round trip of {trip_ns / 1000:g} us"
    return [
        f"{limit.setting} = {limit.value} lets {limit.bounds} have {_bytes(limit.window_bytes)} under way, below the "
        f"bandwidth-delay product of {_bytes(product)} ({ways}): "
        f"at most {_rate(limit.goodput_bps)} of {_rate(line)} of payload; {limit.remedy}"
        for limit in binding(topology)
    ]


def table(topology: Topology) -> dict[str, Any]:
    """For `plan`: the goodput of each limit; for limits that count messages, the size from which they do not bind."""
    knobs, line = nic_settings(topology), qp_line_bps(topology)
    whole, product = (bps * rtt_ns(topology) // (8 * NS_PER_S) for bps in (line_bps(topology), line))
    rows: dict[str, Any] = {"line_payload_bps": line_bps(topology), "bdp_payload_bytes": whole}
    for limit in window_limits(topology):
        rows[limit.setting] = {"window_bytes": limit.window_bytes, "goodput_bps": min(line, limit.goodput_bps)}
    for name in _MESSAGE_LIMITS[knobs.transport]:
        rows[f"nic.{name}"] = {"line_rate_from_message_bytes": -(-product // getattr(knobs, name))}
    return rows


def _limit(topology: Topology, setting: str, value: int, bounds: str, packets: int, remedy: str) -> WindowLimit:
    window = packets * topology.mtu_bytes
    goodput = window * 8 * NS_PER_S // rtt_ns(topology)
    return WindowLimit(setting, value, bounds, window, goodput, remedy)


def _limits_of_rc(topology: Topology, knobs: NicSettings) -> list[WindowLimit]:
    packets = knobs.rc_psns_max
    found = [_limit(topology, "nic.rc_psns_max", packets, "a QP", packets, "raise nic.rc_psns_max")]
    if knobs.rc_window_bytes:
        window = max(knobs.rc_window_bytes, knobs.mtu_bytes)
        packets = window // knobs.mtu_bytes
        found.append(_limit(topology, "nic.rc_window_bytes", window, "a QP", packets, "raise nic.rc_window_bytes"))
    return found


def _mpr_remedy(topology: Topology) -> str:
    """How many units would do; if the most there are do not, how many QPs."""
    bits = line_bps(topology) * rtt_ns(topology)
    unit_bits = MPR_UNIT * topology.mtu_bytes * 8 * NS_PER_S
    units = -(-bits // unit_bits)
    if units <= MPR_UNITS_MAX:
        return f"nic.mpr_units = {units} would do"
    return f"with {MPR_UNITS_MAX}, the most there is, it takes {-(-units // MPR_UNITS_MAX)} QPs side by side"


def _cwnd_setting(knobs: NicSettings) -> str | None:
    """The setting of the largest congestion window; None where it follows from the bandwidth-delay product."""
    name = {"nscc": "max_cwnd_bytes", "fixed": "cwnd_bytes"}.get(knobs.congestion)
    return name if name and getattr(knobs, name) else None


def _bytes(count: int) -> str:
    return f"{count / 1e6:.3g} MB" if count >= 1_000_000 else f"{count / 1e3:.3g} kB"


def _rate(bps: int) -> str:
    return f"{bps / 1e9:.4g} Gb/s"
