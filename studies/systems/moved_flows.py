"""Rows B2 and B4: which flows a dead link costs until routes have converged, and which of them leave by another port.

A cable between a T0 and a T1 goes dark in a plane of switches that speak BGP. Flows from another T0 are one packet per
period, by a NIC without a transport, so that each lost one is known by its flow and instant.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Final, NamedTuple

from mrcfabric.units import NS_PER_MS, NS_PER_S
from orchestrator.measures.measure import Question
from orchestrator.measures.measures import MEASURES
from orchestrator.measures.spans import whole
from orchestrator.scenario.resolve import resolve
from orchestrator.yamlfile.document import parse
from studies.scale.recovery import simulated
from studies.systems.row import Finding, Row, between, near, seen
from switchd.core.events_routing import FibWritten
from tests.support.speaking_fabric import SpeakingFabric

_CUT_NS: Final = 2 * NS_PER_S
_PERIOD_NS: Final = 200_000
_SPORTS: Final = range(0xC000, 0xC000 + 512)
_MANY: Final = range(0xC000, 0xC000 + 4_000)
_SPREADS: Final = 3
"""How many standard deviations a share of flows may lie off its mean."""
_MRC: Final = """
name: beside
fabric: {{planes: 1, t0_per_plane: 3, t1_per_plane: {uplinks}, nics_per_t0: 1, evs_per_qp: 32, reserve_evs_per_qp: 8}}
length: 400rtt
workload: [{{name: pair, kind: p2p, ranks: [h002, h000], messages: 64, message_bytes: 256KiB}}]
method: [{{name: dark, at: 30rtt, for: 300rtt, fault: link_down, selector: {{links: "p0-t0-0~p0-t1-1"}}}}]
"""


class Uplinks(NamedTuple):
    """One point of B2: a plane with so many T1s."""

    uplinks: int


class Group(NamedTuple):
    """One point of B4."""

    members: int
    resilient: bool


def spread(share: float, flows: int) -> float:
    """The standard deviation of a share of so many flows that are hashed each by itself."""
    return sqrt(share * (1 - share) / flows)


def moved_share(members: int, *, resilient: bool) -> float:
    """The share of flows that leave by another port when one of so many members goes (RFC 2992)."""
    return 1 / members if resilient else 1 - 1 / members


def measure_losses(point: Uplinks) -> Sequence[Finding]:
    """B2: flows that lose packets until routes have converged, and what MRC loses by the same failure."""
    fabric = SpeakingFabric(3, point.uplinks, 1, ecmp_resilient=True)
    instants = fabric.send(2, 0, _SPORTS, _CUT_NS - NS_PER_MS, _CUT_NS + 6 * NS_PER_MS, _PERIOD_NS)
    fabric.cut("p0-t0-0", "p0-t1-1", _CUT_NS)
    fabric.sim.run(_CUT_NS + NS_PER_S)
    (written,) = (one for one in fabric.told("p0-t0-2", FibWritten) if one.at_ns > _CUT_NS and one.flows)
    heard = {number for _, number in fabric.nics[0].heard}
    lost = [(at_ns, sport) for at_ns in instants for sport in _SPORTS if at_ns << 16 | sport not in heard]
    hit = {sport for _, sport in lost}
    wanted = 1 / point.uplinks
    room = _SPREADS * spread(wanted, len(_SPORTS))
    # Each of them loses what it sends from the cut until the table is written, and no other loses anything.
    sent = sum(_CUT_NS <= at_ns < written.at_ns for at_ns in instants)
    at = f"{point.uplinks} up-links"
    recording = simulated(resolve(parse("beside.yaml", _MRC.format(uplinks=point.uplinks)), seed="b2"))
    dark = tuple(recording.faults)
    (last,) = MEASURES["avoidance_rtts"].take(Question(recording, (), (whole(recording),), faults=dark))
    assert last.value is not None
    return [
        between(f"{at}: share of the flows that lose packets", wanted - room, wanted + room, len(hit) / len(_SPORTS)),
        near(f"{at}: packets that each of them loses, in periods", sent, len(lost) / len(hit), 1 / sent, 1),
        near(f"{at}: flows moved by the write, of those hit", 1, written.moved / len(hit), 0, 3),
        seen(f"{at}: BGP, from the failure to the far T0's write", (written.at_ns - _CUT_NS) / 1e3, 1, "us"),
        seen(f"{at}: MRC, from the failure to the last packet lost", last.value, 1, "RTT"),
        seen(f"{at}: the same", last.value * recording.rtt_ns / 1e3, 1, "us"),
    ]


def measure_moves(point: Group) -> Sequence[Finding]:
    """B4: one kind and size of group."""
    fabric = SpeakingFabric(2, point.members, 2, ecmp_resilient=point.resilient)
    for source in (2, 3):
        fabric.send(source, 0, _MANY, _CUT_NS - NS_PER_MS, _CUT_NS, NS_PER_MS)
    fabric.cut("p0-t0-0", "p0-t1-1", _CUT_NS)
    fabric.sim.run(_CUT_NS + NS_PER_S)
    written = [one for one in fabric.told("p0-t0-1", FibWritten) if one.at_ns > _CUT_NS]
    flows, moved = sum(one.flows for one in written), sum(one.moved for one in written)
    assert flows == 2 * len(_MANY), "each of them was seen before the cut"
    wanted = moved_share(point.members, resilient=point.resilient)
    kind = "resilient" if point.resilient else "plain"
    return [between(f"{point.members} members, {kind}", wanted - 0.02, wanted + 0.02, moved / flows)]


B2: Final = tuple(Uplinks(count) for count in (2, 3, 4, 8))
B4: Final = tuple(Group(members, resilient) for resilient in (False, True) for members in (2, 3, 4, 8, 16))

ROWS: Final = (
    Row(
        "B2",
        "What is lost until routes have converged",
        "1/M of the flows between the two sides, from the failure until the far T0 has written its table; MRC: packets "
        "of a few RTTs",
        "closed form; RFC 7938",
        "three standard deviations of 512 hashed flows; one packet per flow; MRC is shown",
        "a T0-T1 cable goes dark in a plane of three T0s and M T1s; 512 flows from another T0, one packet each in "
        "200 us. Groups are resilient, so that the flows that move are those that were hit. Beside it 16 MiB by "
        "MRC from NIC to NIC of such a plane, at line rate",
        B2,
        measure_losses,
    ),
    Row(
        "B4",
        "Flows that leave by another port when a member goes",
        "1 - 1/n of a plain group, 1/n of a resilient one",
        "closed form; RFC 2992",
        "2 % of all flows",
        "8,000 flows from two NICs cross a T0 with n up-links; a cable behind one of them goes dark, and the T0 writes "
        "its table without it",
        B4,
        measure_moves,
    ),
)
