"""What the values of a topology may be: the bounds of its sizes and figures, and the names of its tables.

Owns the error for a wrong value. `mrcfabric.topology` gives the values their meaning. The readers of the tables check
what is inside them (the cores' settings, `mrcfabric.wire_settings`).
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from mrcfabric.egress_config import LINK_DELAY_NS_MIN
from mrcfabric.errors import ConfigError, misfit
from mrcfabric.latency import check_latency
from mrcfabric.naming import PLANES_MAX, USID_INDEX_MAX
from mrcfabric.quantity import WRITTEN

if TYPE_CHECKING:
    from mrcfabric.topology import Topology

TABLES: Final = ("nic", "switch", "wire", "dscp", "link_rates_bps", "latency")
"""Fields of a topology that are tables of settings."""
SIZE_MAX: Final = USID_INDEX_MAX + 1
"""Most T0s, T1s per plane and NICs per T0: eleven index bits number them."""
MTU_CHOICES: Final = (256, 512, 1024, 2048, 4096)
RATE_MIN_BPS: Final = 1_000_000
RATE_MAX_BPS: Final = 1_600_000_000_000
EVS_PER_QP_MAX: Final = 2048
_SEED: Final = re.compile("[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{1,128}")
"""Screens and reports show it in a line of theirs. A lone half of a surrogate pair is a byte that was no text."""
_FABRIC_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}", re.ASCII)


def check(topology: "Topology") -> None:
    """Raises ConfigError, which names the field, for the first wrong value."""
    _whole(topology, "planes", 1, PLANES_MAX)
    for size in ("t0_per_plane", "t1_per_plane", "nics_per_t0"):
        _whole(topology, size, 1, SIZE_MAX)
    _whole(topology, "rate_bps", RATE_MIN_BPS, RATE_MAX_BPS)
    _whole(topology, "link_delay_ns", LINK_DELAY_NS_MIN, 1_000_000_000)
    _whole(topology, "evs_per_qp", 1, EVS_PER_QP_MAX)
    _whole(topology, "reserve_evs_per_qp", 0, EVS_PER_QP_MAX)
    _whole(topology, "usid_block", 1, (1 << 32) - 1)
    if type(topology.mtu_bytes) is not int or topology.mtu_bytes not in MTU_CHOICES:
        raise _wrong("mtu_bytes", topology.mtu_bytes, "one of " + ", ".join(map(str, MTU_CHOICES)))
    _evs_of_planes(topology)
    dilation = topology.dilation
    if dilation != "auto" and not (type(dilation) in (int, float) and 1 <= dilation <= 1e12):
        raise _wrong("dilation", dilation, "auto or a number from 1")
    if not isinstance(topology.name, str) or not _FABRIC_NAME.fullmatch(topology.name):
        raise _wrong("name", topology.name, "lower-case letters, digits and hyphens, at most 32")
    system = topology.system
    if not isinstance(system, str) or (system and not _FABRIC_NAME.fullmatch(system)):
        raise _wrong("system", system, "lower-case letters, digits and hyphens, at most 32")
    if not isinstance(topology.seed, str) or not _SEED.fullmatch(topology.seed):
        raise _wrong("seed", topology.seed, "one line of 1 to 128 characters, none of them a control character")
    for settings in TABLES:
        if not isinstance(getattr(topology, settings), Mapping):
            raise _wrong(settings, getattr(topology, settings), "a table of settings")
    check_latency(topology.latency)
    for link, rate_bps in topology.link_rates_bps.items():
        _link_rate(topology, link, rate_bps)


def _whole(topology: "Topology", key: str, least: int, most: int) -> None:
    value = getattr(topology, key)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        written = WRITTEN.get(key.rpartition("_")[2], "")
        raise _wrong(key, value, f"a whole number from {least} to {most}{written}")


def _evs_of_planes(topology: "Topology") -> None:
    """Every plane has as many EVs as every other. Who changes the planes alone is told what goes with them."""
    planes = topology.planes
    found = {key: getattr(topology, key) for key in ("evs_per_qp", "reserve_evs_per_qp")}
    fitting = {key: max(evs - evs % planes, planes) for key, evs in found.items() if evs % planes}
    if fitting:
        key, hint = next(iter(fitting)), ", ".join(f"{one}: {evs}" for one, evs in fitting.items())
        raise ConfigError(f"topology.{key}", f"{found[key]} is no multiple of the {planes} planes", hint, ("planes",))


def _link_rate(topology: "Topology", link: object, rate_bps: object) -> None:
    key = f"link_rates_bps.{link}"
    try:
        proper = topology.parse_link(str(link)).name
    except ConfigError as error:
        raise ConfigError(f"topology.{key}", error.what, error.hint) from None
    if proper != link:
        raise _wrong(key, link, f"its name, {proper}")
    if type(rate_bps) is not int or not RATE_MIN_BPS <= rate_bps <= RATE_MAX_BPS:
        raise _wrong(key, rate_bps, f"a whole number of bits per second from {RATE_MIN_BPS} to {RATE_MAX_BPS}")


def _wrong(key: str, value: object, wanted: str) -> ConfigError:
    return misfit(f"topology.{key}", value, wanted)
