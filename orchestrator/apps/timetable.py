"""The faults of the demonstration: what happens to which part for how long, in base RTTs.

Pure: computed from a topology, carried out by `orchestrator.apps.demo`. An episode starts when the fabric has recovered
from the one before, so its own instants count from its start.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from mrcfabric.errors import ConfigError
from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.topology import Topology

Kind: TypeAlias = Literal["link", "crash", "nic-port"]

FLAP_RTTS = 5
FLAPS = 3
OUTAGE_RTTS = 25
"""How long dead switches stay dead."""
PORT_RTTS = 60
"""How long the NIC port is down: long enough to read a share from it."""
T1_KILLS = 4


@dataclass(frozen=True, slots=True)
class Episode:
    """One kind of fault, on one or several parts at once."""

    kind: Kind
    title: str
    targets: tuple[str, ...]
    """Links, nodes, or one NIC."""
    pulses: tuple[tuple[int, int], ...]
    """(down, up) in base RTTs from the episode's start, one after the other."""
    share: float
    """Of the fabric's goodput, what can be had while the fault lasts and all traffic crosses T1s, in step."""
    plane: int | None = None
    """The port of a NIC."""

    @property
    def length_rtts(self) -> int:
        """From the first fault to the last repair."""
        return self.pulses[-1][1]


def link_name(topology: Topology, plane: int, t0: int, t1: int) -> str:
    """The cable between a T0 and a T1 of a plane."""
    return topology.parse_link(f"{t0_name(plane, t0)}~{t1_name(plane, t1)}").name


def spread(count: int, over: int) -> list[int]:
    """`count` different numbers below `over`, as far apart as they can be."""
    return [place * over // count for place in range(count)]


def check_wide(topology: Topology) -> None:
    """Raises ConfigError where the uplinks of a T0 do not carry all that its NICs can send.

    All traffic of the demonstration crosses T1s: it would be congested before anything breaks, and what a NIC gets,
    with a port down too, would be what the others leave it. Neither can be held against line rate.
    """
    for t0 in topology.switch_names():
        if topology.parse_node(t0).tier != "t0":
            continue
        down = up = 0
        for end in topology.ports(t0):
            rate_bps = topology.link_rates_bps.get(end.link, topology.rate_bps)
            down, up = (down + rate_bps, up) if end.towards == "nic" else (down, up + rate_bps)
        if up < down:
            found = f"{t0} has uplinks for {up / down:.0%} of what its NICs send, and the demonstration needs all of it"
            hint = "t1_per_plane not below nics_per_t0, no slow links; `mrcfabric run` and `perf` take any"
            raise ConfigError("topology", found, hint)


def timetable(topology: Topology) -> tuple[Episode, ...]:
    """The episodes in order. Raises ConfigError for a topology that has nothing to lose, or is congested by itself."""
    for key, least in (("planes", 2), ("t0_per_plane", 2), ("t1_per_plane", 2)):
        if getattr(topology, key) < least:
            raise ConfigError(f"topology.{key}", "too small for the demonstration", f"at least {least}")
    check_wide(topology)
    planes, t1s = topology.planes, topology.t1_per_plane
    reduced = (planes - 1) / planes
    one_link = 1 / (planes * t1s)
    links = (link_name(topology, planes // 4, 0, 1), link_name(topology, planes // 2, 1, t1s - 1))
    flaps = tuple((turn * 2 * FLAP_RTTS, turn * 2 * FLAP_RTTS + FLAP_RTTS) for turn in range(FLAPS))
    kills = spread(min(T1_KILLS, planes), planes)
    killed = tuple(t1_name(plane, place % t1s) for place, plane in enumerate(kills))
    nic, port = topology.nics // 4, planes * 5 // 8
    outage = ((0, OUTAGE_RTTS),)
    return (
        Episode("link", f"{len(links)} T0-T1 links flap {FLAPS} times", links, flaps, 1 - one_link),
        Episode(
            "crash", f"{len(killed)} T1s killed, each in another plane", killed, outage, 1 - len(killed) * one_link
        ),
        Episode("nic-port", f"{nic_name(nic)} loses port {port}", (nic_name(nic),), ((0, PORT_RTTS),), reduced, port),
        Episode("crash", "a T0 dies", (t0_name(planes * 3 // 8, 1),), outage, reduced),
    )
