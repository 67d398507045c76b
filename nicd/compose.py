"""From a topology to the configuration of one NIC's core: its name and number, its ports, its paths, its settings.

The one place that turns figures of the topology into settings of a NIC. `nicd.core.settings` gives the settings their
meaning; the daemon's configuration file has the daemon's own figures (sockets, clock, folders).
"""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial

from mrcfabric.class_egress_config import ClassEgressConfig
from mrcfabric.egress_config import EgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.naming import nic_name
from mrcfabric.paths import PathTable
from mrcfabric.pause_spells import PAUSE_EVENT_NS
from mrcfabric.settings import settings_from
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, PortLink, Topology
from mrcfabric.turns import TurnTable
from mrcfabric.vl_settings import CreditKnobs, credited_port
from mrcfabric.wire.dscp import traffic_class_of_dscp
from mrcfabric.wire_settings import code_points, wire_options
from nicd.core.rc.out_of_order import OUT_OF_ORDER_PSNS
from nicd.core.rc.selective import selective_packets, selective_window
from nicd.core.settings import NicConfig, NicSettings

_PORT = EgressConfig()
ACTIVE_FLOOR_SHARE = 8
"""One in this many EVs always stays active: with the smallest profile and eight planes, one in each plane."""

TOPOLOGY_FIGURES = {"mtu_bytes": "mtu_bytes", "evs_active": "evs_per_qp", "evs_reserve": "reserve_evs_per_qp"}
"""Settings that switches, workloads and reports use too: they have one source, the topology's field."""


def nic_settings(topology: Topology) -> NicSettings:
    """The settings of every NIC of the fabric. Raises ConfigError that names `nic.KEY`."""
    for knob, figure in TOPOLOGY_FIGURES.items():
        if knob in topology.nic:
            raise ConfigError(f"nic.{knob}", "is a figure of the whole topology", f"set {figure} instead")
    derived = {
        "mtu_bytes": topology.mtu_bytes,
        "base_rtt_ns": topology.base_rtt_ns(),
        "base_rtt_near_ns": topology.base_rtt_ns(same_t0=True),
        "evs_active": topology.evs_per_qp,
        "evs_reserve": topology.reserve_evs_per_qp,
        "ev_min_active": topology.evs_per_qp // ACTIVE_FLOOR_SHARE,
    }
    settings = settings_from(NicSettings, topology.nic, "nic", derived)
    if settings.transport == "rc" and settings.rc_recovery == "selective" and "rc_psns_max" not in topology.nic:
        # Of the fastest port, so that no receiver keeps track of fewer packets than its sender may send.
        line_bps = max((topology.rate_bps, *topology.link_rates_bps.values()))
        return replace(settings, rc_psns_max=_table_of(settings, line_bps))
    if settings.rc_recovery == "out_of_order" and "rc_psns_max" not in topology.nic:
        return replace(settings, rc_psns_max=OUT_OF_ORDER_PSNS)
    return settings


def _table_of(settings: NicSettings, line_bps: int) -> int:
    """Packets that a QP with selective recovery may have in flight."""
    window = settings.rc_window_bytes or selective_window(
        line_bps, settings.base_rtt_ns, settings.mtu_bytes, settings.rc_ack_every
    )
    return selective_packets(window, settings.mtu_bytes)


def nic_config(topology: Topology, name: str) -> NicConfig:
    """The configuration of NIC `name`. Raises ConfigError for an unknown name or wrong settings."""
    index = topology.nic_index(name)
    settings = nic_settings(topology)
    options = wire_options(topology)
    dscp = code_points(topology)
    # The core holds packets back itself, so its port's queue must never drop one.
    room = settings.port_queue_bytes_max + 2 * (settings.mtu_bytes + DATA_PACKET_EXTRA_BYTES)
    kind: Callable[..., EgressConfig] = EgressConfig
    if topology.switch.get("lossless") == "pfc":
        data = settings.rc_data_dscp if settings.transport == "rc" else dscp.trimmable
        kind = partial(
            ClassEgressConfig,
            data_class=traffic_class_of_dscp(dscp)[data],
            pause_event_ns=topology.switch.get("pfc_event_ns", PAUSE_EVENT_NS),  # type: ignore[arg-type]
        )
    if topology.switch.get("lossless") == "credits":
        ports = tuple(_credited(topology, settings, end) for end in topology.ports(name))
        return _config(topology, index, settings, ports)
    ports = tuple(
        kind(
            rate_bps=end.rate_bps,
            delay_ns=end.delay_ns,
            data_bytes_max=max(_PORT.data_bytes_max, room),
            ev_order=options.ev_order,
            seed=topology.seed,
        )
        for end in topology.ports(name)
    )
    return _config(topology, index, settings, ports)


def _credited(topology: Topology, settings: NicSettings, end: PortLink) -> EgressConfig:
    """A port on InfiniBand. Its VLs are those of the switches; packets never grow too old in a NIC."""
    names = {field.name for field in fields(CreditKnobs)}
    given = {key: value for key, value in topology.switch.items() if key in names}
    knobs = settings_from(CreditKnobs, given, "switch")
    return credited_port(
        knobs, rate_bps=end.rate_bps, delay_ns=end.delay_ns, seed=topology.seed, mtu_bytes=settings.mtu_bytes,
        sl=settings.lid_sl,
    )  # fmt: skip


def _config(topology: Topology, index: int, settings: NicSettings, ports: tuple[EgressConfig, ...]) -> NicConfig:
    return NicConfig(
        name=nic_name(index),
        index=index,
        address=topology.nic_address(index),
        ports=ports,
        paths=PathTable(topology, index),
        dscp=code_points(topology),
        settings=settings,
        options=wire_options(topology),
        seed=topology.seed,
        turns=TurnTable(topology, index),
    )
