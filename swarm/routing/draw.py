"""From a seed to a fabric that routes: its settings, what dies for good at first, and what goes wrong later.

All times follow from the settings: `quiet_ns` is how long a fabric may take until it has noticed, told and written
everything.
"""

from typing import Any, Final, NamedTuple

from mrcfabric.rng import PPM, Rng
from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_MS, NS_PER_S, Instant
from orchestrator.faults.fault import Fault, Window
from orchestrator.faults.kinds import OF_ROUTING
from swarm.draw import one_of

STREAM: Final = "swarm routing"
MS, S = NS_PER_MS, NS_PER_S
BEGIN_NS: Final = 2 * S
TROUBLE_NS: Final = 8 * S
"""For so long things go wrong in the second part."""
_LINKS: Final = ("link_down", "loss", "corruption", "duplication", "delay", "reordering")
_KINDS: Final = (*sorted(OF_ROUTING), *_LINKS, "switch_reboot", "switch_freeze", "nic_port_down", "polarised_hash")


class Drawn(NamedTuple):
    """The fabric of a seed."""

    topology: Topology
    dead: list[Fault]
    """In force from about `BEGIN_NS` or the very start until `healed_ns`."""
    links: frozenset[str]
    """The links that they cut, at least in one direction."""
    switches: frozenset[str]
    """The switches that they kill."""
    troubles: list[Fault]
    """What goes wrong for a while after that."""
    judged_ns: Instant
    """When the tables must be those of what lives."""
    healed_ns: Instant
    rest_ns: Instant
    """When they must be those of the whole fabric."""

    @property
    def leaks(self) -> bool:
        """Somebody tells of what is not its own."""
        return any(fault.kind == "route_leak" for fault in self.troubles)


def draw(seed: int) -> Drawn:
    """The fabric of a seed."""
    rng = Rng(STREAM, seed)
    switch = _switch(rng)
    topology = Topology(
        name="routing", planes=1, t0_per_plane=one_of(rng, (2, 2, 3, 4)), t1_per_plane=one_of(rng, (1, 2, 3, 4)),
        nics_per_t0=one_of(rng, (1, 2)), evs_per_qp=8, reserve_evs_per_qp=0, seed=f"{STREAM} {seed}",
        link_delay_ns=one_of(rng, (1_000, 100_000, 2_000_000) if "lossless" not in switch else (1_000, 50_000)),
        rate_bps=(100 if rng.chance(PPM // 2) and "lossless" not in switch else 10) * 1_000_000_000,
        nic={"transport": "rc", "cc": "none", "rc_timeout": 16}, switch=switch,
    )  # fmt: skip
    quiet_ns = _quiet_ns(switch)
    judged_ns = BEGIN_NS + quiet_ns
    healed_ns = judged_ns + S
    trouble_ns = healed_ns + quiet_ns
    rest_ns = trouble_ns + TROUBLE_NS + quiet_ns
    dead, links, switches = _dead(rng, topology, healed_ns)
    count = 1 + rng.below(4)
    troubles = [_trouble(rng, topology, trouble_ns, number) for number in range(count)]
    return Drawn(topology, dead, links, switches, troubles, judged_ns, healed_ns, rest_ns)


def _switch(rng: Rng) -> dict[str, Any]:
    lossless = {"lossless": "pfc"} if rng.chance(PPM // 4) else {}
    hold_s = one_of(rng, (3, 3, 4, 6))
    damped = rng.chance(PPM // 4)
    damping = {
        "bgp_dampening": True, "bgp_dampening_half_life_ns": S, "bgp_dampening_max_suppress_ns": 3 * S,
        "bgp_dampening_suppress": one_of(rng, (800, 1_000, 2_000)),
    }  # fmt: skip
    return {
        "forwarding": "ecmp", "routing": "bgp", "trim": False, "trim_last_hop": False, "ecn": False, **lossless,
        "ecmp_resilient": rng.chance(PPM // 2),
        "bfd": rng.chance(PPM // 2),
        "bfd_transmit_interval_ns": one_of(rng, (50, 100, 300)) * MS,
        "bfd_receive_interval_ns": one_of(rng, (50, 300)) * MS,
        "bfd_detect_multiplier": one_of(rng, (1, 2, 3)),
        "bgp_hold_ns": hold_s * S,
        "bgp_keepalive_ns": one_of(rng, (1, 2, 3)) * S,
        "bgp_connect_retry_ns": one_of(rng, (1, 2, 5)) * S,
        "bgp_advertisement_interval_ns": one_of(rng, (0, 0, 200 * MS, S)),
        "bgp_jitter": rng.chance(PPM // 2),
        "bgp_maximum_paths": one_of(rng, (1, 2, 64, 64)),
        "bgp_multipath_relax": rng.chance(PPM // 2),
        "bgp_fast_external_failover": rng.chance(PPM * 2 // 3),
        "bgp_carrier_ns": one_of(rng, (0, MS, 100 * MS)),
        "bgp_sender_loop_detection": rng.chance(PPM // 2),
        "bgp_suppress_fib_pending": rng.chance(PPM // 3),
        "bgp_prefixes": one_of(rng, ("rack", "nic")),
        "bgp_start": one_of(rng, ("warm", "warm", "cold")),
        "bgp_stalepath_ns": one_of(rng, (1, 3)) * S,
        "bgp_batch_ns": one_of(rng, (0, MS, 20 * MS)),
        "bgp_prefix_ns": one_of(rng, (0, 10_000, MS)),
        "fib_write_ns": one_of(rng, (0, 50_000, 5 * MS)),
        "fib_local_repair": rng.chance(PPM * 2 // 3),
        **(damping if damped else {}),
    }  # fmt: skip


def _quiet_ns(switch: dict[str, Any]) -> int:
    """Silence noticed, connections tried again twice, routes of a warm start forgotten, damping over, all told."""
    return int(
        switch["bgp_hold_ns"] + 3 * switch["bgp_connect_retry_ns"] + switch["bgp_stalepath_ns"]
        + 3 * switch["bgp_advertisement_interval_ns"] + 4 * S + (4 * S if switch.get("bgp_dampening") else 0)
    )  # fmt: skip


def _dead(rng: Rng, topology: Topology, until_ns: Instant) -> tuple[list[Fault], frozenset[str], frozenset[str]]:
    faults, links, switches = [], set(), set()
    for number in range(rng.below(4)):
        begin_ns = 1 if rng.chance(PPM // 3) else BEGIN_NS
        window = (Window(begin_ns + rng.below(BEGIN_NS // 4 if begin_ns > 1 else MS), until_ns, {}),)
        if rng.chance(PPM // 4):
            name = one_of(rng, [f"p0-t1-{one}" for one in range(topology.t1_per_plane)])
            if name not in switches:
                switches.add(name)
                faults.append(Fault(f"dead {number}", "switch_reboot", (name,), window))
            continue
        name = one_of(rng, [link.name for link in topology.links() if not link.name.startswith("h")])
        lower, upper = name.split("~")
        target = one_of(rng, (name, name, f"{lower}>{upper}", f"{upper}>{lower}"))
        links.add(name)
        faults.append(Fault(f"dead {number}", "link_down", (target,), window))
    if rng.chance(PPM // 4):
        nic = one_of(rng, list(topology.nic_names()))
        links.add(topology.ports(nic)[0].link)
        faults.append(Fault("dead port", "nic_port_down", (f"{nic}:0",), (Window(BEGIN_NS, until_ns, {}),)))
    return faults, frozenset(links), frozenset(switches)


def _trouble(rng: Rng, topology: Topology, begin_ns: Instant, number: int) -> Fault:
    kind = one_of(rng, _KINDS)
    between = [link.name for link in topology.links() if not link.name.startswith("h")]
    figures: dict[str, Any] = {}
    target = one_of(rng, list(topology.switch_names()))
    if kind in (*_LINKS, "session_down", "session_flap"):
        target = one_of(rng, between)
    elif kind == "nic_port_down":
        target = f"{one_of(rng, list(topology.nic_names()))}:0"
    if kind in ("loss", "corruption", "duplication", "reordering"):
        figures = {"share_ppm": one_of(rng, (20_000, 200_000, 500_000))}
    if kind in ("delay", "reordering"):
        figures["delay_ns"] = 1 + rng.below(20 * MS)
    if kind in ("stuck_route", "route_leak"):
        figures = {"nic": one_of(rng, list(topology.nic_names()))}
    if kind == "slow_routing":
        figures = {"factor": one_of(rng, (2, 10, 50))}
    windows: list[Window] = []
    at_ns = begin_ns + rng.below(TROUBLE_NS // 2)
    for _ in range(one_of(rng, (1, 1, 3, 5))):
        long_ns = 10 * MS + rng.below(TROUBLE_NS // 3)
        if at_ns + long_ns < begin_ns + TROUBLE_NS:
            windows.append(Window(at_ns, at_ns + long_ns, figures))
        at_ns += long_ns + 10 * MS + rng.below(S)
    return Fault(f"{kind} {number}", kind, (target,), tuple(windows) or (Window(begin_ns, begin_ns + S, figures),))
