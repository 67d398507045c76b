"""Glances as daemons would send them, for a small fabric: by figures, without daemons."""

from typing import Any

from mrcfabric.glance import Glance
from mrcfabric.topology import Topology
from orchestrator.fabric.polling import Glances
from orchestrator.fabric.readings import ClockReading

SMALL = Topology(name="small", planes=2, t0_per_plane=2, t1_per_plane=1, nics_per_t0=1)
"""Two NICs; in each of two planes two T0s and a T1."""
GOOD = [[8, 0, 0, 0], [8, 0, 0, 0]]


def nic(
    now_ns: int, placed: tuple[int, int] = (0, 0), sent: tuple[int, int] = (0, 0), retransmits: int = 0,
    carrier: int = 3, evs: Any = GOOD, programs: Any = (), incarnation: int = 0, frames: int = 0, lost: int = 0,
) -> Glance:  # fmt: skip
    """Of a NIC with one QP."""
    ports = [[wire_bytes, 0, 0, 0, 0] for wire_bytes in sent]
    rest = [list(placed), retransmits, 0, 1, carrier, evs, list(programs)]
    return [[now_ns, incarnation, 0, frames, 0, lost], ports, rest]


def switch(now_ns: int, ports: list[list[int]], forwarding: int = 1, drops: int = 0) -> Glance:
    """Of a switch."""
    return [[now_ns, 0, 0, 0, 0, 0], ports, [forwarding, drops]]


def all_say(now_ns: int, **said: Glance | None) -> dict[str, Glance | None]:
    """Of every node; those not given (`p0_t0_1=...`) have done nothing."""
    found: dict[str, Glance | None] = {name: nic(now_ns) for name in SMALL.nic_names()}
    for name in SMALL.switch_names():
        found[name] = switch(now_ns, [[0, 0, 0, 0, 0] for _ in SMALL.ports(name)])
    found.update({name.replace("_", "-"): glance for name, glance in said.items()})
    return found


def look(
    now_ns: int,
    nodes: dict[str, Glance | None],
    *,
    down: tuple[str, ...] = (),
    late: tuple[str, ...] = (),
    state: str = "run",
    awake_s: float = 0.0,
) -> Glances:
    """One look at all nodes."""
    pace = {"fabric_ns": now_ns, "run_wall_s": awake_s, "dilation_nominal": 0.0, "dilation_effective": None}
    clock = ClockReading(now_ns, now_ns, now_ns + 1, now_ns + 1, None, False, state == "sleep", state, pace)
    return Glances(clock, 12.5, nodes, down, late)
