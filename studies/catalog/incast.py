"""Many to one: what trimming does for it, and what it does to a flow beside it."""

from collections.abc import Mapping

from mrcfabric.topology import Setting
from studies import columns
from studies.beds import OBLIVIOUS, ONE_PATH, four_by_100
from studies.flows import START_NS, Flow, incast
from studies.study import Falls, More, Reaches, Study
from studies.trial import Trial

MIB = 1 << 20
DEGREE = 7
VICTIM, NEIGHBOUR, BYSTANDER = 0, 1, 11
"""NIC 0 receives the incast, NIC 1 below the same T0 the bystander's flow, which NIC 11 sends."""
_NO_TRIM: Mapping[str, Setting] = {"trim": False, "trim_last_hop": False}
_SIZES = {"t0_per_plane": 3}


def _trimming(seed: str) -> dict[str, Trial]:
    trials = {}
    for name, switch in (("with trimming", {}), ("without", _NO_TRIM)):
        for degree in (2, 4, DEGREE):
            topology = four_by_100(seed, switch=switch, **_SIZES)
            flows = incast(topology, degree, 2 * MIB)
            trials[f"{degree} to 1, {name}"] = Trial(topology, flows, deadline_ns=START_NS + 4_000_000)
    return trials


TRIMMING = Study(
    name="incast",
    title="Incast with trimming and without",
    published="Fair shares in a 7 to 1 incast, with trimming (arXiv 2605.04333, figure 18). What happens without is "
    "not published; it follows from the rules: a receiver that is not told of what was dropped cannot ask for it, "
    "and a sender that hears nothing suspects its paths (MRC 1.0 section 3 and 11.2).",
    bed="4 planes of 100 Gb/s, 3 T0s of 4 NICs and 4 T1s each; 2, 4 and 7 NICs below other T0s send 2 MiB each to one.",
    trials=_trimming,
    columns=(
        columns.DONE_US,
        columns.GOODPUT,
        columns.fairness(),
        columns.TRIMS,
        columns.RESENT,
        columns.TIMEOUTS,
        columns.RETIRED,
        columns.SPURIOUS,
    ),
    claims=(
        More("7 to 1 is done earlier with trimming.", "goodput share", "7 to 1, with trimming", "7 to 1, without"),
        Reaches("It is fair: Jain's index above 0.95.", "Jain index", "7 to 1, with trimming", 0.95),
        More("No EV is blamed for a full receiver.", "EVs retired", "7 to 1, without", "7 to 1, with trimming"),
    ),
    pictured="goodput share",
)


def _bystander(seed: str) -> dict[str, Trial]:
    trials = {}
    ways: tuple[tuple[str, Mapping[str, Setting], Mapping[str, Setting], int], ...] = (
        ("MRC", {}, {}, 1),
        ("MRC, no trimming", {}, _NO_TRIM, 1),
        ("oblivious", OBLIVIOUS, {}, 1),
        ("one path, 1 QP", ONE_PATH, {}, 1),
        ("one path, 8 QPs", ONE_PATH, {}, 8),
    )
    for name, nic, switch, qps in ways:
        topology = four_by_100(seed, nic=nic, switch=switch, **_SIZES)
        beside = Flow(BYSTANDER, NEIGHBOUR, 4 * MIB // qps, 6, qps, START_NS, "bystander")
        crowd = incast(topology, DEGREE, 4 * MIB, messages=3, qps=qps)
        window_ns = (START_NS + 100_000, START_NS + 350_000)
        trials[f"{name}: alone"] = Trial(topology, (beside,), window_ns=window_ns)
        trials[f"{name}: beside"] = Trial(topology, (beside, *crowd), window_ns=window_ns)
    return trials


BESIDE = Study(
    name="bystander",
    title="A flow beside a 7 to 1 incast",
    published="Seven senders share one receiver fairly and the flow beside them is not touched. RoCE with DCQCN "
    "takes a quarter from it with one QP, and up to three quarters with eight to ten (arXiv 2605.04333, figures 18 "
    "and 21).",
    bed="4 planes of 100 Gb/s, 3 T0s of 4 NICs and 4 T1s each; 7 NICs send to one, an eighth below the same far T0 "
    "as three of them to the receiver's neighbour, all without end. Rates between 100 and 350 us.",
    trials=_bystander,
    columns=(
        columns.sum_share("bystander", "bystander"),
        columns.sum_share("incast", "incast"),
        columns.fairness("incast", "Jain index of the incast"),
        columns.TRIMS,
        columns.TRIMS_PATH,
        columns.TIMEOUTS,
        columns.RETIRED,
    ),
    claims=(
        Reaches("The bystander keeps at least 0.95 of its rate.", "bystander", "MRC: beside", 0.95, of="MRC: alone"),
        Reaches("The seven share fairly: Jain's index above 0.95.", "Jain index of the incast", "MRC: beside", 0.95),
        Falls(
            "One path per flow, 8 QPs: the bystander loses more than a twentieth in most seeds.",
            "bystander",
            "one path, 8 QPs: beside",
            "one path, 8 QPs: alone",
            0.95,
        ),
    ),
    limits="There is no PFC and no DCQCN here, so pauses that spread from a full receiver cannot be shown: what "
    "hurts the bystander under one path per flow is only that it shares links with the crowd.",
    pictured="bystander",
)

STUDIES = (TRIMMING, BESIDE)
