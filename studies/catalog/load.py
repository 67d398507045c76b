"""A healthy fabric under load, and one with a slow, a lossy or a dead part: state per EV against the baselines."""

from collections.abc import Mapping

from mrcfabric.topology import Setting, Topology
from studies import columns
from studies.fabrics import OBLIVIOUS, ONE_PATH, four_by_100
from studies.faults import LinkFault, NodeFault
from studies.flows import START_NS, permutation
from studies.outcome import Outcome
from studies.study import Column, More, Reaches, Study
from studies.trial import Fault, Trial

MIB = 1 << 20
SLOW_LINK = "p0-t0-0~p0-t1-0"
DEAD_T1 = "p0-t1-0"
_WARM_NS, _END_NS = START_NS + 100_000, START_NS + 240_000

WAYS: tuple[tuple[str, Mapping[str, Setting], int], ...] = (
    ("MRC", {}, 1),
    ("oblivious", OBLIVIOUS, 1),
    ("one path, 1 QP", ONE_PATH, 1),
    ("one path, 4 QPs", ONE_PATH, 4),
    ("one path, 16 QPs", ONE_PATH, 16),
)
"""Name, settings of the NICs, QPs per flow."""


def _steady(topology: Topology, qps: int, faults: tuple[Fault, ...] = (), below: int = 0) -> Trial:
    """A permutation with always something to send, measured from where it has settled."""
    flows = permutation(topology, 4 * MIB, messages=5, qps=qps, below=below)
    return Trial(topology, flows, faults, window_ns=(_WARM_NS, _END_NS))


def _permutation(seed: str) -> dict[str, Trial]:
    return {name: _steady(four_by_100(seed, t0_per_plane=4, nic=nic), qps) for name, nic, qps in WAYS}


PERMUTATION = Study(
    name="permutation",
    title="Permutation",
    published="A pair with 4 QPs reaches about 96 % of 8 x 100 Gb/s wherever its ends hang (arXiv 2605.04333, "
    "bandwidth test); one MRC QP does better than sixteen RoCE ones of one path each (figure 16, a ring "
    "all-reduce); ECMP ends near 60 % (a remark of Oracle Cloud Infrastructure).",
    setup="4 planes of 100 Gb/s, 4 T0s of 4 NICs and 4 T1s each. Every NIC sends to one NIC below the next T0 and "
    "always has more to send. Shares of one NIC's 400 Gb/s, headers paid.",
    trials=_permutation,
    columns=(
        columns.mean_share(),
        columns.least_share(),
        columns.fairness(),
        columns.MARKED,
        columns.TRIMS,
        columns.RESENT,
        columns.RTT,
    ),
    claims=(
        Reaches("One MRC QP fills the line: at least 0.96.", "mean share", "MRC", 0.96),
        More("One path per flow is far worse.", "slowest flow", "MRC", "one path, 1 QP"),
        More("So it is with 4 QPs per flow.", "slowest flow", "MRC", "one path, 4 QPs"),
        More("And with 16: one MRC QP beats sixteen of one path each.", "mean share", "MRC", "one path, 16 QPs"),
        More("Spraying alone beats one path.", "slowest flow", "oblivious", "one path, 16 QPs"),
        Reaches("State per EV costs a healthy fabric less than 2 %.", "mean share", "MRC", 0.98, of="oblivious"),
    ),
    limits="With one QP on one path a flow uses one of four planes: a quarter is all it can have. The published "
    "RoCE with one QP has about half; how that NIC shares its ports is not described. Only the order can be "
    "compared.",
    seeds=3,
    pictured="mean share",
)


def _slow(seed: str) -> dict[str, Trial]:
    trials = {"MRC, no slow link": _steady(four_by_100(seed), 1, below=3)}
    for gbps in (50, 25):
        slow = {SLOW_LINK: gbps * 10**9}
        for name, nic, qps in WAYS[:4]:
            topology = four_by_100(seed, nic=nic, link_rates_bps=slow)
            trials[f"{name}, {gbps} Gb/s"] = _steady(topology, qps, below=3)
    return trials


SLOW = Study(
    name="slow_link",
    title="One slow link",
    published="No figures. It follows from the rules that a mark takes the next packets off the path that was marked "
    "(MRC 1.0 11.2), and that spraying which does not listen is held back by its slowest path.",
    setup="4 planes of 100 Gb/s, 2 T0s of 4 NICs and 4 T1s each, a permutation of three NICs per T0, so that the "
    "other links have room for what leaves the slow one; one of 32 T0-T1 links runs at 50 or 25 Gb/s "
    "(`link_rates_bps`).",
    trials=_slow,
    columns=(
        columns.mean_share(),
        columns.least_share(),
        columns.MARKED,
        columns.TRIMS_PATH,
        columns.RESENT,
        columns.RETIRED,
        columns.RTT,
    ),
    claims=(
        More("At 50 Gb/s state per EV beats oblivious spraying.", "slowest flow", "MRC, 50 Gb/s", "oblivious, 50 Gb/s"),
        More("At 25 Gb/s too.", "slowest flow", "MRC, 25 Gb/s", "oblivious, 25 Gb/s"),
        More("One path per flow is far worse.", "slowest flow", "oblivious, 25 Gb/s", "one path, 4 QPs, 25 Gb/s"),
        Reaches(
            "A link at half its rate costs MRC nothing that can be seen.",
            "mean share",
            "MRC, 50 Gb/s",
            0.97,
            of="MRC, no slow link",
        ),
    ),
    limits="SKIP lasts one turn of the scan: a path that is marked every time is used every other time, so marks "
    "alone take about half of its load away. A link at a quarter of its rate is still trimmed for that reason. With "
    "4 T1s a path carries a fourth of a plane, in a fabric of 256 T1s next to nothing.",
    pictured="slowest flow",
)


def _lossy(seed: str) -> dict[str, Trial]:
    fault = (LinkFault(SLOW_LINK, START_NS + 40_000, loss_ppm=200_000),)
    trials = {"MRC, no loss": _steady(four_by_100(seed), 1, below=3)}
    return trials | {name: _steady(four_by_100(seed, nic=nic), qps, fault, below=3) for name, nic, qps in WAYS[:4]}


LOSSY = Study(
    name="lossy_link",
    title="One lossy link",
    published="A link that is up and loses packets is left at once, and the losses stop; without state per path "
    "they go on (arXiv 2605.04333, figures 4, 12 and 13).",
    setup="4 planes of 100 Gb/s, 2 T0s of 4 NICs and 4 T1s each, a permutation of three NICs per T0; one T0-T1 link "
    "loses 20 % of its packets, both ways, from 40 us on.",
    trials=_lossy,
    columns=(
        columns.mean_share(),
        columns.least_share(),
        columns.LOST,
        columns.NEEDLESS,
        columns.RETIRED,
        columns.TIMEOUTS,
        columns.ERRORS,
    ),
    claims=(
        More("State per EV beats oblivious spraying.", "mean share", "MRC", "oblivious"),
        More("It loses fewer packets.", "lost", "oblivious", "MRC"),
        Reaches("The lossy link costs MRC nothing that can be seen.", "mean share", "MRC", 0.97, of="MRC, no loss"),
    ),
    pictured="mean share",
)


def _dead(seed: str) -> dict[str, Trial]:
    at_ns = START_NS + 60_000
    trials = {}
    for name, nic, qps in (("MRC, healthy", {}, 1), *WAYS[:4]):
        topology = four_by_100(seed, nic=nic)
        faults = () if name == "MRC, healthy" else (NodeFault(DEAD_T1, at_ns),)
        flows = permutation(topology, 8 * MIB, qps=qps, below=3)
        trials[name] = Trial(topology, flows, faults, START_NS + 1_500_000, fault_ns=at_ns, sample_ns=5_000)
    return trials


def _finished(trial: Trial, outcome: Outcome) -> float:
    return sum(flow.done_ns is not None for flow in outcome.flows) / len(outcome.flows)


FINISHED = Column("flows finished", _finished, 3)

DEAD = Study(
    name="dead_t1",
    title="A T1 dies and nobody says so",
    published="A dead T1 drops what it is sent; each sender leaves its paths within tens of microseconds, all "
    "messages complete, no lasting loss of throughput (arXiv 2605.04333, figures 8 and 11; OpenAI on MRC).",
    setup="4 planes, 2 T0s of 4 NICs and 4 T1s each, 8 MiB per flow; one of 16 T1s dies 60 us after the start and "
    "stays dead. Ends at 1.5 ms.",
    trials=_dead,
    columns=(
        FINISHED,
        columns.DONE_US,
        columns.REACTION,
        columns.GAP,
        columns.LOST,
        columns.NEEDLESS,
        columns.RETIRED,
        columns.ERRORS,
    ),
    claims=(
        Reaches("Every MRC message completes.", "flows finished", "MRC", 1.0),
        More("Oblivious spraying needs longer.", "done, us", "oblivious", "MRC"),
        More("One path per flow loses the flows whose path is gone.", "flows finished", "MRC", "one path, 4 QPs"),
        Reaches(
            "MRC is done within a tenth of the time of a healthy fabric.",
            "done, us",
            "MRC",
            1.0,
            of="MRC, healthy",
            most=1.1,
        ),
    ),
    limits="The time to react is in base RTTs of this fabric. Reports of 'tens of microseconds' are from fabrics "
    "whose base RTT is of the same order.",
    timeline=("MRC, healthy", "MRC", "oblivious", "one path, 4 QPs"),
)

STUDIES = (PERMUTATION, SLOW, LOSSY, DEAD)
