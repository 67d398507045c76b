"""The settings of a topology that all its nodes must share byte for byte: the wire's options and the code points.

Owns the spelling of the tables `wire` and `dscp` of a topology. `mrcfabric.wire.options` and `mrcfabric.wire.dscp` give
the choices their meaning. MRC 1.0 7.5.5.2 (port), 7.5.5 (halves of the EV).
"""

from typing import Any

from mrcfabric.errors import ConfigError
from mrcfabric.settings import settings_from
from mrcfabric.topology import Topology
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.entropy import EvOrder
from mrcfabric.wire.options import DEFAULT_OPTIONS, LMC_MAX, WireOptions

_EV_ORDERS = {order.name.lower(): order for order in EvOrder}


def wire_options(topology: Topology) -> WireOptions:
    """The options of the fabric's wire: the defaults, overridden by the table `wire`.

    Raises ConfigError that names `wire.KEY`. `ev_order` is `port_low` or `port_high`. Receivers accept the usual two
    ports and `udp_port`. Whether packets begin with an LRH is the NICs' setting.
    """
    raw: dict[str, Any] = dict(topology.wire)
    if "lid_lmc" in raw:
        raise ConfigError("wire.lid_lmc", "follows from nic.rc_path and nic.lid_lmc", "set nic.lid_lmc instead")
    if "udp_ports_accepted" in raw:
        raise ConfigError("wire.udp_ports_accepted", "follows from udp_port", "the usual two ports, and the one set")
    derived: dict[str, Any] = {}
    lmc = topology.nic.get("lid_lmc", 0)
    # What is no LMC is refused by the NICs' settings, by its name there.
    if topology.nic.get("rc_path") == "lid" and type(lmc) is int and 0 <= lmc <= LMC_MAX:
        derived["lid_lmc"] = lmc
    if "ev_order" in raw:
        derived["ev_order"] = _ev_order(raw.pop("ev_order"))
    port = raw.get("udp_port")
    if type(port) is int and port not in DEFAULT_OPTIONS.udp_ports_accepted:
        derived["udp_ports_accepted"] = (*DEFAULT_OPTIONS.udp_ports_accepted, port)
    return settings_from(WireOptions, raw, "wire", derived)


def code_points(topology: Topology) -> Dscp:
    """The code points of the fabric's traffic classes. Raises ConfigError that names `dscp.ROLE`."""
    return settings_from(Dscp, topology.dscp, "dscp")


def _ev_order(value: object) -> EvOrder:
    order = _EV_ORDERS.get(value) if isinstance(value, str) else None
    if order is None:
        raise ConfigError("wire.ev_order", f"{value!r} is no order of the halves", "one of " + ", ".join(_EV_ORDERS))
    return order
