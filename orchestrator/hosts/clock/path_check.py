"""Judges whether frames get from host to host, from the measured paths of a fabric that is about to start.

Owns the judgement and its words. `orchestrator.hosts.clock.path_probe` measures, and
`orchestrator.hosts.clock.host_pairs` keeps the results.
"""

from collections.abc import Callable, Mapping
from typing import Final

from mrcfabric.errors import ConfigError
from orchestrator.hosts.clock.host_pairs import HostPairs
from orchestrator.hosts.clock.path_probe import Path
from orchestrator.hosts.placement.frames import what_fits
from orchestrator.hosts.placement.layout import Layout

PAIRS_SHOWN: Final = 4


def judge(layout: Layout, between: HostPairs, warn: Callable[[str], None]) -> dict[tuple[int, int], int]:
    """(host, other host) -> the largest packet that goes there in one piece, for pairs where frames are longer.

    `warn` is told of those pairs. All pairs of hosts with links between them must have been measured. Raises
    ConfigError for a path on which frames do not arrive.
    """
    cut = {}
    for here, there in sorted(layout.host_pairs()):
        path = between.path(here, there)
        assert path is not None, "measure first"
        mtu = _checked(layout, here, there, path)
        if mtu < layout.frame_bytes:
            cut[here, there] = mtu
    if cut:
        warn(_warning(layout, cut))
    return cut


def _warning(layout: Layout, cut: Mapping[tuple[int, int], int]) -> str:
    names = [site.name for site in layout.sites.sites]
    pairs = sorted({(min(pair), max(pair)) for pair in cut})
    shown = ", ".join(f"{names[one]} and {names[other]}" for one, other in pairs[:PAIRS_SHOWN])
    more = f" and {len(pairs) - PAIRS_SHOWN} pairs more" if len(pairs) > PAIRS_SHOWN else ""
    mtu = min(cut.values())
    return (
        f"frames of {layout.frame_bytes:,} bytes go in fragments, which costs pace, between {shown}{more}, where "
        f"{mtu:,} bytes pass in one piece: {what_fits(mtu, layout.sites.ip_version)}"
    )


def _checked(layout: Layout, here: int, there: int, path: Path) -> int:
    """The MTU of a path, if frames arrive on it. Raises ConfigError if not."""
    sites = layout.sites
    one, other = sites.sites[here], sites.sites[there]
    where = f"hosts {one.name} and {other.name}"
    if path.mtu is None:
        address, port = layout.probe_addresses()[there]
        hint = "UDP between the data addresses must pass, at the ports of the fabric's block"
        raise ConfigError(where, f"no datagram from {one.data} arrives at {address}, port {port}", hint)
    fits = what_fits(path.mtu, sites.ip_version)
    told = min((site.mtu for site in (one, other) if site.mtu is not None), default=None)
    if told is not None and path.mtu < told:
        what = f"the inventory tells an mtu of {told:,}, from {one.name} to {other.name} pass {path.mtu:,} bytes"
        raise ConfigError(where, what, f"tell mtu: {path.mtu}, for which {fits}")
    if path.mtu < layout.frame_bytes and not path.cut:
        what = f"from {one.name} to {other.name} pass {path.mtu:,} bytes, frames take {layout.frame_bytes:,}"
        raise ConfigError(where, f"{what}, and fragments of them are lost", fits)
    return path.mtu
