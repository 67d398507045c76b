"""From a seed to a case of the second series: any system, what it has to carry, and what breaks.

Topologies, workloads and faults are drawn as in `swarm.draw`, from streams of their own; there are more NICs per port,
for an RC QP has one port and one path, and what is worth a look happens where several meet.
"""

from typing import Any, Final

from mrcfabric.rng import PPM, Rng
from mrcfabric.topology import Topology
from nicd.compose import nic_settings
from nicd.core.uet.qp_table import TIMEOUT_UNIT_NS
from swarm.breakage import KINDS
from swarm.case import SYSTEMS, Case
from swarm.draw import draw_faults, draw_flows, one_of, second_lives
from swarm.systems.breakage import HASH_KINDS, OF_EVS, PAUSE_KINDS
from swarm.systems.settings import STREAM, draw_system
from swarm.terms import draw_terms

PACKETS_MAX: Final = 500
"""Data packets of a case, give or take a message; some of them are sent many times."""


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = Rng(STREAM, seed, "topology")
    topology = draw_system(Rng(STREAM, seed, "settings"), _topology(rng, seed), seed)
    if rng.chance(PPM // 8):
        names = [link.name for link in topology.links()]
        slow = topology.rate_bps // one_of(rng, (2, 4, 10))
        topology = Topology.from_dict({**topology.to_dict(), "link_rates_bps": {one_of(rng, names): slow}})
    transport = str(topology.nic.get("transport", "mrc"))
    terms = {"rc": draw_rc_terms, "uet": draw_uet_terms}.get(transport, draw_terms)
    flows = draw_flows(Rng(STREAM, seed, "flows"), topology, PACKETS_MAX, terms)
    rng = Rng(STREAM, seed, "faults")
    paused = topology.switch.get("lossless") == "pfc"
    hashed = topology.switch.get("forwarding") == "ecmp"
    kinds = {**KINDS, **(PAUSE_KINDS if paused else {}), **(HASH_KINDS if hashed else {})}
    if transport != "mrc":
        kinds = {name: kind for name, kind in kinds.items() if name not in OF_EVS}
    faults = draw_faults(rng, topology, flows, kinds)
    if paused and rng.chance(PPM // 3):
        faults = sorted([*faults, *draw_faults(rng, topology, flows, PAUSE_KINDS)], key=lambda fault: fault.at_ns)
    flows += second_lives(rng, topology, flows, faults, terms)
    unruly = rng.chance(PPM // 10)
    copies, delays, harms = (one_of(rng, (0, 1_000, 20_000, 100_000)) for _ in range(3)) if unruly else (0, 0, 0)
    return Case(f"seed {seed}", topology, flows, faults, copies, delays, harms // 10, series=SYSTEMS)


def _topology(rng: Rng, seed: int) -> Topology:
    planes = one_of(rng, (1, 1, 2, 2, 3, 4))
    t0 = one_of(rng, (1, 2, 2, 2, 3))
    return Topology(
        name="swarm",
        planes=planes,
        t0_per_plane=t0,
        t1_per_plane=one_of(rng, (1, 2, 2, 3, 4)),
        nics_per_t0=one_of(rng, (2, 3, 4)) if t0 == 1 else one_of(rng, (1, 2, 2, 3)),
        rate_bps=one_of(rng, (10, 25, 40, 100, 100, 200, 400)) * 1_000_000_000,
        link_delay_ns=one_of(rng, (100, 300, 500, 1_000, 1_000, 5_000)),
        mtu_bytes=one_of(rng, (256, 1024, 2048, 4096, 4096)),
        evs_per_qp=planes * one_of(rng, (1, 4, 8)),
        reserve_evs_per_qp=planes * one_of(rng, (0, 1, 4)),
        seed=f"{STREAM} {seed}",
    )


def draw_rc_terms(rng: Rng, topology: Topology) -> dict[str, dict[str, Any]]:
    """What the two ends of an RC QP pair ask for beside the settings: time-out and retries; often nothing."""
    if rng.chance(PPM * 2 // 3):
        return {}
    return {side: {"offer": {}, "timers": _timers(rng)} for side in ("a", "b")}


def draw_uet_terms(rng: Rng, topology: Topology) -> dict[str, dict[str, Any]]:
    """The same of UET."""
    if rng.chance(PPM * 2 // 3):
        return {}
    least = (nic_settings(topology).tail_probe_ns // TIMEOUT_UNIT_NS).bit_length()
    found = {}
    for side in ("a", "b"):
        timers: dict[str, Any] = {}
        if rng.chance(PPM // 3):
            timers["timeout_exponent"] = min(20, least + rng.below(4))
        if rng.chance(PPM // 3):
            timers |= {"retry_linear": rng.below(8), "retry_exponential": rng.below(12)}
        found[side] = {"offer": {}, "timers": timers}
    return found


def _timers(rng: Rng) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if rng.chance(PPM // 2):
        found["timeout_exponent"] = 2 + rng.below(7)
    if rng.chance(PPM // 2):
        found["retry_linear"] = rng.below(8)
    return found
