"""Ports, T0s and T1s that go down under one busy pair: what is left is what is left of the planes."""

from studies import columns
from studies.fabrics import eight_by_100
from studies.faults import LinkFault, NodeFault, PortFault
from studies.flows import START_NS, Flow
from studies.study import Claim, Reaches, Study
from studies.trial import Fault, Trial

MIB = 1 << 20
PORTS_DOWN = (1, 2, 4, 6)
_AT_NS = START_NS + 60_000
_LENGTH_NS = 170_000
_LONG_NS = 400_000
_SETTLE_NS = 30_000
_AWAY_NS = 100_000
"""How long ports that come back are gone."""


def _pair(seed: str, faults: tuple[Fault, ...], settle_ns: int = 0, length_ns: int = _LENGTH_NS) -> Trial:
    """One flow that never ends, in a window that begins `settle_ns` after the fault."""
    topology = eight_by_100(seed)
    flows = (Flow(0, topology.nics_per_t0, 8 * MIB, 12),)
    window_ns = (_AT_NS + settle_ns, _AT_NS + settle_ns + length_ns)
    return Trial(topology, flows, faults, window_ns=window_ns, fault_ns=_AT_NS, sample_ns=5_000)


def _ports(seed: str) -> dict[str, Trial]:
    trials = {"none": _pair(seed, (), settle_ns=_SETTLE_NS)}
    for side, nic in (("sender", 0), ("receiver", 4)):
        for down in PORTS_DOWN:
            faults = tuple(PortFault(nic, plane, _AT_NS) for plane in range(down))
            trials[f"{down} of 8, at the {side}"] = _pair(seed, faults, settle_ns=_SETTLE_NS)
    for side, nic in (("sender", 0), ("receiver", 4)):
        gone = tuple(PortFault(nic, plane, _AT_NS, _AT_NS + _AWAY_NS) for plane in range(4))
        trials[f"4 of 8, at the {side}, and back"] = _pair(seed, gone, settle_ns=_AWAY_NS + _SETTLE_NS)
    return trials


def _proportional() -> tuple[Claim, ...]:
    text = "With {0} of 8 ports down at the {1} {2} eighths are left, give or take 3 %."
    return tuple(
        Reaches(
            text.format(down, side, 8 - down),
            "share",
            f"{down} of 8, at the {side}",
            0.97 * (8 - down) / 8,
            of="none",
            most=1.03 * (8 - down) / 8,
        )
        for side in ("sender", "receiver")
        for down in PORTS_DOWN
    )


PORTS = Study(
    name="ports_down",
    title="k of 8 NIC ports down",
    published="Throughput steps down in proportion to the ports that are left, with a gap below one second; back to "
    "full when they return (arXiv 2605.04333, figures 9a and 9b).",
    setup="8 planes of 100 Gb/s, one flow; k ports of the sender or the receiver lose carrier at once, 60 us after "
    "the start. Rates from 30 us later on.",
    trials=_ports,
    columns=(
        columns.sum_share(),
        columns.resent("port_down"),
        columns.LOST,
        columns.RETIRED,
        columns.GAP,
        columns.ERRORS,
    ),
    claims=(
        *_proportional(),
        Reaches("When they come back, everything does.", "share", "4 of 8, at the sender, and back", 0.97, of="none"),
        Reaches("At the receiver too.", "share", "4 of 8, at the receiver, and back", 0.97, of="none"),
        Reaches("No QP is lost.", "QP errors", "6 of 8, at the receiver", 0, most=0),
    ),
    limits="The published second is what a NIC's firmware needs to map its EVs anew; here a port's loss is acted on "
    "at once, so the gap is of the order of round trips.",
    pictured="share",
    seeds=3,
)


def _switches(seed: str) -> dict[str, Trial]:
    at_once = tuple(LinkFault(f"p{plane}-t0-0~p{plane}-t1-{plane % 4}", _AT_NS) for plane in range(8))
    every_second = tuple(
        LinkFault(f"p{number % 8}-t0-0~p{number % 8}-t1-{number // 8}", _AT_NS + number * 40_000)
        for number in range(20)
    )
    return {
        "healthy": _pair(seed, (), length_ns=_LONG_NS),
        "a T1 dies": _pair(seed, (NodeFault("p0-t1-0", _AT_NS),), length_ns=_LONG_NS),
        "8 T0-T1 links are cut": _pair(seed, at_once, length_ns=_LONG_NS),
        "20 of 32 links are cut, one by one": _pair(seed, every_second, length_ns=800_000),
        "the receiver's T0 dies": _pair(seed, (NodeFault("p0-t0-1", _AT_NS),), settle_ns=_SETTLE_NS),
        "the sender's T0 dies": _pair(seed, (NodeFault("p0-t0-0", _AT_NS),), settle_ns=_SETTLE_NS),
    }


SWITCHES = Study(
    name="dead_switch",
    title="A switch or links die under a pair",
    published="A T0 takes its plane from the NICs below it, 100 of 800 Gb/s, for as long as it is dead; a T1 costs "
    "nothing lasting; nor do eight T0-T1 links that go down together, nor twenty one after the other (arXiv "
    "2605.04333, figures 9c, 9d, 10 and 11).",
    setup="8 planes of 100 Gb/s, 4 T1s each, one flow. Rates over 400 us from the fault, for a T0 from 30 us later "
    "on. The twenty links are cut 40 us apart, in 800 us, five in eight of the up-links of a T0.",
    trials=_switches,
    columns=(
        columns.sum_share(),
        columns.REACTION,
        columns.LOST,
        columns.NEEDLESS,
        columns.RETIRED,
        columns.GAP,
        columns.ERRORS,
    ),
    claims=(
        Reaches(
            "A dead T1 costs next to nothing, the moment of its death included.",
            "share",
            "a T1 dies",
            0.95,
            of="healthy",
        ),
        Reaches("Eight links cut at once cost next to nothing.", "share", "8 T0-T1 links are cut", 0.95, of="healthy"),
        Reaches(
            "Twenty that go one after the other cost next to nothing, while they go.",
            "share",
            "20 of 32 links are cut, one by one",
            0.95,
            of="healthy",
        ),
        Reaches(
            "A dead T0 leaves seven eighths.",
            "share",
            "the receiver's T0 dies",
            0.97 * 7 / 8,
            of="healthy",
            most=1.03 * 7 / 8,
        ),
        Reaches("At the sender too.", "share", "the sender's T0 dies", 0.97 * 7 / 8, of="healthy", most=1.03 * 7 / 8),
    ),
    pictured="share",
    seeds=3,
)

STUDIES = (PORTS, SWITCHES)
