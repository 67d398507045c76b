"""From a topology to the configuration of one switch's core: its uSID, its static table, its ports.

The one place that turns figures of the topology into bytes and nanoseconds of a switch. `switchd.core.settings` gives
the settings their meaning; the daemon's configuration file has the daemon's own figures (sockets, clock, folders).

Settings under `switch:` hold for every switch. One whose key is NODE.PORT.KNOB, as `p0-t0-1.3.trim: false`, holds for
one port: `trim` (off: it drops), `ecn`, `trim_dscp` (one of the fabric's two code points for trimmed packets).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from mrcfabric.class_egress_config import ClassEgressConfig
from mrcfabric.egress_config import OVERHEAD_BYTES, EgressConfig
from mrcfabric.errors import ConfigError, misfit, out_of_order
from mrcfabric.naming import adjacency_usid, shown
from mrcfabric.nearest import nearest_hint
from mrcfabric.rng import seed_of
from mrcfabric.settings import settings_from
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, PortLink, Setting, Topology
from mrcfabric.units import serialization_ns
from mrcfabric.wire.pfc import pause_ns, quanta_of
from mrcfabric.wire_settings import code_points, wire_options
from switchd.compose_lids import credit_config, credit_port, lft_config
from switchd.compose_routing import learned_config, routing_config
from switchd.core.buffer import BufferConfig
from switchd.core.forwarding.ecmp import EcmpConfig
from switchd.core.headroom import PFC_WIRE_BYTES, deployed_headroom, exact_headroom
from switchd.core.settings import LosslessConfig, SwitchConfig, SwitchSettings
from switchd.core.settings_lossless import class_weights, lossless_classes, strict_classes

PORT_KNOBS: Final[Mapping[str, type[int]]] = {"trim": bool, "ecn": bool, "trim_dscp": int}
"""The settings that one port alone can have, and their kinds."""
_TEXTS: Final = ("pfc_classes", "pfc_headroom", "class_strict", "class_weights", "vl_of_sl", "vl_high", "vl_low")
"""Settings that are texts, and that a file may also give as a number."""


def switch_settings(topology: Topology) -> SwitchSettings:
    """The settings of every switch of the fabric. Raises ConfigError that names `switch.KEY`."""
    port_settings(topology)
    of_all = {key: value for key, value in topology.switch.items() if "." not in key}
    for key in _TEXTS:
        if type(of_all.get(key)) is int:
            of_all[key] = str(of_all[key])
    # YAML 1.1 reads the word off as false.
    for key in ("lossless", "adaptive"):
        if of_all.get(key) is False:
            of_all[key] = "off"
    return settings_from(SwitchSettings, of_all, "switch")


def port_settings(topology: Topology) -> dict[tuple[str, int], dict[str, Setting]]:
    """(switch, port) -> the settings of that port alone. Raises ConfigError that names `switch.NODE.PORT.KNOB`."""
    found: dict[tuple[str, int], dict[str, Setting]] = {}
    for key, value in topology.switch.items():
        if "." in key:
            node, port, knob = _port_key(topology, key)
            _check_port_knob(topology, key, knob, value)
            found.setdefault((node, port), {})[knob] = value
    return found


def switch_config(topology: Topology, name: str) -> SwitchConfig:
    """The configuration of switch `name`. Raises ConfigError for an unknown name or wrong settings."""
    usid = topology.own_usid(name)
    settings = switch_settings(topology)
    dscp = code_points(topology)
    ev_order = wire_options(topology).ev_order
    bdp_bytes = topology.plane_bdp_bytes
    ends = topology.ports(name)
    usual = tuple(
        settings.egress(
            end.towards,
            bdp_bytes,
            rate_bps=end.rate_bps,
            delay_ns=end.delay_ns,
            dscp=dscp,
            ev_order=ev_order,
            seed=topology.seed,
        )
        for end in ends
    )
    ecmp = ecmp_config(topology, name, settings) if settings.forwarding == "ecmp" else None
    routing = routing_config(topology, name, settings) if ecmp is not None and settings.routing == "bgp" else None
    if ecmp is not None and routing is not None:
        ecmp = learned_config(topology, name, ecmp)
    special = port_settings(topology)
    lossless = lossless_config(topology, settings, ends) if settings.lossless == "pfc" else None
    if lossless is not None:
        usual = tuple(_of_classes(port, settings, lossless) for port in usual)
    credited = settings.lossless == "credits"
    if credited:
        usual = tuple(credit_port(topology, settings, end) for end in ends)
    ports = tuple(_with(port, special.get((name, number), {})) for number, port in enumerate(usual))
    adjacency = settings.adjacency and settings.forwarding == "usid"
    return SwitchConfig(
        name=name,
        usid=usid,
        block=topology.usid_block,
        fib=topology.fib(name) if settings.forwarding == "usid" else {},
        ports=ports,
        dscp=dscp,
        hop_limit_per_shift=settings.hop_limit_per_shift,
        route_foreign=settings.route_foreign,
        towards=tuple(end.towards for end in ends),
        peers=tuple(end.peer for end in ends),
        adjacency={adjacency_usid(end.port): end.port for end in ends} if adjacency else {},
        ecmp=ecmp,
        lossless=lossless,
        lft=lft_config(topology, name, settings) if credited else None,
        credits=credit_config(settings, ends) if credited else None,
        routing=routing,
    )


def lossless_config(topology: Topology, settings: SwitchSettings, ends: Sequence[PortLink]) -> LosslessConfig:
    """The buffer and the pauses of a switch with these ports. Raises ConfigError for settings that cannot be kept."""
    classes = lossless_classes(settings.pfc_classes)
    assert classes is not None, "SwitchSettings has checked it"
    packet_bytes = topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES
    for end in ends:
        shortest_ns = 2 * serialization_ns(packet_bytes + OVERHEAD_BYTES + len(classes) * PFC_WIRE_BYTES, end.rate_bps)
        if pause_ns(settings.pfc_quanta, end.rate_bps) < shortest_ns:
            least = quanta_of(shortest_ns, end.rate_bps)
            what = f"{settings.pfc_quanta} end before the pause can be repeated at {end.link}"
            raise ConfigError("switch.pfc_quanta", what, f"at least {least}")
    try:
        buffer = BufferConfig(
            bytes_total=settings.buffer_bytes,
            headroom_bytes=tuple(_headroom(topology, settings, end, len(classes), packet_bytes) for end in ends),
            lossless=classes,
            frame_bytes_max=packet_bytes,
            reserved_bytes=settings.pfc_reserved_bytes,
            xoff_bytes=settings.pfc_xoff_bytes if settings.pfc_threshold == "static" else 0,
            alpha_shift=settings.pfc_alpha_shift,
            xon_offset_bytes=settings.pfc_xon_offset_bytes,
        )
    except ConfigError as error:
        reserved, xoff = settings.pfc_reserved_bytes, settings.pfc_xoff_bytes
        if error.where == "buffer.reserved_bytes":
            raise out_of_order("switch.pfc_reserved_bytes", reserved, "switch.pfc_xoff_bytes", xoff) from None
        also = ("switch.pfc_headroom", "switch.pfc_reserved_bytes", "switch.pfc_classes")
        hint = f"raise switch.buffer_bytes, or lower {', '.join(also[:2])} or the number of {also[2]}"
        raise ConfigError("switch.buffer_bytes", error.what, hint, also) from None
    return LosslessConfig(buffer, settings.pfc_quanta, settings.pfc_watchdog_ns, settings.pfc_watchdog_restore_ns)


def headrooms(topology: Topology, name: str) -> list[tuple[int, int]]:
    """By port of switch `name`: headroom of a lossless class as configured, and the exact one; empty: not lossless.

    Raises ConfigError for an unknown name or wrong settings.
    """
    settings = switch_settings(topology)
    classes = lossless_classes(settings.pfc_classes)
    if settings.lossless != "pfc" or classes is None:
        return []
    kinds = settings, dataclasses.replace(settings, pfc_headroom="exact")
    packet_bytes = topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES
    found = (
        [_headroom(topology, kind, end, len(classes), packet_bytes) for kind in kinds] for end in topology.ports(name)
    )
    return [(configured, exact) for configured, exact in found]


def _headroom(topology: Topology, settings: SwitchSettings, end: PortLink, classes: int, packet_bytes: int) -> int:
    """Headroom of one lossless class of a port, in bytes."""
    if settings.pfc_headroom == "exact":
        delays_ns = end.delay_ns + end.incoming_delay_ns
        return exact_headroom(end.rate_bps, delays_ns, packet_bytes + OVERHEAD_BYTES, classes)
    if settings.pfc_headroom == "deployed":
        return deployed_headroom(end.rate_bps, topology.mtu_bytes, settings.pfc_cable_metres)
    return int(settings.pfc_headroom)


def _of_classes(port: EgressConfig, settings: SwitchSettings, lossless: LosslessConfig) -> ClassEgressConfig:
    """The same port with eight classes; lossless ones may hold what the buffer holds."""
    given = {item.name: getattr(port, item.name) for item in dataclasses.fields(port)}
    strict, weights = strict_classes(settings.class_strict), class_weights(settings.class_weights)
    assert strict is not None, "SwitchSettings has checked it"
    assert weights is not None
    plain = ClassEgressConfig(**given, strict=strict, weights=weights)
    limits = tuple(
        settings.buffer_bytes if cls in lossless.buffer.lossless else limit for cls, limit in enumerate(plain.limits)
    )
    return dataclasses.replace(
        plain, bytes_max=limits, data_class=lossless.buffer.lossless[0], pause_event_ns=settings.pfc_event_ns
    )


def ecmp_config(topology: Topology, name: str, settings: SwitchSettings) -> EcmpConfig:
    """The table by NIC addresses of switch `name`, and how it hashes."""
    tier, _, index = topology.parse_node(name)
    ends = topology.ports(name)
    below = tuple(end.port for end in ends if end.towards == ("nic" if tier == "t0" else "t0"))
    own = (name,) if settings.ecmp_seed == "per_switch" else ()
    return EcmpConfig(
        nics=topology.nics,
        first=index * topology.nics_per_t0 if tier == "t0" else 0,
        down=below,
        nics_per_port=1 if tier == "t0" else topology.nics_per_t0,
        up=tuple(end.port for end in ends if end.port not in below),
        seed=seed_of(topology.seed, "ecmp", *own),
        common_seed=seed_of(topology.seed, "ecmp"),
        crc=settings.ecmp_hash == "crc",
        resilient=settings.ecmp_resilient,
        failover_ns=settings.ecmp_failover_ns if settings.ecmp_failover else -1,
    )


def _with(port: EgressConfig, special: Mapping[str, Setting]) -> EgressConfig:
    return dataclasses.replace(port, **special) if special else port  # type: ignore[arg-type]


def _port_key(topology: Topology, key: str) -> tuple[str, int, str]:
    """(switch, port, knob) of NODE.PORT.KNOB. Raises ConfigError."""
    node, _, rest = key.partition(".")
    number, _, knob = rest.partition(".")
    where = f"switch.{shown(key)}"
    if not (number.isascii() and number.isdecimal()) or not knob:
        raise ConfigError(where, "no such setting", "a setting of one port is NODE.PORT.KNOB, as p0-t0-1.3.trim")
    try:
        topology.own_usid(node)
    except ConfigError as error:
        raise ConfigError(where, str(error)) from None
    count = len(topology.ports(node))
    if int(number) >= count:
        raise ConfigError(where, f"{node} has no port {int(number)}", f"its ports are 0 to {count - 1}")
    if knob not in PORT_KNOBS:
        raise ConfigError(where, f"no setting of a port is called {shown(knob)}", nearest_hint(knob, PORT_KNOBS))
    return node, int(number), knob


def _check_port_knob(topology: Topology, key: str, knob: str, value: Setting) -> None:
    if type(value) is not PORT_KNOBS[knob]:
        wanted = "true or false" if PORT_KNOBS[knob] is bool else "a whole number"
        raise misfit(f"switch.{key}", value, wanted)
    dscp = code_points(topology)
    if knob == "trim_dscp" and value not in (dscp.trimmed, dscp.trimmed_lasthop):
        raise ConfigError(
            f"switch.{key}", f"{value} does not say trimmed here", f"{dscp.trimmed} or {dscp.trimmed_lasthop}"
        )
