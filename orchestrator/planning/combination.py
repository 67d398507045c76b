"""Which transports, ways of forwarding and kinds of buffer go together, and where a fabric departs from its system.

The one place that refuses combinations of settings that no single node can see to be wrong: NICs know nothing of the
switches' settings, and switches nothing of the NICs'. Reads the settings as a topology has them; the cores have checked
their names and values.
"""

from collections.abc import Iterator
from typing import Any, Final

from mrcfabric import bundles
from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.topology_file import read_system
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire_settings import code_points

DEFAULTS: Final[dict[str, Any]] = {
    "nic.transport": "mrc",
    "nic.rc_path": "ecmp",
    "nic.rc_data_dscp": 26,
    "nic.rc_recovery": "go_back_n",
    "nic.cc": "dcqcn",
    "nic.sm_nics": 0,
    "switch.forwarding": "usid",
    "switch.ecmp_failover": False,
    "switch.lossless": "off",
    "switch.adaptive": "off",
    "switch.flfn": False,
    "switch.arn": False,
    "switch.routing": "static",
    "switch.pfc_classes": "3",
    "switch.class_strict": "6,7",
    "switch.ecn": True,
    "switch.trim": True,
    "switch.trim_last_hop": True,
}
"""What the settings are that a topology leaves out, as far as they matter here."""
_TRIMS: Final = ("switch.trim", "switch.trim_last_hop")
_CLASS_SHIFT: Final = 3
"""The traffic class of a data packet is its code point without the low bits."""


def departures(topology: Topology) -> list[str]:
    """Settings of the fabric's system that are others here, one line each; none for a system that does not ship.

    A file or a flag may change them, but whoever reads the system's name must be told.
    """
    if topology.system not in bundles.names():
        return []
    found = []
    for table, settings in read_system(topology.system).tables.items():
        here = getattr(topology, table)
        found += [
            f"system {topology.system} has {table}.{key} {_shown(value)}; here it is {_shown(here[key])}"
            for key, value in settings.items()
            if key in here and here[key] != value
        ]
    return found


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Chosen:
    """The settings of a topology, defaults filled in."""

    def __init__(self, topology: Topology) -> None:
        given = {"nic": topology.nic, "switch": topology.switch}
        self.said = {f"{table}.{key}": value for table, values in given.items() for key, value in values.items()}
        """Those that somebody has written down."""
        self.dscp: Dscp = code_points(topology)

    def __getitem__(self, key: str) -> Any:
        return self.said.get(key, DEFAULTS[key])

    @property
    def rc(self) -> bool:
        return bool(self["nic.transport"] == "rc")

    @property
    def uet(self) -> bool:
        return bool(self["nic.transport"] == "uet")

    def data_classes(self) -> dict[int, str]:
        """The traffic classes that data travel in, and which setting puts them there."""
        if self.rc:
            return {self["nic.rc_data_dscp"] >> _CLASS_SHIFT: "nic.rc_data_dscp"}
        roles = ("trimmable", "trimmable_retx", "no_trim")
        return {getattr(self.dscp, role) >> _CLASS_SHIFT: f"dscp.{role}" for role in roles}


def check_combination(topology: Topology) -> None:
    """Raises ConfigError, which names the setting, what it does not go with, and what would do."""
    chosen = _Chosen(topology)
    for rule in (_lids, _path, _routing, _trims, _congestion, _classes):
        for error in rule(chosen):
            raise error


def _lids(chosen: _Chosen) -> Iterator[ConfigError]:
    """InfiniBand is whole: its packets, its tables, its links."""
    parts = {"nic.transport": "rc", "nic.rc_path": "lid", "switch.forwarding": "lft", "switch.lossless": "credits"}
    there = [key for key, value in parts.items() if key != "nic.transport" and chosen[key] == value]
    if not there:
        for key, wrong in (
            ("nic.sm_nics", chosen["nic.sm_nics"]),
            ("switch.routing", chosen["switch.routing"] == "sm"),
        ):
            if wrong:
                yield ConfigError(
                    key, "subnet managers are InfiniBand's, which this fabric does not run", "leave it out"
                )
        for key in ("switch.flfn", "switch.arn"):
            if chosen[key]:
                what = "routing notices are InfiniBand's, which this fabric does not run"
                yield ConfigError(key, what, "leave it out, or system: ib")
        if chosen["nic.rc_recovery"] == "out_of_order":
            what = "out_of_order places packets of InfiniBand, which this fabric does not run"
            yield ConfigError("nic.rc_recovery", what, "nic.rc_recovery: selective, or nic.rc_path: lid")
        return
    for key, value in parts.items():
        if chosen[key] != value:
            what = f"{there[0]} {parts[there[0]]} is InfiniBand's, of which {key} {chosen[key]} is no part"
            yield ConfigError(key if key in chosen.said else there[0], what, f"{key}: {value}")
    if chosen["nic.rc_recovery"] == "selective":
        what = "selective is an extension of RoCE's packets, and nic.rc_path lid sends InfiniBand's"
        yield ConfigError("nic.rc_recovery", what, "nic.rc_recovery: out_of_order, or go_back_n")
    yield from _manager(chosen)
    if chosen["switch.arn"] and chosen["switch.adaptive"] == "off":
        what = "it tells of congestion, and with switch.adaptive off no switch can go round it"
        yield ConfigError("switch.arn", what, "switch.adaptive: packet, or switch.arn: false")
    if chosen["nic.cc"] != "none":
        where = "nic.cc" if "nic.cc" in chosen.said else "nic.rc_path"
        yield ConfigError(where, f"{chosen['nic.cc']} needs notifications, which InfiniBand has not", "nic.cc: none")


def _manager(chosen: _Chosen) -> Iterator[ConfigError]:
    """Empty tables need somebody who writes them."""
    managed, count = chosen["switch.routing"] == "sm", chosen["nic.sm_nics"]
    if managed and not count:
        what = "tables begin empty with switch.routing sm, and no NIC runs a subnet manager"
        yield ConfigError("switch.routing", what, "nic.sm_nics: 1, or switch.routing: static")


def _path(chosen: _Chosen) -> Iterator[ConfigError]:
    """Packets must be of a kind that the switches forward."""
    if chosen["switch.forwarding"] == "lft":
        return
    ecmp, pinned = chosen["switch.forwarding"] == "ecmp", chosen["nic.rc_path"] == "pinned"
    if chosen.uet and not ecmp:
        what = "plain packets of nic.transport uet have no uSIDs, and switch.forwarding usid knows nothing else"
        where = "switch.forwarding" if "switch.forwarding" in chosen.said else "nic.transport"
        yield ConfigError(where, what, "switch.forwarding: ecmp")
    if ecmp and not chosen.rc and not chosen.uet:
        what = "ecmp switches forward by NIC addresses, and packets of nic.transport mrc name their path by uSIDs"
        yield ConfigError("switch.forwarding", what, "switch.forwarding: usid, or nic.transport: rc or uet")
    if ecmp and chosen.rc and pinned:
        what = "packets that are pinned to a path have uSIDs in front, which switch.forwarding ecmp does not read"
        yield ConfigError("nic.rc_path", what, "nic.rc_path: ecmp, or switch.forwarding: usid")
    if chosen.rc and not ecmp and not pinned:
        what = "plain packets of nic.transport rc have no uSIDs, and switch.forwarding usid knows nothing else"
        # Where somebody has asked for these switches, that is the place to look at.
        where = "switch.forwarding" if "switch.forwarding" in chosen.said else "nic.transport"
        yield ConfigError(where, what, "switch.forwarding: ecmp, or nic.rc_path: pinned")


def _routing(chosen: _Chosen) -> Iterator[ConfigError]:
    """Who writes a table must know what stands in it."""
    if chosen["switch.routing"] != "bgp":
        return
    if chosen["switch.forwarding"] != "ecmp":
        what = f"bgp fills the tables of switch.forwarding ecmp, and here it is {chosen['switch.forwarding']}"
        yield ConfigError("switch.routing", what, "switch.forwarding: ecmp, or switch.routing: static")
    if chosen["switch.ecmp_failover"]:
        what = "it is for tables that stand; under switch.routing bgp a port without carrier leaves its groups anyway"
        yield ConfigError("switch.ecmp_failover", what, "switch.ecmp_failover: false, or switch.routing: static")


def _trims(chosen: _Chosen) -> Iterator[ConfigError]:
    """Who gets a trimmed packet must know what it is."""
    if not chosen.rc:
        return
    for key in _TRIMS:
        if chosen.said.get(key):
            yield ConfigError(key, "nic.transport rc does not understand trimmed packets", f"{key}: false")
    dscp, trimming = chosen["nic.rc_data_dscp"], any(chosen[key] for key in _TRIMS)
    role = chosen.dscp.role(dscp)
    if role.startswith("trimmable") and trimming:
        what = f"{dscp} is dscp.{role}, and switches trim such packets, which rc does not understand"
        yield ConfigError(
            "nic.rc_data_dscp", what, "another code point, or switch.trim and switch.trim_last_hop: false"
        )
    elif role in ("trimmed", "trimmed_lasthop", "control"):
        what = f"{dscp} is dscp.{role}, so that data would travel with control packets"
        yield ConfigError("nic.rc_data_dscp", what, "another code point, as 26")


def _congestion(chosen: _Chosen) -> Iterator[ConfigError]:
    """Who slows down must be told of congestion."""
    if not chosen.rc and chosen.said.get("nic.cc") == "dcqcn":
        what = f"dcqcn is for nic.transport rc; {chosen['nic.transport']} has a congestion control of its own"
        yield ConfigError("nic.cc", what, "leave it out, or nic.transport: rc")
    if chosen.rc and chosen["nic.cc"] == "dcqcn" and not chosen["switch.ecn"]:
        what = "no switch marks packets, and nic.cc dcqcn hears of congestion by marks alone"
        yield ConfigError("switch.ecn", what, "switch.ecn: true, or nic.cc: none")
    strict = [one.strip() for one in str(chosen["switch.class_strict"]).split(",")]
    for number, key in chosen.data_classes().items() if chosen["switch.lossless"] == "pfc" else ():
        if chosen.rc and chosen["nic.cc"] == "dcqcn" and str(number) in strict:
            what = f"class {number} of {key} is strict, and packets of a strict class are not marked for nic.cc dcqcn"
            yield ConfigError("switch.class_strict", what, "a weight in switch.class_weights, or nic.cc: none")


def _classes(chosen: _Chosen) -> Iterator[ConfigError]:
    """A lossless fabric must protect the classes that data are in."""
    if chosen["switch.lossless"] != "pfc":
        return
    text = str(chosen["switch.pfc_classes"])
    paused = {int(word) for word in text.split(",") if word.strip().isdecimal()}
    missing = {number: key for number, key in chosen.data_classes().items() if number not in paused}
    if missing:
        number, key = min(missing.items())
        classes = ",".join(str(one) for one in sorted(chosen.data_classes()))
        what = f"switch.lossless pfc pauses class {text}, and {key} puts data into class {number}, which is dropped"
        yield ConfigError(
            "switch.pfc_classes", what, f'switch.pfc_classes: "{classes}", or another code point for data'
        )
