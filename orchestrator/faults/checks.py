"""Checks that a fault makes sense in a fabric: its kind, targets, windows and figures. Changes nothing.

Pure. Owns the bounds of figures and the spelling of link directions. `kinds` has the catalogue, `fault` the record.
Whoever makes a fault (scenario, command line, script) may check it early; the table checks every fault.
"""

from collections.abc import Callable, Mapping
from typing import Final

from mrcfabric.brake import SHARE_PPM_MIN, SPELLS_MAX
from mrcfabric.control_cut import WINDOWS_MAX as CUTS_MAX
from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.errors import ConfigError, misfit, out_of_order
from mrcfabric.impairment import BURST_PACKETS_MAX, DELAY_NS_MAX, RATE_BPS_MAX
from mrcfabric.impairment_bounds import BLACK_HOLES_MAX
from mrcfabric.naming import shown
from mrcfabric.rng import PPM
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, Topology
from mrcfabric.units import NEVER, serialization_ns
from mrcfabric.wire.entropy import EV_MAX
from mrcfabric.wire.layout import PSN_MASK
from orchestrator.faults import headroom
from orchestrator.faults.fault import ID_CHARS_MAX, TITLE_CHARS_MAX, Fault, Figure
from orchestrator.faults.kinds import ABOUT_HOSTS, KINDS, OF_SESSIONS, Target, nearest_kind, no_hosts, struck
from orchestrator.faults.selectors import nic_port
from orchestrator.planning.abilities import has_usids, need_mrc, transport_of

WINDOWS_MAX: Final = 4096
"""How many windows one fault may have; a longer flap takes several faults."""
_WINDOWS_MAX_OF: Final = {"control_cut": CUTS_MAX, "host_slow": SPELLS_MAX}
"""The same for kinds whose windows a daemon gets all at once."""
PULSES_MAX: Final = 1 << 16
"""How large windows times targets of one fault may be: daemons are told of each."""

DEADLY: Final = frozenset({"switch_crash", "switch_reboot", "t0_down", "nic_crash", "host_loss", "host_crash"})
"""Kinds that kill the nodes they strike for as long as their windows last."""

_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "share_ppm": (1, PPM),
    "burst_packets": (1, BURST_PACKETS_MAX),
    "delay_ns": (0, DELAY_NS_MAX),
    "jitter_ns": (0, DELAY_NS_MAX),
    "retry_ns": (0, DELAY_NS_MAX),
    "rate_bps": (1, RATE_BPS_MAX),
    "usid": (1, 0xFFFF),
    "ev": (0, EV_MAX),
    "qpn": (0, PSN_MASK),
    "psn": (0, PSN_MASK),
    "psns": (1, BLACK_HOLES_MAX),
    "buffer_bytes": (0, 1 << 40),
    "min_bytes": (0, 1 << 40),
    "max_bytes": (0, 1 << 40),
    "cpu_ppm": (SHARE_PPM_MIN, PPM),
    "headroom_bytes": (0, 1 << 40),
    "of_exact_ppm": (1, PPM),
    "port": (0, 1 << 16),
    "factor": (1, 1_000_000),
}


def percent_least(figure: str) -> float:
    """The least that a figure in parts per million may be, in percent."""
    return _BOUNDS[figure][0] * 100 / PPM


def absence_ns_min(topology: Topology) -> int:
    """How long a node that returns must have been away at least, in ns: else frames meant for its return are lost."""
    return 2 * topology.link_delay_ns_max + packet_ns(topology) + 1


def packet_ns(topology: Topology) -> int:
    """How long the largest packet takes to serialize, in ns."""
    return serialization_ns(topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES, topology.rate_bps)


def check(topology: Topology, fault: Fault, *, placed: bool = True) -> None:
    """Raises ConfigError for a fault that this fabric cannot have.

    `placed` False: the hosts are not known yet, so a host fault need not have been expanded into parts.
    """
    if not 0 < len(fault.id) <= ID_CHARS_MAX or not fault.id.isprintable():
        raise ConfigError("fault.id", f"{shown(fault.id)} will not do", f"1 to {ID_CHARS_MAX} printable characters")
    if len(fault.title) > TITLE_CHARS_MAX or not fault.title.isprintable():
        hint = f"one line of up to {TITLE_CHARS_MAX} printable characters"
        raise ConfigError("fault.title", f"{shown(fault.title)} will not do", hint)
    if fault.kind not in KINDS:
        raise ConfigError(shown(fault.kind), "no such kind of fault", nearest_kind(fault.kind))
    if not fault.targets:
        raise ConfigError(fault.id, "is about nothing", f"at least one {KINDS[fault.kind].target.value}")
    if len(set(fault.targets)) != len(fault.targets):
        raise ConfigError(fault.id, "names a target twice")
    if fault.kind not in ABOUT_HOSTS or fault.parts:
        for part in fault.struck:
            check_part(topology, fault.kind, part)
    elif placed:
        raise no_hosts(fault.id)
    _check_windows(topology, fault)


def check_part(topology: Topology, kind: str, part: str) -> None:
    """Raises ConfigError when this name is not one of the things that this kind acts on."""
    _NAMED[struck(kind)](topology, part)
    if kind == "t0_down" and topology.parse_node(part).tier != "t0":
        raise ConfigError(part, "is no T0", "switch_crash takes any switch")
    if kind in OF_SESSIONS and (">" in part or part.startswith("h")):
        hint = "sessions are between switches and have no direction: p0-t0-0~p0-t1-0"
        raise ConfigError(part, "has no session of its own", hint)


def ways(topology: Topology, target: str) -> tuple[tuple[str, int], ...]:
    """The sending ends (node, port) of a LINK target, the lower tier's first. Raises ConfigError."""
    link = topology.parse_link(target.replace(">", "~", 1))
    ends = (link.a, link.a_port), (link.b, link.b_port)
    if ">" not in target:
        return ends
    return tuple(end for end in ends if end[0] == target.partition(">")[0])


def figures_of(topology: Topology, kind: str, given: Mapping[str, Figure]) -> dict[str, Figure]:
    """All figures of a kind, with defaults for those not given. Raises ConfigError that names `kind.figure`."""
    known = KINDS[kind].figures
    for name in given:
        if name not in known:
            hint = "there are " + ", ".join(known) if known else f"a {kind} has none"
            raise ConfigError(f"{kind}.{shown(name)}", "no such figure", hint)
    found: dict[str, Figure] = {}
    for name, row in known.items():
        value = given.get(name)
        if value is None:
            if row.required:
                raise ConfigError(f"{kind}.{name}", "is missing", row.meaning)
            value = row.default
        found[name] = value if value is None else _checked(topology, kind, name, value)
    _check_together(kind, found)
    return found


def check_figure(topology: Topology, kind: str, name: str, value: Figure) -> None:
    """Raises ConfigError, with the range, for a figure that is out of bounds by itself."""
    _checked(topology, kind, name, value)


def _checked(topology: Topology, kind: str, name: str, value: Figure) -> Figure:
    where = f"{kind}.{name}"
    if name == "off":
        if not isinstance(value, bool):
            raise ConfigError(where, f"{value!r} will not do", "true or false")
        return value
    if name == "towards":
        if value not in headroom.TOWARDS:
            raise ConfigError(where, f"{shown(str(value))} will not do", ", ".join(headroom.TOWARDS))
        return value
    if name == "nic":
        topology.nic_index(str(value))
        return value
    if name == "usid" and isinstance(value, str):
        return topology.own_usid(value)
    least, most = _BOUNDS[name]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        wanted = f"{least} to {most}" + (" or the name of a switch" if name == "usid" else "")
        raise misfit(where, value, wanted)
    return value


def _check_together(kind: str, figures: Mapping[str, Figure]) -> None:
    if kind == "black_hole" and figures["usid"] is None and figures["ev"] is None:
        raise ConfigError("black_hole", "swallows nothing", "give usid or ev")
    if kind == "nth_packet" and (figures["qpn"] is None or figures["psn"] is None):
        raise ConfigError("nth_packet", "names no packet", "in a scenario flow and packet, elsewhere qpn and psn")
    if kind == headroom.KIND and (figures["headroom_bytes"] is None) == (figures["of_exact_ppm"] is None):
        raise ConfigError(kind, "says not how much is left, or says it twice", "headroom_bytes, or of_exact_ppm")
    if kind in ("reordering", "delay") and not any(figures.get(name) for name in ("delay_ns", "jitter_ns")):
        raise ConfigError(kind, "holds nothing back", "give delay_ns")
    if kind == "ecn_misconfigured":
        least, most = figures["min_bytes"], figures["max_bytes"]
        if not figures["off"] and least is None and most is None:
            raise ConfigError(kind, "changes nothing", "give off, min_bytes or max_bytes")
        if isinstance(least, int) and isinstance(most, int) and most < least:
            raise out_of_order(f"{kind}.min_bytes", least, f"{kind}.max_bytes", most, equal=True)


def _check_windows(topology: Topology, fault: Fault) -> None:
    most = _WINDOWS_MAX_OF.get(fault.kind, WINDOWS_MAX)
    if not 1 <= len(fault.windows) <= most:
        raise ConfigError(fault.id, f"has {len(fault.windows)} windows", f"1 to {most}")
    if len(fault.windows) * len(fault.struck) > PULSES_MAX:
        raise ConfigError(fault.id, "is too much at once", f"windows times targets: at most {PULSES_MAX}")
    least_ns = absence_ns_min(topology) if fault.kind in DEADLY else 1
    before_ns = 0
    for window in fault.windows:
        if window.start_ns < before_ns or window.end_ns > NEVER:
            raise ConfigError(fault.id, f"its windows are out of order at {window.start_ns} ns")
        if window.end_ns - window.start_ns < least_ns:
            hint = "frames on their way need that long" if least_ns > 1 else ""
            what = f"bites from {window.start_ns} to {window.end_ns} ns, less than {least_ns} ns"
            raise ConfigError(fault.id, what, hint)
        before_ns = window.end_ns
    if fault.kind == "switch_reboot" and fault.end_ns == NEVER:
        raise ConfigError(fault.id, "a reboot ends by itself", "say for how long, or switch_crash")
    seen: list[Mapping[str, Figure]] = []
    for window in fault.windows:
        if window.figures not in seen[-1:]:
            seen.append(window.figures)
            figures = figures_of(topology, fault.kind, window.figures)
            _check_rates(topology, fault, figures)
            if fault.kind == "black_hole":
                _check_marks(topology, figures)
            for switch in fault.struck if fault.kind == headroom.KIND else ():
                headroom.left_by_port(topology, switch, figures)


def _check_rates(topology: Topology, fault: Fault, figures: Mapping[str, Figure]) -> None:
    rate_bps = figures.get("rate_bps")
    if not isinstance(rate_bps, int):
        return
    if fault.kind == "slow_receiver":
        own_bps = topology.planes * topology.rate_bps
        if rate_bps >= own_bps:
            raise ConfigError(f"{fault.kind}.rate_bps", f"{rate_bps} is no limit", f"a NIC's ports have {own_bps}")
        return
    for target in fault.targets:
        name = topology.parse_link(target.replace(">", "~", 1)).name
        own_bps = topology.link_rates_bps.get(name, topology.rate_bps)
        if rate_bps >= own_bps:
            raise ConfigError(f"{fault.kind}.rate_bps", f"{rate_bps} is no limit", f"{name} has {own_bps}")


def _check_marks(topology: Topology, figures: Mapping[str, Figure]) -> None:
    """A black hole must be able to tell packets apart."""
    if figures["ev"] is not None:
        need_mrc(topology, "black_hole.ev", "only packets of MRC carry EVs", "loss or link_down on the same link")
    if figures["usid"] is not None and not has_usids(topology):
        transport = transport_of(topology)
        what = f"plain packets of nic.transport {transport} carry no uSIDs, so that it would swallow nothing"
        pinned = ", or nic.rc_path: pinned" if transport == "rc" else ""
        raise ConfigError("black_hole.usid", what, f"loss or link_down on the same link{pinned}")


def _switch(topology: Topology, name: str) -> None:
    topology.own_usid(name)


def _plane(topology: Topology, name: str) -> None:
    if not name.isdecimal() or len(name) > 3 or int(name) >= topology.planes or str(int(name)) != name:
        raise ConfigError(f"plane {shown(name)}", "no such plane", f"0 to {topology.planes - 1}")


_NAMED: Final[Mapping[Target, Callable[[Topology, str], object]]] = {
    Target.LINK: ways,
    Target.SWITCH: _switch,
    Target.NIC: Topology.nic_index,
    Target.NIC_PORT: nic_port,
    Target.PLANE: _plane,
    Target.NODE: Topology.parse_node,
}
