"""Many to one: what trimming does for it, and what it does to a flow beside it."""

from collections.abc import Mapping

from mrcfabric.topology import Setting
from studies import columns
from studies.fabrics import OBLIVIOUS, ONE_PATH, four_by_100
from studies.flows import START_NS, Flow, incast
from studies.study import More, Mostly, Reaches, Study
from studies.trial import Trial

MIB = 1 << 20
DEGREE = 7
VICTIM, NEIGHBOUR, BYSTANDER = 0, 1, 11
"""NIC 0 receives the incast, NIC 1 below the same T0 the bystander's flow, which NIC 11 sends."""
_NO_TRIM: Mapping[str, Setting] = {"trim": False, "trim_last_hop": False}
_NO_NACK: Mapping[str, Setting] = {"trim_nack": False}
"""NICs that know that nobody trims: a loss is all that tells them of a full queue."""
_SIZES = {"t0_per_plane": 3}


def _trimming(seed: str) -> dict[str, Trial]:
    trials = {}
    for name, nic, switch in (("with trimming", {}, {}), ("without", _NO_NACK, _NO_TRIM)):
        for degree, size in ((2, 2 * MIB), (DEGREE, MIB // 4), (DEGREE, 2 * MIB)):
            topology = four_by_100(seed, nic=nic, switch=switch, **_SIZES)
            flows = incast(topology, degree, size)
            label = f"{degree} to 1, {size >> 10} KiB, {name}"
            trials[label] = Trial(topology, flows, deadline_ns=START_NS + 4_000_000)
    return trials


TRIMMING = Study(
    name="incast",
    title="Incast with trimming and without",
    published="Fair shares in a 7 to 1 incast, with trimming (arXiv 2605.04333, figure 18). What happens without is "
    "not published; it follows from the rules: a receiver that is not told of what was dropped cannot ask for it, "
    "and a sender that hears nothing suspects its paths (MRC 1.0 section 3 and 11.2).",
    setup="4 planes of 100 Gb/s, 3 T0s of 4 NICs and 4 T1s each; 2 or 7 NICs below other T0s send 256 KiB or 2 MiB "
    "each to one.",
    trials=_trimming,
    columns=(
        columns.DONE_US,
        columns.GOODPUT,
        columns.fairness(),
        columns.TRIMS,
        columns.RESENT,
        columns.TIMEOUTS,
        columns.RETIRED,
        columns.NEEDLESS,
    ),
    claims=(
        More(
            "7 to 1 with short messages is done earlier with trimming.",
            "goodput share",
            "7 to 1, 256 KiB, with trimming",
            "7 to 1, 256 KiB, without",
        ),
        Reaches(
            "With long messages it makes a tenth at most.",
            "goodput share",
            "7 to 1, 2048 KiB, with trimming",
            0.9,
            of="7 to 1, 2048 KiB, without",
            most=1.1,
        ),
        Mostly(
            "And it is fairer: nobody waits for a timer.",
            "Jain index",
            "7 to 1, 256 KiB, with trimming",
            "7 to 1, 256 KiB, without",
        ),
        Reaches("A long one is fair: Jain's index above 0.95.", "Jain index", "7 to 1, 2048 KiB, with trimming", 0.95),
        Reaches(
            "Without, hardly an EV is blamed for a full receiver: one in a run at most.",
            "EVs retired",
            "7 to 1, 2048 KiB, without",
            0,
            most=1,
        ),
        Reaches("Nor where two send to it.", "EVs retired", "2 to 1, 2048 KiB, without", 0, most=0),
    ),
    limits="A sender here takes a loss that a full queue explains off its window, and accuses no EV of it "
    "(`loss_spared`). One of 24 further seeds retired an EV. So 2 to 1 comes out alike with trimming "
    "and without, and 7 to 1 with long messages nearly. Waiting for silence costs short messages half of their rate.",
    pictured="goodput share",
)


def _bystander(seed: str) -> dict[str, Trial]:
    trials = {}
    ways: tuple[tuple[str, Mapping[str, Setting], Mapping[str, Setting], int], ...] = (
        ("MRC", {}, {}, 1),
        ("MRC, no trimming", _NO_NACK, _NO_TRIM, 1),
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
    setup="4 planes of 100 Gb/s, 3 T0s of 4 NICs and 4 T1s each; 7 NICs send to one, an eighth below the same far T0 "
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
        More(
            "The seven share more evenly than with one path each.",
            "Jain index of the incast",
            "MRC: beside",
            "one path, 1 QP: beside",
        ),
        More(
            "The bystander fares better than with one path, 8 QPs.",
            "bystander",
            "MRC: beside",
            "one path, 8 QPs: beside",
        ),
    ),
    limits="There is no PFC and no DCQCN here, so pauses that spread from a full receiver cannot be shown: what "
    "hurts the bystander under one path per flow is only that it shares links with the crowd. Published rates are "
    "means over seconds; 250 us are 27 base RTTs, in which windows have not evened out (see NSCC and its parts "
    "below).",
    pictured="bystander",
)

STUDIES = (TRIMMING, BESIDE)
