"""Kinds of breakage that only fabrics with pauses have, and the table of all kinds of this series.

What strikes a fabric of MRC strikes these too, but for what concerns EVs. The table of MRC's kinds stays as it is: its
order is part of what a seed of the first series draws.
"""

from collections.abc import Sequence
from typing import Final

from mrcfabric.errors import ConfigError
from mrcfabric.rng import PPM, Rng
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from swarm.breakage import KINDS, Kind, Stage, inject
from swarm.case import Fault, Flow

OF_EVS: Final = frozenset({"deny_ev", "deny_plane", "self_probes"})
"""Kinds that a transport without EVs does not know."""
TO_LINKS: Final = frozenset({"link_down", "pfc_loss"})
TO_PORTS: Final = frozenset({"one_way", "impaired"})
TO_NODES: Final = frozenset({"switch_crash", "nic_crash", "frozen", "wrong_headroom"})


def _storm(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    names = list(topology.nic_names())
    return [Fault("pause_storm", names[rng.below(len(names))], at_ns, until_ns, rng.below(topology.planes))]


def _slow(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    """Value: the share of a port's rate, in per cent, and a size of the buffer."""
    names = list(topology.nic_names())
    value = (1 + rng.below(99)) | rng.below(1 << 16) << 8
    return [Fault("slow_receiver", names[rng.below(len(names))], at_ns, until_ns, value)]


def _pfc_loss(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    names = [link.name for link in topology.links()]
    ppm = (50_000, 300_000, PPM)[rng.below(3)]
    return [Fault("pfc_loss", names[rng.below(len(names))], at_ns, until_ns, ppm)]


def _headroom(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    """Value: what is left of the exact headroom, per million."""
    names = list(topology.switch_names())
    return [Fault("wrong_headroom", names[rng.below(len(names))], at_ns, until_ns, 1 + rng.below(PPM))]


def _hash(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    names = list(topology.switch_names())
    return [Fault("polarised_hash", names[rng.below(len(names))], at_ns, until_ns)]


def _strike_headroom(stage: Stage, fault: Fault, at_ns: Instant) -> None:
    try:
        inject(stage, fault, at_ns, "wrong_headroom", fault.target, of_exact_ppm=fault.value)
    except ConfigError:
        # The settings give some port less already.
        return


def _strike_hash(stage: Stage, fault: Fault, at_ns: Instant) -> None:
    inject(stage, fault, at_ns, "polarised_hash", fault.target)


def _strike_storm(stage: Stage, fault: Fault, at_ns: Instant) -> None:
    inject(stage, fault, at_ns, "pause_storm", f"{fault.target}:{fault.value}")


def _strike_slow(stage: Stage, fault: Fault, at_ns: Instant) -> None:
    rate_bps = stage.fabric.topology.rate_bps * (fault.value & 0xFF) // 100
    inject(stage, fault, at_ns, "slow_receiver", fault.target, rate_bps=rate_bps, buffer_bytes=fault.value >> 8)


def _strike_pfc_loss(stage: Stage, fault: Fault, at_ns: Instant) -> None:
    inject(stage, fault, at_ns, "pfc_loss", fault.target, share_ppm=fault.value)


PAUSE_KINDS: Final[dict[str, Kind]] = {
    "pause_storm": Kind(_storm, _strike_storm),
    "slow_receiver": Kind(_slow, _strike_slow),
    "pfc_loss": Kind(_pfc_loss, _strike_pfc_loss),
    "wrong_headroom": Kind(_headroom, _strike_headroom),
}
HASH_KINDS: Final[dict[str, Kind]] = {"polarised_hash": Kind(_hash, _strike_hash)}
ALL_KINDS: Final[dict[str, Kind]] = {**KINDS, **PAUSE_KINDS, **HASH_KINDS}


def links_struck(fault: Fault, topology: Topology) -> set[str]:
    """The links on which a mishap may lose, delay or forget a pause, or leave no room for what comes after one."""
    if fault.kind in TO_LINKS:
        return {fault.target}
    if fault.kind in TO_PORTS:
        return {topology.ports(fault.target)[fault.value & 0xFF].link}
    if fault.kind == "nic_port":
        return {topology.ports(fault.target)[fault.value].link}
    if fault.kind in TO_NODES:
        return {end.link for end in topology.ports(fault.target)}
    return set()
