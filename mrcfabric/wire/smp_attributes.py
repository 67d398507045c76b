"""What subnet management packets carry: attributes of nodes, switches and ports, as tables.

Sources: IBTA 14.2.5.3 (NodeInfo), 14.2.5.4 (SwitchInfo), 14.2.5.6 (PortInfo), 14.2.5.13 (SMInfo), 13.4.8.2 (Notice),
14.2.5.1 (traps).
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from mrcfabric.wire.header import Field, Header, Kind, reserved

LINK_STATE_CHANGE: Final = 128
"""The trap of a switch of which a port has gone up or down."""
URGENT: Final = 1


@dataclass(slots=True)
class NodeInfo(Header):
    """Who a node is, 40 bytes."""

    NAME: ClassVar[str] = "NodeInfo"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("base_version", 8),
        Field("class_version", 8),
        Field("node_type", 8),
        Field("ports", 8),
        Field("system_guid", 64),
        Field("node_guid", 64),
        Field("port_guid", 64),
        Field("partition_cap", 16),
        Field("device_id", 16),
        Field("revision", 32),
        Field("local_port", 8),
        Field("vendor_id", 24),
    )

    node_type: int
    ports: int
    system_guid: int
    node_guid: int
    port_guid: int
    local_port: int
    """The one on which the request came."""
    partition_cap: int = 1
    device_id: int = 0
    revision: int = 0
    vendor_id: int = 0
    base_version: int = 1
    class_version: int = 1


@dataclass(slots=True)
class SwitchInfo(Header):
    """What a switch can do, 17 bytes."""

    NAME: ClassVar[str] = "SwitchInfo"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("linear_cap", 16),
        Field("random_cap", 16),
        Field("multicast_cap", 16),
        Field("linear_top", 16),
        Field("default_port", 8),
        Field("multicast_primary", 8),
        Field("multicast_other", 8),
        Field("life_time", 5),
        Field("port_state_change", 1),
        Field("optimised_sl2vl", 2),
        Field("lids_per_port", 16),
        Field("enforcement_cap", 16),
        Field("enforcement", 4),
        Field("enhanced_port_0", 1),
        reserved(3),
    )

    linear_cap: int
    """Entries that its table can have."""
    linear_top: int = 0
    """The highest LID of which the table says something."""
    port_state_change: int = 0
    """A port has gone up or down since a manager wrote 1 here."""
    random_cap: int = 0
    multicast_cap: int = 0
    default_port: int = 0
    multicast_primary: int = 0
    multicast_other: int = 0
    life_time: int = 0
    optimised_sl2vl: int = 0
    lids_per_port: int = 0
    enforcement_cap: int = 0
    enforcement: int = 0
    enhanced_port_0: int = 0


@dataclass(slots=True)
class PortInfo(Header):
    """How a port stands, 60 bytes."""

    NAME: ClassVar[str] = "PortInfo"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("m_key", 64),
        Field("gid_prefix", 64),
        Field("lid", 16),
        Field("master_sm_lid", 16),
        Field("capabilities", 32),
        reserved(32),
        Field("local_port", 8),
        Field("width_enabled", 8),
        Field("width_supported", 8),
        Field("width_active", 8),
        Field("speed_supported", 4),
        Field("state", 4),
        Field("physical_state", 4),
        Field("down_default", 4),
        Field("m_key_protect", 2),
        reserved(3),
        Field("lmc", 3),
        Field("speed_active", 4),
        Field("speed_enabled", 4),
        Field("neighbour_mtu", 4),
        Field("master_sm_sl", 4),
        Field("vl_cap", 4),
        Field("init_type", 4),
        Field("vl_high_limit", 8),
        Field("vl_high_cap", 8),
        Field("vl_low_cap", 8),
        Field("init_reply", 4),
        Field("mtu_cap", 4),
        Field("vl_stall_count", 3),
        Field("head_life", 5),
        Field("operational_vls", 4),
        Field("enforcement", 4),
        reserved(48),
        Field("guid_cap", 8),
        Field("reregister", 1),
        reserved(2),
        Field("subnet_timeout", 5),
        reserved(3),
        Field("response_time", 5),
        Field("phy_errors", 4),
        Field("overrun_errors", 4),
        Field("credit_hint", 16),
        reserved(8),
        Field("round_trip", 24),
    )

    lid: int
    state: int
    local_port: int
    lmc: int = 0
    master_sm_lid: int = 0
    head_life: int = 0
    vl_stall_count: int = 0
    vl_high_limit: int = 0
    subnet_timeout: int = 0x12
    m_key: int = 0
    gid_prefix: int = 0xFE80 << 48
    capabilities: int = 0
    width_enabled: int = 2
    width_supported: int = 2
    """4x."""
    width_active: int = 2
    speed_supported: int = 1
    physical_state: int = 5
    down_default: int = 2
    m_key_protect: int = 0
    speed_active: int = 1
    speed_enabled: int = 1
    neighbour_mtu: int = 5
    """4,096 bytes."""
    master_sm_sl: int = 0
    vl_cap: int = 0
    init_type: int = 0
    vl_high_cap: int = 64
    vl_low_cap: int = 64
    init_reply: int = 0
    mtu_cap: int = 5
    operational_vls: int = 0
    enforcement: int = 0
    guid_cap: int = 1
    reregister: int = 0
    response_time: int = 0
    phy_errors: int = 0
    overrun_errors: int = 0
    credit_hint: int = 0
    round_trip: int = 0


@dataclass(slots=True)
class SmInfo(Header):
    """How a subnet manager stands, 21 bytes."""

    NAME: ClassVar[str] = "SMInfo"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("guid", 64),
        Field("sm_key", 64),
        Field("act_count", 32),
        Field("priority", 4),
        Field("state", 4),
    )

    guid: int
    act_count: int
    """Grows while the manager lives."""
    priority: int
    state: int
    """0 not active, 1 discovering, 2 standby, 3 master."""
    sm_key: int = 0


@dataclass(slots=True)
class Notice(Header):
    """What a trap says, 64 bytes."""

    NAME: ClassVar[str] = "Notice"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("generic", 1),
        Field("kind", 7),
        Field("producer", 24),
        Field("trap", 16),
        Field("issuer_lid", 16),
        Field("toggle", 1),
        Field("count", 15),
        Field("details", 54 * 8, Kind.ADDRESS),
    )

    trap: int
    issuer_lid: int
    details: bytes = bytes(54)
    producer: int = 2
    kind: int = URGENT
    generic: int = 1
    toggle: int = 0
    count: int = 0
