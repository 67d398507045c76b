"""From a topology to the configuration of one switch's core: its uSID, its static table, its ports.

The one place that turns figures of the topology into bytes and nanoseconds of a switch. `switchd.core.settings` gives
the settings their meaning; the daemon's configuration file has the daemon's own figures (sockets, clock, folders).

Settings under `switch:` hold for every switch. One whose key is NODE.PORT.KNOB, as `p0-t0-1.3.trim: false`, holds for
one port: `trim` (off: it drops), `ecn`, `trim_dscp` (one of the fabric's two code points for trimmed packets).
"""

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Final

from mrcfabric.egress_config import EgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.naming import adjacency_usid, shown
from mrcfabric.rng import seed_of
from mrcfabric.settings import settings_from
from mrcfabric.topology import Setting, Topology
from mrcfabric.wire_settings import code_points, wire_options
from switchd.core.forwarding.ecmp import EcmpConfig
from switchd.core.settings import SwitchConfig, SwitchSettings

PORT_KNOBS: Final[Mapping[str, type[int]]] = {"trim": bool, "ecn": bool, "trim_dscp": int}
"""The settings that one port alone can have, and their kinds."""


def switch_settings(topology: Topology) -> SwitchSettings:
    """The settings of every switch of the fabric. Raises ConfigError that names `switch.KEY`."""
    port_settings(topology)
    of_all = {key: value for key, value in topology.switch.items() if "." not in key}
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
    special = port_settings(topology)
    ports = tuple(_with(port, special.get((name, number), {})) for number, port in enumerate(usual))
    return SwitchConfig(
        name=name,
        usid=usid,
        block=topology.usid_block,
        fib={} if ecmp else topology.fib(name),
        ports=ports,
        dscp=dscp,
        hop_limit_per_shift=settings.hop_limit_per_shift,
        route_foreign=settings.route_foreign,
        towards=tuple(end.towards for end in ends),
        peers=tuple(end.peer for end in ends),
        adjacency={adjacency_usid(end.port): end.port for end in ends} if settings.adjacency and not ecmp else {},
        ecmp=ecmp,
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
        close = difflib.get_close_matches(knob, PORT_KNOBS, n=1, cutoff=0.5) or list(PORT_KNOBS)
        raise ConfigError(where, f"no setting of a port is called {shown(knob)}", "nearest is " + ", ".join(close))
    return node, int(number), knob


def _check_port_knob(topology: Topology, key: str, knob: str, value: Setting) -> None:
    if type(value) is not PORT_KNOBS[knob]:
        wanted = "true or false" if PORT_KNOBS[knob] is bool else "a whole number"
        raise ConfigError(f"switch.{key}", f"{value!r} will not do", f"wanted: {wanted}")
    dscp = code_points(topology)
    if knob == "trim_dscp" and value not in (dscp.trimmed, dscp.trimmed_lasthop):
        raise ConfigError(
            f"switch.{key}", f"{value} does not say trimmed here", f"{dscp.trimmed} or {dscp.trimmed_lasthop}"
        )
